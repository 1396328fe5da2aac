//! Keeps claimed tasks from starting after a pause was acknowledged: a rule, or a stopped chain or chain node, that was
//! set through this node.
//!
//! A task that the store locked before the pause may reach its handler after the pause was acknowledged: the claim is
//! still under way, or the attempt has not been polled yet. So each claim records the number of pauses before it
//! (its [`PauseVersion`]), and an attempt to which a later pause applies is released before it starts. For claims that
//! were requested after a pause, the store enforces it.
//!
//! An attempt that has checked for pauses may not have started yet when a pause is set. So an attempt announces its
//! start before it checks, and setting a pause waits for all attempts that have announced theirs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use pointsman_core::Rule;
use pointsman_core::chain::{ChainNodeId, ChainPath};
use pointsman_core::store::ClaimedTask;
use pointsman_core::task::{QueueSubject, TaskSubject};
use tokio::sync::Mutex;

/// A pause of queues that was set through this node.
#[derive(Clone, Debug)]
pub(crate) enum Pause {
    Rule(Rule),
    /// A chain was stopped.
    Chain(ChainPath),
    /// A node of a chain was stopped.
    ChainNode(ChainPath, ChainNodeId),
}

impl Pause {
    fn applies_to(&self, task: &ClaimedTask, queue: &QueueSubject) -> bool {
        match (self, queue) {
            (Self::Rule(rule), queue) => rule.applies_to_queue(&task.handler, queue, task.subject.tenant()),
            (Self::Chain(path), QueueSubject::ChainNode { chain, .. }) => path == chain,
            (Self::ChainNode(path, stopped), QueueSubject::ChainNode { chain, node }) => {
                path == chain && stopped == node
            }
            (Self::Chain(_) | Self::ChainNode(..), QueueSubject::Events | QueueSubject::Collection(_)) => {
                false
            }
        }
    }

    fn has_same_scope(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rule(rule), Self::Rule(other_rule)) => rule.replaces(other_rule),
            (Self::Chain(chain), Self::Chain(other_chain)) => chain == other_chain,
            (Self::ChainNode(chain, node), Self::ChainNode(other_chain, other_node)) => {
                chain == other_chain && node == other_node
            }
            (Self::Rule(_) | Self::Chain(_) | Self::ChainNode(..), _) => false,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct StartGate {
    pauses: RwLock<RecordedPauses>,
    /// The number of attempts that are about to start, announced before and after the last pause. Each pause swaps the
    /// two counters.
    starting_attempt_counts: [AtomicUsize; 2],
    /// The number of pauses that were applied. Its parity selects the counter of attempts that announce their start.
    pause_generation: AtomicUsize,
    pause_lock: Mutex<()>,
}

/// Counts an attempt as about to start until it is dropped.
#[derive(Debug)]
pub(crate) struct StartGuard<'gate>(&'gate AtomicUsize);

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Default)]
struct RecordedPauses {
    pause_count: u64,
    /// The latest pause of each scope, with its sequence number.
    latest_by_scope: Vec<(u64, Pause)>,
}

/// The number of pauses that had been set when a claim was requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseVersion(u64);

impl StartGate {
    /// Applies a pause that the store has accepted. When this returns, no paused task starts any more.
    pub(crate) async fn apply_pause(&self, pause: Pause) {
        let _pause_guard = self.pause_lock.lock().await;
        self.record_pause(pause);
        let previous_counter = self.pause_generation.fetch_add(1, Ordering::SeqCst) % 2;
        while self.starting_attempt_counts[previous_counter].load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    fn record_pause(&self, pause: Pause) {
        let mut pauses = self.pauses.write().unwrap_or_else(PoisonError::into_inner);
        pauses.pause_count += 1;
        let number = pauses.pause_count;
        pauses.latest_by_scope.retain(|(_, other)| !other.has_same_scope(&pause));
        pauses.latest_by_scope.push((number, pause));
    }

    /// Announces that an attempt is about to check for pauses and to start. An attempt that announces itself too late
    /// to be waited for finds the new pause.
    pub(crate) fn announce_start(&self) -> StartGuard<'_> {
        let count = &self.starting_attempt_counts[self.pause_generation.load(Ordering::SeqCst) % 2];
        count.fetch_add(1, Ordering::SeqCst);
        StartGuard(count)
    }

    pub(crate) fn pause_version(&self) -> PauseVersion {
        PauseVersion(self.pauses.read().unwrap_or_else(PoisonError::into_inner).pause_count)
    }

    /// Whether a pause that was set after this version applies to the task.
    pub(crate) fn is_paused_since(&self, version: PauseVersion, task: &ClaimedTask) -> bool {
        let pauses = self.pauses.read().unwrap_or_else(PoisonError::into_inner);
        if pauses.pause_count == version.0 {
            return false;
        }
        let queue = queue_subject_of_task(&task.subject);
        let mut later = pauses.latest_by_scope.iter().filter(|(number, _)| *number > version.0);
        later.any(|(_, pause)| pause.applies_to(task, &queue))
    }
}

fn queue_subject_of_task(subject: &TaskSubject) -> QueueSubject {
    match subject {
        TaskSubject::Event(_) => QueueSubject::Events,
        TaskSubject::CollectionRun(run) => QueueSubject::Collection(run.source_collection.collection.clone()),
        TaskSubject::Step(step) => {
            QueueSubject::ChainNode { chain: step.order_key.chain.clone(), node: step.node.clone() }
        }
    }
}
