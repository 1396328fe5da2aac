//! Operations that a database must provide: storing rows and finding them.
//!
//! One thread calls them, inside one transaction. A remote database may buffer writes and send them together, as long
//! as every read sees earlier writes. All decisions are made by the callers; an implementation decides nothing.

use std::collections::BTreeMap;

use pointsman_core::chain::{Chain, ChainPath, ChainState, OrderKey};
use pointsman_core::fire::Fire;
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::store::{AuditEntry, IdempotencyKey, NodeCapabilities, NodeId, NodeView, StoreError};
use pointsman_core::task::{LogLine, QueueSubject, Task, TaskId, TaskIdNamespace};
use pointsman_core::{
    Event, EventId, HandlerDef, Rule, RuleKind, RuleScope, ScheduleName, TaskSeq, Tenant, Timestamp,
};

use crate::error::{Fault, TableResult};
use crate::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, ChainRow, HandlerId, HandlerRow, IdleObject, LaneHead,
    ObjectRow, OrderRow, QueueCounts, QueueId, QueueRow, RankRange, ScheduleRow, SyncGatedTask, TaskPhase,
    WaitingTask,
};
use crate::writer::Txn;

/// Counters of a store. A number that a commit has allocated is never allocated again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Id of the newest event, even if it has expired.
    pub last_event: EventId,
    /// Low-water mark of the journal: observers see nothing at or below it.
    pub expired_up_to: EventId,
    /// Number of the latest task.
    pub last_task: i64,
    /// Fence of the latest attempt.
    pub last_fence: i64,
    /// Number of the latest object.
    pub last_object: i64,
    /// Number of the latest order.
    pub last_order: i64,
    /// Number of events ever journaled.
    pub journaled_event_count: i64,
    /// Number of archived tasks.
    pub archived_task_count: i64,
    /// A time at or before the earliest due time of a delayed task.
    pub next_due: Option<Timestamp>,
}

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

/// The tables of a store, inside the writer's transaction.
pub trait Tables: 'static {
    // --- counters and texts ------------------------------------------------------------------------------------

    fn read_counters(&mut self) -> TableResult<Counters>;

    /// Writes the counters. Called before each commit.
    fn write_counters(&mut self, counters: &Counters) -> TableResult<()>;

    /// Reads the namespace from which this store's public task ids are derived.
    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace>;

    /// Reads a secret number that is mixed into hashes, so that nobody can choose names that collide.
    fn read_hash_salt(&mut self) -> TableResult<u64>;

    /// Reads the text stored under a name.
    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>>;

    fn write_named_text(&mut self, name: &str, text: &str) -> TableResult<()>;

    // --- events ------------------------------------------------------------------------------------------------

    /// Reads the answer recorded under an idempotency key, with the digest of the request.
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>>;

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        answer: &str,
        now: Timestamp,
    ) -> TableResult<()>;

    /// Inserts an event, with its consecutive number and the numbers of its tasks: `task_count` of them from
    /// `first_task`.
    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()>;

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>>;

    /// Lists events from one id to another, both inclusive, the oldest first.
    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>>;

    /// Returns the id of an event whose number is at most `number`, and not much smaller.
    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>>;

    /// Returns the last stored event up to this id; zero if there is none.
    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId>;

    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>>;

    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()>;

    // --- unfinished tasks --------------------------------------------------------------------------------------

    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>>;

    fn insert_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    fn delete_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes only the phase and the rank of a task.
    fn set_task_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()>;

    /// Writes the columns of a task that a lock changes: phase, attempt, node, fence, end of the lease and start time.
    fn write_task_lock(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes all columns that may change while a task is unfinished: all except its numbers, event, order, grouping
    /// and score.
    fn update_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes only the lane, the concurrency group and the key bucket of a task.
    fn set_task_grouping(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes only the concurrency group of a task.
    fn set_concurrency_group(&mut self, seq: TaskSeq, concurrency_group: Option<i64>) -> TableResult<()>;

    fn set_task_score(&mut self, seq: TaskSeq, score: i64) -> TableResult<()>;

    /// Sets when a worker's lease ends.
    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()>;

    /// Invalidates the cached copy of a changed task on other nodes.
    fn invalidate_task_on_peers(&mut self, seq: TaskSeq);

    /// Returns the task of a lane with the smallest position.
    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>>;

    /// Lists the tasks in a lane by position.
    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>>;

    /// Lists the tasks that count against the limit of a concurrency group: those that are ready, scheduled or locked.
    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        concurrency_group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>>;

    /// Returns the oldest blocked task of a concurrency group.
    fn find_oldest_blocked_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
    ) -> TableResult<Option<WaitingTask>>;

    /// Lists the first ready tasks of each queue by score, rank and age, as many as its share.
    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists all scheduled tasks by score, rank and age.
    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists delayed tasks whose due time has come, the earliest first.
    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>>;

    /// Returns the earliest due time of the delayed tasks.
    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>>;

    /// Lists the gated tasks of an event, which wait for its synchronous tasks, by sync stage and age.
    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>>;

    /// Returns the first synchronous task of an event that has an earlier sync stage and is waiting, scheduled or
    /// locked. With `only_untried`, tasks that run out of order or whose attempts have ended (other than by a release)
    /// do not count.
    fn find_unfinished_sync_task_before_stage(
        &mut self,
        event: EventId,
        sync_stage: i64,
        only_untried: bool,
    ) -> TableResult<Option<TaskSeq>>;

    /// Lists the tasks that a node has locked, by age.
    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists tasks locked by workers since `since` whose leases ended before `now`.
    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists tasks of a queue in these phases, by age.
    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>>;

    /// Lists locked tasks of a handler.
    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>>;

    /// Lists the unfinished tasks of a queue, each with its priority and creation time.
    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>>;

    /// Lists tasks of a queue, up to locked, that have an object and no lane, with the object's key: scheduled and
    /// locked tasks first, then by age.
    fn list_tasks_to_regroup(&mut self, queue: QueueId)
    -> TableResult<Vec<(WaitingTask, TaskPhase, String)>>;

    /// Counts the ready tasks of its queue that come before a task, up to `limit`.
    fn count_ready_tasks_before(&mut self, task_row: &ActiveTaskRow, limit: u64) -> TableResult<u64>;

    // --- archived tasks, attempts, logs ------------------------------------------------------------------------

    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>>;

    fn insert_archived_task(&mut self, archived_row: &ArchivedTaskRow) -> TableResult<()>;

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()>;

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()>;

    /// Appends lines to a task's log.
    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()>;

    /// Returns a task, active or archived, with its attempts, as readers see it.
    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>>;

    // --- queues and handlers -----------------------------------------------------------------------------------

    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>>;

    /// Creates a queue without tasks; returns its id.
    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId>;

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()>;

    /// Returns the score and the number of the task that a queue would run next.
    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>>;

    /// Lists the smallest and the largest rank for each score and key bucket of a queue's ready tasks.
    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>>;

    /// Lists all handlers ever registered, by number; the numbers are 1, 2, 3, ….
    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>>;

    /// Makes these the defined handlers; all others become undefined.
    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()>;

    fn write_limiter_state(&mut self, handler: HandlerId, state: &LimiterAndBreakerState) -> TableResult<()>;

    /// Reads the ranges of the journal in which a handler was not defined, as written by
    /// [`Tables::write_missed_event_ranges_json`].
    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String>;

    fn write_missed_event_ranges_json(&mut self, handler: HandlerId, gaps: &str) -> TableResult<()>;

    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>>;

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()>;

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()>;

    // --- rules, nodes, audit -----------------------------------------------------------------------------------

    /// Lists all rules by scope, tenant and kind.
    fn list_rules(&mut self) -> TableResult<Vec<Rule>>;

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()>;

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()>;

    /// Lists live nodes and the latest former ones, newest first.
    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>>;

    /// Lists nodes that have joined and have neither left nor been declared gone.
    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>>;

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId>;

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()>;

    /// Records a heartbeat; returns `false` if the node has been declared gone.
    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool>;

    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()>;

    /// Lists live nodes that sent their last heartbeat before `before`.
    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>>;

    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()>;

    // --- chains and orders -------------------------------------------------------------------------------------

    /// Lists all chains ever defined, by path.
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>>;

    /// Makes these the defined chains; all others become undefined. Operator settings stay.
    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()>;

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()>;

    /// Returns a chain whose orders have yet to be re-evaluated, and the number of the order after which to continue.
    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>>;

    /// Records that the orders of a chain after this number have yet to be re-evaluated; `None`: no orders have.
    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()>;

    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>>;

    /// Returns the tenant's order with this key.
    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>>;

    /// Lists the numbers of a chain's orders after this one.
    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>>;

    fn insert_order(&mut self, number: i64, order: &Order) -> TableResult<()>;

    /// Writes the columns of an order that may change: node, value, times, task and whether it is suspended.
    fn update_order(&mut self, order: &OrderRow) -> TableResult<()>;

    fn delete_order(&mut self, number: i64) -> TableResult<()>;

    /// Returns the recorded outcome of the last order with this key.
    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>>;

    /// Records the outcome of an order, replacing that of an earlier order with the same tenant and key.
    fn write_ended_order(&mut self, ended: &EndedOrder) -> TableResult<()>;

    // --- schedules ---------------------------------------------------------------------------------------------

    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>>;

    /// Starts a schedule now, or restarts it with another expression. It counts as registered now.
    fn start_schedule(&mut self, name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()>;

    /// Records that a node has registered these schedules now.
    fn record_schedules_registered(&mut self, names: &[String], now: Timestamp) -> TableResult<()>;

    fn delete_schedule(&mut self, name: &str) -> TableResult<()>;

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>>;

    /// Writes the row of a planned time and the schedule's progress. `needs_catch_up`: the time was skipped and is to
    /// be caught up later.
    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()>;

    /// Makes the first planned time after `up_to` that was skipped because of a rule the schedule's next one to catch
    /// up.
    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()>;

    /// Lists the unfinished tasks of a schedule's last event, by age.
    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>>;

    // --- retention ---------------------------------------------------------------------------------------------

    /// Deletes some expired events after `after` that no unfinished task needs. Returns how many, and after which event
    /// to continue if there may be more.
    fn delete_expired_events(
        &mut self,
        after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)>;

    /// Deletes some archived tasks with their attempts and logs: the `surplus` oldest ones, and those that ended before
    /// `before`. Returns how many, and whether there may be more.
    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)>;

    /// Deletes some idempotency records older than `before`; returns whether there may be more.
    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool>;

    /// Deletes some outcomes of orders that ended before `before`; returns whether there may be more.
    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool>;

    /// Deletes some rows older than `before` of the fire ledger, of former nodes and of the audit; returns whether
    /// there may be more.
    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool>;

    /// Lists objects whose `checked` id is at most `up_to`, the smallest first. A new object is checked at its first
    /// event, an object copied from another store at 0.
    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>>;

    /// Sets the `checked` ids of objects; [`Tables::write_object`] leaves them unchanged.
    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()>;

    /// Sets the `checked` ids of these events' objects to `checked`, where they are at most `up_to`.
    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()>;

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()>;

    /// Lists events after `after`, up to `up_to`, that unfinished tasks need, in order of id, and the event after which
    /// to continue if there may be more.
    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)>;

    // --- prefetching -------------------------------------------------------------------------------------------

    /// Prefetches events and orders that will be read one by one, where each read would cost a round trip.
    fn prefetch_task_subjects(&mut self, _events: &[EventId], _orders: &[i64]) -> TableResult<()> {
        Ok(())
    }
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
