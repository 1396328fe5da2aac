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
    ended: mpsc::UnboundedReceiver<EndedAttempt>,
    /// Ends that the store has not taken yet.
    kept: Vec<EndedAttempt>,
    /// There may be work.
    look: bool,
    /// When the next waiting task falls due.
    due: Option<Timestamp>,
    /// The store did not answer the last time.
    failing: bool,
    patience: StoreBackoff,
}

impl Worker {
    pub(crate) fn new(node: Arc<Node>, ended: mpsc::UnboundedReceiver<EndedAttempt>) -> Self {
        Self {
            node,
            ended,
            kept: vec![],
            look: true,
            due: None,
            failing: false,
            patience: StoreBackoff::new(),
        }
    }

    /// Works until told to stop; then sends the ends that are left.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while self.wait(&stop).await {
            self.turn().await;
        }
        self.last_ends().await;
    }

    /// Waits until there is something to do. `false`: it is time to stop.
    async fn wait(&mut self, stop: &CancellationToken) -> bool {
        if self.failing {
            return tokio::select! {
                () = sleep(self.patience.wait()) => true,
                () = stop.cancelled() => false,
            };
        }
        loop {
            let room = self.node.slots.for_backlog() > 0;
            if self.look && room {
                return true;
            }
            let saturated = self.look && !room && !self.node.slots.spent();
            self.node.saturated.send_if_modified(|was| std::mem::replace(was, saturated) != saturated);
            let nap = self.nap();
            tokio::select! {
                taken = self.ended.recv_many(&mut self.kept, MAX_ENDS_PER_BATCH) => return taken > 0,
                () = self.node.signals.worker.notified() => self.look = true,
                () = self.node.slots.returned() => {}
                () = sleep(nap) => self.look = true,
                () = stop.cancelled() => return false,
            }
        }
    }

    /// How long to sleep: until the next task falls due, and never so long that a lost signal or a clock that
    /// was put right would matter.
    fn nap(&self) -> Duration {
        let longest = self.node.slots.keeping().unwrap_or(Duration::MAX).min(self.node.settings.sweep);
        let due = self.due.map_or(longest, |due| due.since(self.node.time.now()).max(MIN_SLEEP));
        due.min(longest)
    }

    /// Sends the ends that are waiting, and claims for the slots that are free.
    async fn turn(&mut self) {
        // Attempts that are through but for a moment on this thread come along.
        tokio::task::yield_now().await;
        while self.kept.len() < MAX_ENDS_PER_BATCH
            && let Ok(ended) = self.ended.try_recv()
        {
            self.kept.push(ended);
        }
        let mut reserved = self.node.slots.reserve(self.node.slots.for_backlog());
        let claim = self.node.claim(&reserved);
        let asked = self.node.held.asked();
        let (claimed, ends) = (claim.is_some(), !self.kept.is_empty());
        match self.ask(claim).await {
            Ok(mut claims) => {
                self.recovered();
                if claimed {
                    // More, and yet nothing for this node: there is no use in asking again at once.
                    self.look = claims.more && !claims.tasks.is_empty();
                    self.due = earliest(claims.next_due, self.due.filter(|due| *due > self.node.time.now()));
                } else {
                    // Without a slot an end may still have made way for others. With slots there was no claim
                    // because this node has no handlers.
                    self.look = reserved.count() == 0 && (self.look || ends);
                }
                self.node.start(&mut claims, &mut reserved, asked);
            }
            Err(error) => self.failed(&error),
        }
    }

    async fn ask(&mut self, claim: Option<Claim>) -> Result<Claims, StoreError> {
        if !self.kept.is_empty() {
            return self.finish(claim).await;
        }
        match claim {
            Some(claim) => self.node.store.claim(claim, self.node.time.now()).await,
            None => Ok(Claims::default()),
        }
    }

    async fn finish(&mut self, claim: Option<Claim>) -> Result<Claims, StoreError> {
        let endings: Vec<Ending> = self.kept.iter().map(|ended| ended.ending.clone()).collect();
        let at = self.node.time.now();
        let (results, claims) = self.node.store.finish(endings, claim, at).await?;
        for (ended, result) in std::mem::take(&mut self.kept).into_iter().zip(results) {
            self.finished(ended, result, at);
        }
        Ok(claims)
    }

    /// Tells of one end what became of it.
    fn finished(&mut self, ended: EndedAttempt, result: Result<Finished, Rejected>, at: Timestamp) {
        let node = &self.node;
        let task = &ended.task;
        match result {
            Ok(finished) => {
                node.finished(&ended, &finished, at);
                let delays = ended.ending.emits.iter().filter_map(|emit| emit.due);
                self.due = delays.chain(finished.due).chain(self.due).min();
            }
            Err(rejected) => {
                tracing::info!(task.id = %task.id, attempt = task.attempt, %rejected, "an attempt's end was refused");
            }
        }
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.failing) {
            tracing::debug!("the store answers again");
            self.patience.reset();
            self.node.slots.set_troubled(false);
        }
    }

    fn failed(&mut self, error: &StoreError) {
        self.node.store_failed();
        self.failing = true;
        self.look = true;
        self.node.slots.set_troubled(true);
        tracing::debug!(%error, ends = self.kept.len(), "the worker waits for the store");
    }

    /// The ends that are left when the node stops. Those that the store does not take in time are its loss:
    /// the rescuer gives the tasks to others.
    async fn last_ends(&mut self) {
        let deadline = Instant::now() + FINAL_FLUSH_TIMEOUT;
        loop {
            while let Ok(ended) = self.ended.try_recv() {
                self.kept.push(ended);
            }
            if self.kept.is_empty() {
                return;
            }
            match self.finish(None).await {
                Ok(_) => {}
                Err(error) if error == StoreError::Closed || Instant::now() >= deadline => {
                    tracing::error!(%error, ends = self.kept.len(), "the ends of attempts could not be stored");
                    return;
                }
                Err(error) => {
                    self.failed(&error);
                    sleep(self.patience.wait()).await;
                }
            }
        }
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
