//! The worker: stores the ends of attempts and claims tasks for free slots.
//!
//! It sleeps until an attempt ends, the store signals work, the sequencer returns slots, or a waiting task is due.
//! Then it sends all waiting ends to the store in one transaction, together with a claim for every free slot: at full
//! load an end and the claim that follows it cost one commit, shared with all other attempts that ended meanwhile.
//!
//! Ends are never lost while the node lives: if the store fails, they are kept and sent again until the store has
//! accepted or refused them.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{ClaimResult, FinishReceipt, FinishedAttempt, StoreError};
use pointsman_core::task::TaskCommandError;
use pointsman_core::{ErrorChain, Timestamp, store::ClaimRequest};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::attempt_ending::EndedAttempt;
use crate::node::Node;
use crate::supervisor::Service;
use crate::time::StoreBackoff;
use crate::unstarted_claim::UnstartedClaim;

/// The maximum number of ended attempts in one transaction.
const MAX_ENDS_PER_BATCH: usize = 1024;
/// How long the worker tries to store the remaining ended attempts when the node stops.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum sleep until a task is due. A task that is due but cannot be claimed (another node has it) must not cause
/// a tight loop.
const MIN_SLEEP_UNTIL_DUE: Duration = Duration::from_millis(20);

/// The service that stores the ends of attempts and fills the slots.
pub(crate) struct Worker {
    node: Arc<Node>,
    ended_attempt_receiver: mpsc::UnboundedReceiver<EndedAttempt>,
    /// Ended attempts that the store has not accepted yet.
    unsent_ends: Vec<EndedAttempt>,
    /// Whether the store may have tasks for this node.
    may_have_work: bool,
    /// When the next waiting task is due.
    next_task_due_at: Option<Timestamp>,
    /// Whether the last store call failed.
    is_store_failing: bool,
    backoff: StoreBackoff,
}

impl Service for Worker {
    /// Works until stopped; then stores the remaining ended attempts.
    async fn run(&mut self, stop: CancellationToken) {
        while self.wait_for_work(&stop).await {
            self.store_ends_and_claim_tasks().await;
        }
        self.flush_remaining_ends().await;
    }
}

impl Worker {
    pub(crate) fn new(
        node: Arc<Node>,
        ended_attempt_receiver: mpsc::UnboundedReceiver<EndedAttempt>,
    ) -> Self {
        Self {
            node,
            ended_attempt_receiver,
            unsent_ends: vec![],
            may_have_work: true,
            next_task_due_at: None,
            is_store_failing: false,
            backoff: StoreBackoff::new(),
        }
    }

    /// Waits until there are ended attempts to store or tasks may be claimed; `false` if the worker is to stop.
    async fn wait_for_work(&mut self, stop: &CancellationToken) -> bool {
        if self.is_store_failing {
            return tokio::select! {
                () = sleep(self.backoff.next_delay()) => true,
                () = stop.cancelled() => false,
            };
        }
        loop {
            let has_slots = self.node.slots.available_count_for_backlog() > 0;
            if self.may_have_work && has_slots {
                return true;
            }
            let is_saturated = self.may_have_work && !has_slots && !self.node.slots.is_budget_spent();
            self.node
                .has_ready_tasks_waiting_for_slot
                .send_if_modified(|was| std::mem::replace(was, is_saturated) != is_saturated);
            let duration = self.time_until_next_claim();
            tokio::select! {
                received_count = self.ended_attempt_receiver.recv_many(&mut self.unsent_ends, MAX_ENDS_PER_BATCH) => {
                    return received_count > 0;
                }
                () = self.node.wake_signals.worker_wakeup.notified() => self.may_have_work = true,
                () = self.node.slots.wait_for_returned_slots() => {}
                () = sleep(duration) => self.may_have_work = true,
                () = stop.cancelled() => return false,
            }
        }
    }

    /// The time until the next task is due, bounded so that a lost signal or a corrected clock is noticed soon.
    fn time_until_next_claim(&self) -> Duration {
        let max = self
            .node
            .slots
            .time_until_new_task_reserve_shrinks()
            .unwrap_or(Duration::MAX)
            .min(self.node.settings.sweep_interval);
        let due = self
            .next_task_due_at
            .map_or(max, |due| due.duration_since(self.node.time_source.now()).max(MIN_SLEEP_UNTIL_DUE));
        due.min(max)
    }

    /// Stores the waiting ended attempts, and claims tasks for the free slots.
    async fn store_ends_and_claim_tasks(&mut self) {
        // Attempts on this thread that are about to end may do so first, so that their ends are included.
        tokio::task::yield_now().await;
        while self.unsent_ends.len() < MAX_ENDS_PER_BATCH
            && let Ok(ended) = self.ended_attempt_receiver.try_recv()
        {
            self.unsent_ends.push(ended);
        }
        let mut reserved_slots = self.node.slots.reserve_up_to(self.node.slots.available_count_for_backlog());
        let claim = self.node.build_claim_request(&reserved_slots);
        let pause_version = self.node.start_gate.pause_version();
        let (is_claiming, has_ends) = (claim.is_some(), !self.unsent_ends.is_empty());
        match self.send_ends_and_claim_request(claim).await {
            Ok(claim) => {
                self.record_store_recovery();
                if is_claiming {
                    // If more tasks are ready but none was claimed, claiming again at once would find none either.
                    self.may_have_work = claim.has_more_ready_tasks && claim.has_tasks();
                    self.next_task_due_at = earliest(
                        claim.next_claim_due_at,
                        self.next_task_due_at.filter(|due| *due > self.node.time_source.now()),
                    );
                } else {
                    // Without a slot there may be work: an end may have unblocked other tasks. With slots there was
                    // no claim because this node has no handlers.
                    self.may_have_work = reserved_slots.count() == 0 && (self.may_have_work || has_ends);
                }
                claim.start_tasks(&mut reserved_slots, pause_version);
            }
            Err(error) => self.record_store_failure(&error),
        }
    }

    async fn send_ends_and_claim_request(
        &mut self,
        claim: Option<ClaimRequest>,
    ) -> Result<UnstartedClaim, StoreError> {
        if !self.unsent_ends.is_empty() {
            return self.send_ends(claim).await;
        }
        let result = match claim {
            Some(claim) => self.node.store.claim_tasks(claim, self.node.time_source.now()).await?,
            None => ClaimResult::default(),
        };
        Ok(UnstartedClaim::new(&self.node, result))
    }

    async fn send_ends(&mut self, claim: Option<ClaimRequest>) -> Result<UnstartedClaim, StoreError> {
        let finished_attempts: Vec<FinishedAttempt> =
            self.unsent_ends.iter().map(|ended| ended.finished_attempt.clone()).collect();
        let at = self.node.time_source.now();
        let (results, claim) = self.node.store.finish_attempts(finished_attempts, claim, at).await?;
        let claim = UnstartedClaim::new(&self.node, claim);
        for (ended, result) in std::mem::take(&mut self.unsent_ends).into_iter().zip(results) {
            self.report_end_result(ended, result, at);
        }
        Ok(claim)
    }

    /// Handles the store's reply about an ended attempt: accepted, or refused because its task was cancelled or given to
    /// another node.
    fn report_end_result(
        &mut self,
        ended: EndedAttempt,
        result: Result<FinishReceipt, TaskCommandError>,
        at: Timestamp,
    ) {
        let node = &self.node;
        let task = &ended.task_summary;
        match result {
            Ok(finished) => {
                node.report_finished_attempt(&ended, &finished, at);
                let due_times = ended.finished_attempt.emitted_events.iter().filter_map(|emit| emit.due);
                self.next_task_due_at =
                    due_times.chain(finished.next_attempt_due_at).chain(self.next_task_due_at).min();
            }
            Err(rejected) => {
                tracing::info!(
                    task.id = %task.id, attempt = task.attempt, %rejected,
                    "the store refused the end of an attempt, and its result is discarded: its task was \
                     cancelled or given to another node"
                );
            }
        }
    }

    fn record_store_recovery(&mut self) {
        if std::mem::take(&mut self.is_store_failing) {
            tracing::debug!("the store is available again; attempt ends were stored and claims continue");
            self.backoff.reset();
            self.node.slots.set_store_failing(false);
        }
    }

    fn record_store_failure(&mut self, error: &StoreError) {
        self.node.count_store_error();
        self.is_store_failing = true;
        self.may_have_work = true;
        self.node.slots.set_store_failing(true);
        tracing::debug!(
            error = %ErrorChain(&error), attempt_end_count = self.unsent_ends.len(),
            "could not store attempt ends or claim tasks; keeping the ends in memory and retrying"
        );
    }

    /// Stores the remaining ended attempts when the node stops. If the store does not accept them in time, they are
    /// lost, and the rescuer of another node has the tasks run again.
    async fn flush_remaining_ends(&mut self) {
        let deadline = Instant::now() + FINAL_FLUSH_TIMEOUT;
        loop {
            while let Ok(ended) = self.ended_attempt_receiver.try_recv() {
                self.unsent_ends.push(ended);
            }
            if self.unsent_ends.is_empty() {
                return;
            }
            match self.send_ends(None).await {
                Ok(_) => {}
                Err(error) if matches!(error, StoreError::Closed) || Instant::now() >= deadline => {
                    tracing::error!(
                        error = %ErrorChain(&error), attempt_end_count = self.unsent_ends.len(),
                        "could not store the ends of attempts before the stop; other nodes run their tasks again \
                         after the lease"
                    );
                    return;
                }
                Err(error) => {
                    self.record_store_failure(&error);
                    sleep(self.backoff.next_delay()).await;
                }
            }
        }
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
