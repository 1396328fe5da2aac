//! What was held through this node, for attempts that are on their way: by a rule, or because a chain or one of its
//! nodes was stopped.
//!
//! What the store has locked before a rule may reach its handler only after the rule was answered: the claim is
//! still under way, or the attempt has not had its turn. So whoever claims notes how many rules there were when
//! it asked, and an attempt that a later rule holds is given back before it begins. Claims that were asked for
//! after a rule are the store's business alone.
//!
//! An attempt that has looked and found nothing may still have to take its first step when something is set. So it
//! says that it is about to begin before it looks, and whoever sets something waits for those who had said so.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use pointsman_core::Rule;
use pointsman_core::chain::{ChainPath, NodeId};
use pointsman_core::store::Claimed;
use pointsman_core::task::{QueueOf, Subject};
use tokio::sync::Mutex;

/// What holds queues.
#[derive(Clone, Debug)]
pub(crate) enum Pause {
    Rule(Rule),
    /// A chain was stopped.
    Chain(ChainPath),
    /// A node of a chain was stopped.
    ChainNode(ChainPath, NodeId),
}

impl Pause {
    fn applies_to(&self, task: &Claimed, of: &QueueOf) -> bool {
        match (self, of) {
            (Self::Rule(rule), of) => rule.holds(&task.handler, of, task.subject.tenant()),
            (Self::Chain(path), QueueOf::Node { chain, .. }) => path == chain,
            (Self::ChainNode(path, stopped), QueueOf::Node { chain, node }) => {
                path == chain && stopped == node
            }
            (Self::Chain(_) | Self::ChainNode(..), QueueOf::Events | QueueOf::Collection(_)) => false,
        }
    }

    fn has_same_scope(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rule(one), Self::Rule(other)) => one.same_place(other),
            (Self::Chain(one), Self::Chain(other)) => one == other,
            (Self::ChainNode(chain, node), Self::ChainNode(other, of_other)) => {
                chain == other && node == of_other
            }
            (Self::Rule(_) | Self::Chain(_) | Self::ChainNode(..), _) => false,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct StartGate {
    pauses: RwLock<RecordedPauses>,
    /// How many are about to begin: those who said so since the last time something was set, and those before.
    /// Which of the two is which changes each time.
    starting_counts: [AtomicUsize; 2],
    generation: AtomicUsize,
    pause_lock: Mutex<()>,
}

/// One who is about to begin, until it is dropped.
#[derive(Debug)]
pub(crate) struct StartGuard<'h>(&'h AtomicUsize);

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Default)]
struct RecordedPauses {
    count: u64,
    /// The latest one of each place, and which one it was.
    latest: Vec<(u64, Pause)>,
}

/// How many had been set when a claim was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseVersion(u64);

impl StartGate {
    /// The store has taken it. When this returns, nothing that it holds begins any more.
    pub(crate) async fn pause(&self, hold: Pause) {
        let _one_at_a_time = self.pause_lock.lock().await;
        self.record_pause(hold);
        let before = self.generation.fetch_add(1, Ordering::SeqCst) % 2;
        while self.starting_counts[before].load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    fn record_pause(&self, hold: Pause) {
        let mut holds = self.pauses.write().unwrap_or_else(PoisonError::into_inner);
        holds.count += 1;
        let number = holds.count;
        holds.latest.retain(|(_, other)| !other.has_same_scope(&hold));
        holds.latest.push((number, hold));
    }

    /// An attempt is about to look and to begin. One that says so too late to be waited for finds what was set.
    pub(crate) fn announce_start(&self) -> StartGuard<'_> {
        let count = &self.starting_counts[self.generation.load(Ordering::SeqCst) % 2];
        count.fetch_add(1, Ordering::SeqCst);
        StartGuard(count)
    }

    pub(crate) fn pause_version(&self) -> PauseVersion {
        PauseVersion(self.pauses.read().unwrap_or_else(PoisonError::into_inner).count)
    }

    /// Whether something that was set since then holds the queue of this task.
    pub(crate) fn is_paused_since(&self, asked: PauseVersion, task: &Claimed) -> bool {
        let holds = self.pauses.read().unwrap_or_else(PoisonError::into_inner);
        if holds.count == asked.0 {
            return false;
        }
        let of = queue_of_subject(&task.subject);
        let mut later = holds.latest.iter().filter(|(number, _)| *number > asked.0);
        later.any(|(_, hold)| hold.applies_to(task, &of))
    }
}

fn queue_of_subject(subject: &Subject) -> QueueOf {
    match subject {
        Subject::Event(_) => QueueOf::Events,
        Subject::Run(run) => QueueOf::Collection(run.pair.collection.clone()),
        Subject::Step(step) => QueueOf::Node { chain: step.order.chain.clone(), node: step.node.clone() },
    }
}
