//! Operations that a database must provide: storing rows and finding them. A small trait for each table; [`Tables`] is
//! all of them.
//!
//! One thread calls them, inside one transaction. A remote database may buffer writes and send them together, as long
//! as every read sees earlier writes. All decisions are made by the callers; an implementation decides nothing.

mod active_tasks;
mod archived_tasks;
mod audit;
mod chains;
mod config_digests;
mod events;
mod handlers;
mod idempotency;
mod lanes;
mod meta;
mod nodes;
mod objects;
mod orders;
mod queues;
mod retention;
mod rules;
mod schedules;

use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::store::StoreError;
use pointsman_core::task::{TaskId, TaskIdNamespace};
use pointsman_core::{TaskSeq, Tenant};

use crate::error::{Fault, TableResult};
use crate::row::{HandlerId, QueueRow};
use crate::writer::Txn;

pub use active_tasks::ActiveTaskTable;
pub use archived_tasks::ArchivedTaskTable;
pub use audit::AuditTable;
pub use chains::ChainTable;
pub use config_digests::ConfigDigestTable;
pub use events::EventTable;
pub use handlers::HandlerTable;
pub use idempotency::IdempotencyTable;
pub use lanes::LaneTable;
pub use meta::{Counters, MetaTable, REGISTRATION_TEXT_NAMES};
pub use nodes::NodeTable;
pub use objects::ObjectTable;
pub use orders::OrderTable;
pub use queues::QueueTable;
pub use retention::RetentionTables;
pub use rules::RuleTable;
pub use schedules::ScheduleTable;

/// Rows that a group of jobs will probably read, so that they can be prefetched together.
#[derive(Debug, Default)]
pub struct ReadSet {
    /// Objects, each with a handler whose lane of the object will be read.
    pub objects: Vec<(Tenant, String, HandlerId)>,
    /// Lanes whose head will be read.
    pub lanes: Vec<i64>,
    pub idempotency_keys: Vec<(Tenant, String)>,
    /// Unfinished tasks.
    pub tasks: Vec<TaskSeq>,
    /// Objects whose outbox entries are journaled first, because an event worker of this node has claimed them: the
    /// worker's name, and the object's name in the outbox.
    pub claimed_outbox_objects: Vec<(String, Vec<u8>)>,
}

/// All tables of a store, inside the writer's transaction.
pub trait Tables:
    MetaTable
    + EventTable
    + IdempotencyTable
    + ObjectTable
    + ActiveTaskTable
    + LaneTable
    + ArchivedTaskTable
    + QueueTable
    + HandlerTable
    + ConfigDigestTable
    + RuleTable
    + NodeTable
    + AuditTable
    + ChainTable
    + OrderTable
    + ScheduleTable
    + RetentionTables
    + 'static
{
}

impl<T> Tables for T where
    T: MetaTable
        + EventTable
        + IdempotencyTable
        + ObjectTable
        + ActiveTaskTable
        + LaneTable
        + ArchivedTaskTable
        + QueueTable
        + HandlerTable
        + ConfigDigestTable
        + RuleTable
        + NodeTable
        + AuditTable
        + ChainTable
        + OrderTable
        + ScheduleTable
        + RetentionTables
        + 'static
{
}

/// A database with its tables, as used by the writer thread.
pub trait Backend: Send + 'static {
    type Tables: Tables;

    /// Begins a transaction; returns the state of the writer's cache.
    fn begin(&mut self, read_set: ReadSet) -> TableResult<CacheState>;

    /// Runs before all jobs of a transaction: journals outbox events of the objects in the read set, because they come
    /// before the objects' next events. Returns whether the outboxes are drained. If not, jobs for which
    /// [`Backend::must_postpone_job`] returns true run in the next transaction, and the others in this one.
    fn drain_outboxes_first(_txn: &mut Txn<'_, Self::Tables>) -> TableResult<bool> {
        Ok(true)
    }

    /// Returns whether a job with this read set has to wait for the next transaction.
    fn must_postpone_job(&self, _read_set: &ReadSet) -> bool {
        false
    }

    /// Extends the read set by that of jobs that arrived while waiting for the write lock.
    fn extend_read_set(&mut self, _read_set: ReadSet) -> TableResult<()> {
        Ok(())
    }

    /// Returns the tables. They are used inside the current transaction, and once before the first one, to load the
    /// cache.
    fn tables(&mut self) -> &mut Self::Tables;

    /// Commits. When it returns, everything is durable.
    fn commit(&mut self) -> TableResult<()>;

    /// Rolls the transaction back, in whatever state it is.
    fn roll_back(&mut self);

    /// Converts a fault into the error that callers see.
    fn to_store_error(fault: Fault) -> StoreError;

    /// Returns the number of rows written since the start.
    fn rows_written(&self) -> u64;
}

/// State of the writer's cache when a transaction begins.
#[derive(Debug)]
pub enum CacheState {
    /// No other node has written since.
    Fresh,
    /// Other nodes have written; contains their changes.
    Stale(PeerChanges),
    /// The cache must be reloaded.
    Unknown,
}

/// Changes that other nodes have committed.
#[derive(Debug, Default)]
pub struct PeerChanges {
    pub counters: Counters,
    /// Current rows of changed queues.
    pub queue_rows: Vec<QueueRow>,
    pub limiter_states: Vec<(HandlerId, LimiterAndBreakerState)>,
    /// Tasks whose cached copy may be stale.
    pub stale_tasks: Vec<TaskSeq>,
}

/// Returns the number of a task from its public id, if the id is one of this store's.
pub fn decode_task_seq(task_id_namespace: TaskIdNamespace, id: &TaskId) -> Option<TaskSeq> {
    id.uuid().and_then(|uuid| task_id_namespace.seq_of_uuid(uuid))
}
