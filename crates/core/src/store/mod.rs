//! What a store must be able to do, in the words of the domain.
//!
//! A store is the only thing with state: everything above it can be killed at any instant. Its verbs are
//! batch-shaped, take the time as an argument, and answer after the commit: `Ok` means durable.
//!
//! | trait | what it is about | who calls it |
//! |---|---|---|
//! | [`Journal`] | events in, events out | sequencer, observers, pruner |
//! | [`Queue`] | tasks from `new` to their end | scheduler, worker, rescuer |
//! | [`Registry`] | handlers, routes, rules, nodes | start-up, configuration, operators |
//! | [`Tasks`] | reading tasks and their logs; steering single ones | HTTP, command line |
//! | [`Schedules`] | planned times and what became of them | clock |
//! | [`Orders`] | chains and the orders that travel them | HTTP, command line |
//!
//! [`Store`] is all of them. Callers bind to the least they touch.

mod journal;
mod orders;
mod queue;
mod registry;
mod schedules;
mod tasks;

pub use journal::{
    Emission, EventView, Idempotency, Journal, LaneView, MOST_BEHIND, MOST_CAUSED, MOST_LANES, ObjectView,
    Pruned, Read, Receipt, RecordedAnswer, Refused, Sequenced,
};
pub use orders::{
    Added, ChainView, NewOrder, OrderBatch, OrderCommand, OrderCursor, OrderPage, OrderReceipt, OrderRefused,
    OrderView, Orders, OrdersRefused,
};
pub use queue::{
    Claim, Claimant, Claimed, Claims, Ended, Ending, Finished, NewLogLine, NewRun, NoSuchPair, Queue,
    Rescued, RunRefused, RunTask, Sweep,
};
pub use registry::{
    Abilities, BootMark, ClockReport, ClockStep, Deed, NodeId, NodeView, QueueView, Registration, Registry,
    UnconfirmedTime,
};
pub use schedules::{FirePage, Firing, Plan, Schedules, Standing};
pub use tasks::{LogPage, MOST_ATTEMPTS, Replayed, StoredLine, TaskFilter, TaskPage, Tasks};

use std::sync::Arc;

use crate::EventId;

/// All that Pointsman asks of a store.
pub trait Store: Journal + Queue + Registry + Tasks + Schedules + Orders {
    /// Tells this listener of every commit from now on. It is called on the store's own threads and must not
    /// block.
    fn listen(&self, listener: Arc<dyn Listener>);

    /// What keeps it from writing now: its last commit failed, or one does not end. None: as far as it knows, nothing
    /// does. Anybody may be told; the details are in the log.
    fn trouble(&self) -> Option<String>;

    /// What is not as it should be where it keeps its data, though it works: by what it could lose what it has
    /// acknowledged, or why it takes no more in. It is known, not looked for: asking costs nothing. Anybody may be told.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends the store in good order: what was asked before is committed, what is asked after is refused.
    fn close(&self);
}

/// What happened in the store, told after the commit. Signals may be lost or doubled; whoever waits for one
/// looks again after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The journal has grown up to this id.
    Journal(EventId),
    /// Tasks may be ready that were not before, or will fall due sooner than was told.
    Work,
}

pub trait Listener: Send + Sync {
    fn heard(&self, signal: Signal);
}

/// Why a store could not do what it was asked. None of these is the fault of the one who asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached or cannot write now; trying again later may help. Whether what was to be written is there is
    /// not known: the answer to a commit may have been lost.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// It has no room for more, and nothing was changed. What it holds is worked off all the same, and reads go on.
    #[error("the store takes nothing more in: {0}")]
    Full(String),
    /// What it holds cannot be understood.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// It was closed.
    #[error("the store is closed")]
    Closed,
}

pub type Result<T> = std::result::Result<T, StoreError>;
