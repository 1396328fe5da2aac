//! The traits that every store implements, in domain verbs.
//!
//! A store is the only thing with state: everything above it can be killed at any instant. Its methods are
//! batch-shaped, take the time as an argument, and return after the commit: `Ok` means durable.
//!
//! | trait | contents | callers |
//! |---|---|---|
//! | [`Journal`] | appending and reading events | sequencer, observers, pruner |
//! | [`TaskQueue`] | scheduling, claiming and finishing tasks | scheduler, worker, rescuer |
//! | [`Registry`] | handlers, routes, rules, nodes | start-up, configuration, operators |
//! | [`Tasks`] | reading tasks and their logs; retrying and cancelling | HTTP, command line |
//! | [`Schedules`] | planned times and the fire ledger | clock |
//! | [`Orders`] | chains and the orders that run through them | HTTP, command line |
//!
//! [`Store`] is all of them. A caller depends only on the traits that it uses.

mod journal;
mod orders;
mod registry;
mod schedules;
mod task_queue;
mod tasks;

pub use journal::{
    EmitBatch, EmitReceipt, EmittedEventReceipt, EventView, IdempotencyError, IdempotencyKey,
    IdempotencyRecord, Journal, JournalQuery, LaneView, MAX_CAUSED_EVENTS, MAX_COUNTED_TASKS_BEHIND_HEAD,
    MAX_LISTED_LANES, ObjectView, PruneReport,
};
pub use orders::{
    AddedOrder, ChainView, NewOrder, OrderBatch, OrderBatchError, OrderBatchReceipt, OrderCommand,
    OrderCursor, OrderError, OrderPage, OrderView, Orders,
};
pub use registry::{
    AuditEntry, ClockReport, ClockStep, NodeCapabilities, NodeId, NodeView, QueueView, Registration,
    Registry, TimeAtUptime, UnconfirmedTime,
};
pub use schedules::{FirePage, FireRequest, ScheduleDef, ScheduleProgress, Schedules};
pub use task_queue::{
    AttemptLogLine, AttemptResult, ClaimRequest, ClaimResult, Claimant, ClaimedTask, CollectionRunError,
    CollectionRunReceipt, FinishReceipt, FinishedAttempt, NewCollectionRun, NoSuchCollection, RescueOptions,
    RescueReport, TaskQueue,
};
pub use tasks::{LogPage, MAX_LISTED_ATTEMPTS, ReplayReport, StoredLogLine, TaskFilter, TaskPage, Tasks};

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::{ErrorChain, EventId};

/// Everything that Pointsman needs of a store.
pub trait Store: Journal + TaskQueue + Registry + Tasks + Schedules + Orders {
    /// Notifies this listener of every commit from now on. The store calls it on its own threads, so it must not
    /// block.
    fn add_listener(&self, listener: Arc<dyn StoreListener>);

    /// Describes why the store cannot write now: its last commit failed, or one is taking too long. None: no problem is
    /// known. The text may be shown to anybody; the details are in the log.
    fn describe_write_problem(&self) -> Option<String>;

    /// Describes problems of the underlying database while the store works: settings that can lose acknowledged writes,
    /// or the reason why it accepts no further writes. The result is cached, so that a call costs nothing. The texts
    /// may be shown to anybody.
    fn health_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Closes the store: earlier requests are committed, later ones are refused.
    fn close(&self);
}

/// A notification that the store sends after a commit. Signals may be lost or sent twice; a waiter has to poll as
/// well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreSignal {
    /// The journal has grown up to this id.
    JournalGrew(EventId),
    /// Tasks may have become ready, or are due sooner than announced.
    TasksReady,
}

/// Is notified of commits: see [`Store::add_listener`].
pub trait StoreListener: Send + Sync {
    /// Called after a commit, on a thread of the store; must not block.
    fn on_signal(&self, signal: StoreSignal);
}

/// The cause of a [`StoreError`]: an error of the driver, or a text. All jobs of a failed commit share it.
pub type StoreErrorCause = Arc<dyn Error + Send + Sync>;

/// Why a store could not do what was requested. None of these is the caller's fault. The alternate form `{:#}` displays
/// the cause as well.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is unreachable or cannot write; a later retry may succeed. Whether the write was committed is unknown:
    /// the reply to the commit may have been lost.
    #[error(fmt = format_unavailable)]
    Unavailable(#[source] StoreErrorCause),
    /// The store has no space for more, and nothing was changed. Stored tasks still run, and reads work.
    #[error("the store is full: {0}")]
    Full(String),
    /// The store's contents cannot be decoded.
    #[error(fmt = format_damaged)]
    Damaged(#[source] StoreErrorCause),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

fn format_unavailable(cause: &StoreErrorCause, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    format_with_cause("the store is not available", cause, f)
}

fn format_damaged(cause: &StoreErrorCause, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    format_with_cause("the store is damaged", cause, f)
}

fn format_with_cause(message: &str, cause: &StoreErrorCause, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(message)?;
    if f.alternate() { write!(f, ": {}", ErrorChain(&**cause)) } else { Ok(()) }
}

impl StoreError {
    /// The store cannot be reached, for this reason.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(cause.into().into())
    }

    /// The store contains something that it should not, for this reason.
    pub fn damaged(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Damaged(cause.into().into())
    }
}

/// The result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;
