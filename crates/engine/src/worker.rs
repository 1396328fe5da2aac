//! The room that keeps the slots filled.
//!
//! It sleeps until something has happened: an attempt ended, the store told of work, the sequencer gave slots
//! back, or a waiting task fell due. Then it takes all ends that are waiting and sends them to the store in one
//! transaction, together with a claim for every slot that is free: at full load an end and the claim that
//! follows it cost one commit, shared with all others that ended meanwhile.
//!
//! Ends are never lost while the node lives: if the store does not answer, they are kept and sent again until
//! it has taken or refused them.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{Claims, Ending, Finished, StoreError};
use pointsman_core::task::Rejected;
use pointsman_core::{Timestamp, store::Claim};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::attempt_ending::EndedAttempt;
use crate::node::Node;
use crate::time::StoreBackoff;

/// How many ends one transaction takes.
const MAX_ENDS_PER_BATCH: usize = 1024;
/// How long the last ends are tried when the node stops.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// A task that is due and yet not to be had (another node was quicker) is not asked for in a tight loop.
const MIN_SLEEP: Duration = Duration::from_millis(20);

/// The room.
pub(crate) struct Worker {
    node: Arc<Node>,
    ended_attempts: mpsc::UnboundedReceiver<EndedAttempt>,
    /// Ends that the store has not taken yet.
    unsent_ends: Vec<EndedAttempt>,
    /// There may be work.
    may_have_work: bool,
    /// When the next waiting task falls due.
    next_due: Option<Timestamp>,
    /// The store did not answer the last time.
    is_store_failing: bool,
    backoff: StoreBackoff,
}

impl Worker {
    pub(crate) fn new(node: Arc<Node>, ended_attempts: mpsc::UnboundedReceiver<EndedAttempt>) -> Self {
        Self {
            node,
            ended_attempts,
            unsent_ends: vec![],
            may_have_work: true,
            next_due: None,
            is_store_failing: false,
            backoff: StoreBackoff::new(),
        }
    }

    /// Works until told to stop; then sends the ends that are left.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while self.wait_for_work(&stop).await {
            self.flush_and_claim().await;
        }
        self.flush_remaining_ends().await;
    }

    /// Waits until there is something to do. `false`: it is time to stop.
    async fn wait_for_work(&mut self, stop: &CancellationToken) -> bool {
        if self.is_store_failing {
            return tokio::select! {
                () = sleep(self.backoff.next_delay()) => true,
                () = stop.cancelled() => false,
            };
        }
        loop {
            let has_slots = self.node.slots.available_for_backlog() > 0;
            if self.may_have_work && has_slots {
                return true;
            }
            let saturated = self.may_have_work && !has_slots && !self.node.slots.is_budget_spent();
            self.node.is_saturated.send_if_modified(|was| std::mem::replace(was, saturated) != saturated);
            let duration = self.sleep_duration();
            tokio::select! {
                taken = self.ended_attempts.recv_many(&mut self.unsent_ends, MAX_ENDS_PER_BATCH) => return taken > 0,
                () = self.node.signals.worker.notified() => self.may_have_work = true,
                () = self.node.slots.wait_for_returned() => {}
                () = sleep(duration) => self.may_have_work = true,
                () = stop.cancelled() => return false,
            }
        }
    }

    /// How long to sleep: until the next task falls due, and never so long that a lost signal or a clock that
    /// was put right would matter.
    fn sleep_duration(&self) -> Duration {
        let max = self
            .node
            .slots
            .fresh_reserve_duration()
            .unwrap_or(Duration::MAX)
            .min(self.node.settings.sweep_interval);
        let due = self.next_due.map_or(max, |due| due.since(self.node.time.now()).max(MIN_SLEEP));
        due.min(max)
    }

    /// Sends the ends that are waiting, and claims for the slots that are free.
    async fn flush_and_claim(&mut self) {
        // Attempts that are through but for a moment on this thread come along.
        tokio::task::yield_now().await;
        while self.unsent_ends.len() < MAX_ENDS_PER_BATCH
            && let Ok(ended) = self.ended_attempts.try_recv()
        {
            self.unsent_ends.push(ended);
        }
        let mut reserved = self.node.slots.reserve(self.node.slots.available_for_backlog());
        let claim = self.node.build_claim(&reserved);
        let pause_version = self.node.start_gate.pause_version();
        let (has_claim, has_ends) = (claim.is_some(), !self.unsent_ends.is_empty());
        match self.send_ends_or_claim(claim).await {
            Ok(mut claims) => {
                self.record_recovery();
                if has_claim {
                    // More, and yet nothing for this node: there is no use in asking again at once.
                    self.may_have_work = claims.more && !claims.tasks.is_empty();
                    self.next_due =
                        earliest(claims.next_due, self.next_due.filter(|due| *due > self.node.time.now()));
                } else {
                    // Without a slot an end may still have made way for others. With slots there was no claim
                    // because this node has no handlers.
                    self.may_have_work = reserved.count() == 0 && (self.may_have_work || has_ends);
                }
                self.node.start_claimed_tasks(&mut claims, &mut reserved, pause_version);
            }
            Err(error) => self.record_failure(&error),
        }
    }

    async fn send_ends_or_claim(&mut self, claim: Option<Claim>) -> Result<Claims, StoreError> {
        if !self.unsent_ends.is_empty() {
            return self.send_ends(claim).await;
        }
        match claim {
            Some(claim) => self.node.store.claim(claim, self.node.time.now()).await,
            None => Ok(Claims::default()),
        }
    }

    async fn send_ends(&mut self, claim: Option<Claim>) -> Result<Claims, StoreError> {
        let endings: Vec<Ending> = self.unsent_ends.iter().map(|ended| ended.ending.clone()).collect();
        let at = self.node.time.now();
        let (results, claims) = self.node.store.finish(endings, claim, at).await?;
        for (ended, result) in std::mem::take(&mut self.unsent_ends).into_iter().zip(results) {
            self.report_end(ended, result, at);
        }
        Ok(claims)
    }

    /// Tells of one end what became of it.
    fn report_end(&mut self, ended: EndedAttempt, result: Result<Finished, Rejected>, at: Timestamp) {
        let node = &self.node;
        let task = &ended.task;
        match result {
            Ok(finished) => {
                node.report_finished_attempt(&ended, &finished, at);
                let delays = ended.ending.emits.iter().filter_map(|emit| emit.due);
                self.next_due = delays.chain(finished.due).chain(self.next_due).min();
            }
            Err(rejected) => {
                tracing::info!(task.id = %task.id, attempt = task.attempt, %rejected, "an attempt's end was refused");
            }
        }
    }

    fn record_recovery(&mut self) {
        if std::mem::take(&mut self.is_store_failing) {
            tracing::debug!("the store answers again");
            self.backoff.reset();
            self.node.slots.set_store_failing(false);
        }
    }

    fn record_failure(&mut self, error: &StoreError) {
        self.node.count_store_error();
        self.is_store_failing = true;
        self.may_have_work = true;
        self.node.slots.set_store_failing(true);
        tracing::debug!(%error, ends = self.unsent_ends.len(), "the worker waits for the store");
    }

    /// The ends that are left when the node stops. Those that the store does not take in time are its loss:
    /// the rescuer gives the tasks to others.
    async fn flush_remaining_ends(&mut self) {
        let deadline = Instant::now() + FINAL_FLUSH_TIMEOUT;
        loop {
            while let Ok(ended) = self.ended_attempts.try_recv() {
                self.unsent_ends.push(ended);
            }
            if self.unsent_ends.is_empty() {
                return;
            }
            match self.send_ends(None).await {
                Ok(_) => {}
                Err(error) if error == StoreError::Closed || Instant::now() >= deadline => {
                    tracing::error!(%error, ends = self.unsent_ends.len(), "the ends of attempts could not be stored");
                    return;
                }
                Err(error) => {
                    self.record_failure(&error);
                    sleep(self.backoff.next_delay()).await;
                }
            }
        }
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
