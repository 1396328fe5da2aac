//! What a database must be able to do for the verbs: keep rows, and find them again.
//!
//! One thread calls these, inside one transaction. A database that lies across a wire may hold writes back and send
//! them together, as long as every read sees what was written before it. All decisions are above this line; whoever
//! implements it decides nothing.

use std::collections::BTreeMap;

use pointsman_core::chain::{Chain, ChainPath, ChainState, OrderKey};
use pointsman_core::fire::Fire;
use pointsman_core::limit::Pace;
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::store::{Abilities, Deed, Idempotency, NodeId, NodeView, StoreError};
use pointsman_core::task::{LogLine, QueueOf, Realm, Task, TaskId};
use pointsman_core::{
    Event, EventId, HandlerDef, Place, Rule, RuleKind, ScheduleName, TaskSeq, Tenant, Timestamp,
};

use crate::error::{Fault, Result};
use crate::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, ChainRow, GatedTask, HandlerId, HandlerRow, IdleObject,
    LaneHead, ObjectRow, OrderRow, QueueCounts, QueueId, QueueRow, RankRange, ScheduleRow, TaskPhase,
    WaitingTask,
};
use crate::writer::Txn;

/// How far everything has come. Numbers that a commit has given out are never given out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The id of the newest event, or of the last one that was forgotten.
    pub last_event: EventId,
    /// Observers see nothing at or below this.
    pub expired_up_to: EventId,
    pub last_task: i64,
    /// The tokens of attempts.
    pub last_fence: i64,
    pub last_object: i64,
    pub last_order: i64,
    /// How many events were ever journaled.
    pub journaled_events: i64,
    /// How many ended tasks the history holds.
    pub archived_tasks: i64,
    /// Not later than the earliest due time of a delayed task.
    pub next_due: Option<Timestamp>,
}

/// What a group of jobs will probably look at, so that it can be fetched at once.
#[derive(Debug, Default)]
pub struct ReadSet {
    /// Objects, and the handlers whose lanes of them will be looked at.
    pub objects: Vec<(Tenant, String, HandlerId)>,
    /// Lanes whose first tasks will be looked at.
    pub lanes: Vec<i64>,
    pub idempotency_keys: Vec<(Tenant, String)>,
    /// Unfinished tasks.
    pub tasks: Vec<TaskSeq>,
    /// Who holds what in an outbox, by the names they have there: it is to be journaled first.
    pub outbox_entries: Vec<(String, Vec<u8>)>,
}

pub trait Tables: 'static {
    // --- numbers and names -------------------------------------------------------------------------------------

    fn read_counters(&self) -> Result<Counters>;

    /// Called before each commit with what has been given out by then.
    fn write_counters(&self, counters: &Counters) -> Result<()>;

    /// What the public names of this store's tasks are made with.
    fn read_task_id_namespace(&self) -> Result<Realm>;

    /// A secret number that is mixed into others, so that nobody can choose names that share one.
    fn read_salt(&self) -> Result<u64>;

    /// A text that is kept under a name.
    fn read_named_text(&self, name: &str) -> Result<Option<String>>;

    fn write_named_text(&self, name: &str, text: &str) -> Result<()>;

    // --- events ------------------------------------------------------------------------------------------------

    /// The answer that was given for this key, with the digest of what had been sent.
    fn read_idempotency_record(&self, tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>>;

    fn write_idempotency_record(&self, idempotency: &Idempotency, answer: &str, now: Timestamp)
    -> Result<()>;

    /// Writes an event, which is the `number`th of all, and the numbers of its tasks: `tasks` in a row from
    /// `first_task` on.
    fn insert_event(&self, event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> Result<()>;

    fn read_event(&self, id: EventId) -> Result<Option<Event>>;

    /// Events from one id to another, both included, the oldest first, at most so many.
    fn list_events_between(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>>;

    /// An event whose number is not above this one, and not many below it.
    fn find_event_by_number(&self, number: i64) -> Result<Option<EventId>>;

    /// The last event that is kept, of those up to this id; zero if there is none.
    fn find_last_event_up_to(&self, id: EventId) -> Result<EventId>;

    fn read_object(&self, tenant: &Tenant, key: &str) -> Result<Option<ObjectRow>>;

    fn write_object(&self, tenant: &Tenant, key: &str, object: &ObjectRow) -> Result<()>;

    // --- unfinished tasks --------------------------------------------------------------------------------------

    fn read_active_task(&self, seq: TaskSeq) -> Result<Option<ActiveTaskRow>>;

    fn insert_active_task(&self, task_row: &ActiveTaskRow) -> Result<()>;

    fn delete_active_task(&self, task_row: &ActiveTaskRow) -> Result<()>;

    /// Writes phase and rank alone.
    fn set_task_phase(&self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> Result<()>;

    /// Writes what a lock changes: phase, attempt, node, fence, until and when it started.
    fn write_task_lock(&self, task_row: &ActiveTaskRow) -> Result<()>;

    /// Writes what may change in a task's life: all but its numbers, its event, its order, its track and its score.
    fn update_active_task(&self, task_row: &ActiveTaskRow) -> Result<()>;

    /// Writes lane, crowd and bucket.
    fn set_task_grouping(&self, task_row: &ActiveTaskRow) -> Result<()>;

    /// Writes the crowd alone.
    fn set_concurrency_group(&self, seq: TaskSeq, concurrency_group: Option<i64>) -> Result<()>;

    fn set_task_score(&self, seq: TaskSeq, score: i64) -> Result<()>;

    /// A worker's lease runs until then.
    fn set_lease_end(&self, seq: TaskSeq, until: Timestamp) -> Result<()>;

    /// A task that another node may hold in its memory was changed.
    fn invalidate_task_on_peers(&self, seq: TaskSeq);

    /// The first of the tasks that stand in a lane: the one with the least place.
    fn read_lane_head(&self, lane: i64) -> Result<Option<LaneHead>>;

    /// All that stand in a lane, by place.
    fn list_lane_tasks(&self, lane: i64) -> Result<Vec<(TaskSeq, QueueId)>>;

    /// Those of a crowd that have their turn (ready, scheduled or locked), at most so many.
    fn list_active_in_concurrency_group(&self, concurrency_group: i64, most: usize) -> Result<Vec<TaskSeq>>;

    /// The oldest blocked one of a crowd.
    fn find_oldest_blocked_in_concurrency_group(&self, concurrency_group: i64)
    -> Result<Option<WaitingTask>>;

    /// The best of each queue, as many as is said: by score, rank and age.
    fn list_ready_tasks(&self, shares: &[(QueueId, i64)]) -> Result<Vec<ActiveTaskRow>>;

    /// All that are scheduled, by score, rank and age.
    fn list_scheduled_tasks(&self) -> Result<Vec<ActiveTaskRow>>;

    /// Delayed tasks whose time has come, the earliest first, at most so many.
    fn list_due_tasks(&self, now: Timestamp, most: usize) -> Result<Vec<WaitingTask>>;

    /// When the earliest of the delayed tasks falls due.
    fn read_earliest_due(&self) -> Result<Option<Timestamp>>;

    /// Those of an event that wait behind its synchronous tasks, by stage and age.
    fn list_gated_tasks(&self, event: EventId) -> Result<Vec<GatedTask>>;

    /// The first of an event's own synchronous tasks before this stage that is unfinished (up to locked). Where
    /// `fresh`, only those count that are not late and have had no attempt that ended otherwise than by a release.
    fn find_unfinished_sync_task_before(
        &self,
        event: EventId,
        stage: i64,
        fresh: bool,
    ) -> Result<Option<TaskSeq>>;

    /// What a node holds locked, by age.
    fn list_tasks_locked_by(&self, node: NodeId) -> Result<Vec<ActiveTaskRow>>;

    /// What is locked by workers who got it since then and whose leases ended before `now`.
    fn list_expired_worker_leases(&self, since: Timestamp, now: Timestamp) -> Result<Vec<ActiveTaskRow>>;

    /// A queue's tasks in these phases, by age, at most so many.
    fn list_tasks_in_phases(&self, queue: QueueId, phases: &[TaskPhase], most: usize)
    -> Result<Vec<TaskSeq>>;

    /// Some locked tasks of a handler.
    fn list_running_tasks(&self, handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>>;

    /// A queue's unfinished tasks with their priority and the time they were made.
    fn list_tasks_to_rescore(&self, queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>>;

    /// A queue's tasks without a lane that have an object, up to locked, with its key: those scheduled or locked first,
    /// then by age.
    fn list_tasks_to_regroup(&self, queue: QueueId) -> Result<Vec<(WaitingTask, TaskPhase, String)>>;

    /// How many ready tasks of its queue come before this one, counted up to `most`.
    fn count_ready_tasks_before(&self, task_row: &ActiveTaskRow, most: u64) -> Result<u64>;

    // --- ended tasks, attempts, logs ---------------------------------------------------------------------------

    fn read_archived_task(&self, seq: TaskSeq) -> Result<Option<ArchivedTaskRow>>;

    fn insert_archived_task(&self, archived_row: &ArchivedTaskRow) -> Result<()>;

    fn delete_archived_task(&self, seq: TaskSeq) -> Result<()>;

    fn write_attempt(&self, attempt: &AttemptRow<'_>) -> Result<()>;

    /// Adds lines at the end of a task's log.
    fn append_log_lines(&self, task: TaskSeq, lines: Vec<LogLine>) -> Result<()>;

    /// A task as its readers see it, wherever it lies, with its attempts.
    fn read_task_with_attempts(&self, seq: TaskSeq) -> Result<Option<Task>>;

    // --- queues and handlers -----------------------------------------------------------------------------------

    fn list_queues(&self) -> Result<Vec<QueueRow>>;

    /// Makes a queue without tasks; answers its number.
    fn create_queue(&self, handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId>;

    fn write_queue_counts(&self, counts: &[(QueueId, QueueCounts)]) -> Result<()>;

    /// The score and the number of the task that a queue would give next.
    fn read_queue_head(&self, queue: QueueId) -> Result<Option<(i64, TaskSeq)>>;

    /// For each score and bucket of a queue's ready tasks, the least and the greatest rank.
    fn list_rank_ranges(&self, queue: QueueId) -> Result<Vec<RankRange>>;

    /// All handlers that were ever registered, by number; the numbers are 1, 2, 3, ….
    fn list_handlers(&self) -> Result<Vec<HandlerRow>>;

    /// Makes these the handlers that are defined; the others are not.
    fn write_handlers(&self, handlers: &[HandlerDef]) -> Result<()>;

    fn write_limiter_state(&self, handler: HandlerId, pace: &Pace) -> Result<()>;

    /// The stretches of the journal in which a handler was not there, as [`Tables::write_handler_gaps`] got them.
    fn read_handler_gaps(&self, handler: HandlerId) -> Result<String>;

    fn write_handler_gaps(&self, handler: HandlerId, gaps: &str) -> Result<()>;

    fn list_file_digests(&self) -> Result<BTreeMap<String, String>>;

    fn write_file_digest(&self, key: &str, digest: &str) -> Result<()>;

    fn delete_file_digest(&self, key: &str) -> Result<()>;

    // --- rules, nodes, deeds -----------------------------------------------------------------------------------

    /// By place, tenant and kind.
    fn list_rules(&self) -> Result<Vec<Rule>>;

    fn write_rule(&self, rule: &Rule) -> Result<()>;

    fn delete_rule(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<()>;

    /// The nodes that live, and those that were heard of last, newest first.
    fn list_nodes(&self) -> Result<Vec<NodeView>>;

    /// The nodes that have joined and have neither left nor been given up.
    fn list_live_nodes(&self) -> Result<Vec<NodeId>>;

    fn insert_node(&self, name: &str, now: Timestamp) -> Result<NodeId>;

    fn write_node_capabilities(&self, node: NodeId, abilities: &Abilities) -> Result<()>;

    /// `false`: it has been given up.
    fn record_node_heartbeat(&self, node: NodeId, now: Timestamp) -> Result<bool>;

    fn mark_node_gone(&self, node: NodeId) -> Result<()>;

    /// Live nodes that were last heard of before then.
    fn list_nodes_silent_since(&self, before: Timestamp) -> Result<Vec<NodeId>>;

    fn insert_audit_entry(&self, deed: &Deed) -> Result<()>;

    // --- chains and orders -------------------------------------------------------------------------------------

    /// All chains that were ever defined, by path.
    fn list_chains(&self) -> Result<Vec<ChainRow>>;

    /// Makes these the chains that are defined; the others are not. How they are set stays.
    fn write_chains(&self, chains: &[Chain]) -> Result<()>;

    fn write_chain_state(&self, path: &ChainPath, state: &ChainState) -> Result<()>;

    /// A chain whose orders are to be looked at again, and behind which one to go on.
    fn find_pending_reevaluation(&self) -> Result<Option<(ChainPath, i64)>>;

    fn write_pending_reevaluation(&self, path: &ChainPath, after: Option<i64>) -> Result<()>;

    fn read_order(&self, n: i64) -> Result<Option<OrderRow>>;

    /// A tenant's order of this key.
    fn find_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<OrderRow>>;

    /// The numbers of a chain's orders behind this one, at most so many.
    fn list_order_numbers_after(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>>;

    fn insert_order(&self, n: i64, order: &Order) -> Result<()>;

    /// Writes what may change: node, value, times, task and whether it is suspended.
    fn update_order(&self, order: &OrderRow) -> Result<()>;

    fn delete_order(&self, n: i64) -> Result<()>;

    /// How the last order of this key ended, as far as it is remembered.
    fn read_ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>>;

    /// Remembers how an order ended, in the place of an earlier one of the same tenant and key.
    fn write_ended_order(&self, ended: &EndedOrder) -> Result<()>;

    // --- schedules ---------------------------------------------------------------------------------------------

    fn list_schedules(&self) -> Result<BTreeMap<String, ScheduleRow>>;

    /// A schedule begins now, or anew with another expression. It is named now.
    fn start_schedule(&self, name: &ScheduleName, expression: &str, now: Timestamp) -> Result<()>;

    /// These were named by somebody now.
    fn record_schedules_registered(&self, names: &[String], now: Timestamp) -> Result<()>;

    fn delete_schedule(&self, name: &str) -> Result<()>;

    fn read_fire(&self, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>>;

    /// Writes the row of a planned time, and how far its schedule has come by it; `unmet` if it is to be made up for.
    fn write_fire(&self, schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()>;

    /// The first planned time after `up_to` that was skipped because a rule held the schedule becomes its unmet one.
    fn advance_catch_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()>;

    /// The tasks of a schedule's last event that have not ended, by age.
    fn list_unfinished_schedule_tasks(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>>;

    // --- forgetting --------------------------------------------------------------------------------------------

    /// Removes some forgotten events, after this one, that no unfinished task needs. Answers how many, and behind which
    /// one to go on if there may be more.
    fn delete_expired_events(&self, after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)>;

    /// Removes some of the ended tasks, with their attempts and logs: the oldest that are too many, and those that ended
    /// before then. Answers how many, and whether there may be more.
    fn delete_expired_archived_tasks(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)>;

    /// Removes some answers that were given before then; whether there may be more.
    fn delete_expired_idempotency_records(&self, before: Timestamp) -> Result<bool>;

    /// Deletes some of the orders that ended before then; whether there may be more.
    fn delete_expired_ended_orders(&self, before: Timestamp) -> Result<bool>;

    /// Removes some rows of the fire ledger, nodes that are gone and deeds from before then; whether there may be more.
    fn delete_expired_records(&self, before: Timestamp) -> Result<bool>;

    /// Objects whose `checked` id is not above this one, the least first, at most `most`. A new object is checked at its
    /// first event, one that was copied from another store at 0.
    fn list_idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>>;

    /// Sets the `checked` ids of objects; [`Tables::write_object`] leaves them as they are.
    fn set_objects_checked(&self, objects: &[(Tenant, String, EventId)]) -> Result<()>;

    /// Sets the `checked` ids of these events' objects that are not above `up_to` so far.
    fn set_event_objects_checked(&self, events: &[EventId], up_to: EventId, checked: EventId) -> Result<()>;

    fn delete_objects(&self, objects: &[IdleObject]) -> Result<()>;

    /// Events behind `after` and up to `up_to` that unfinished tasks need, in their order, at most `most`, and behind which
    /// event to continue, if there may be more.
    fn list_events_in_use(
        &self,
        after: EventId,
        up_to: EventId,
        most: usize,
    ) -> Result<(Vec<EventId>, Option<EventId>)>;

    // --- fetching many at once ---------------------------------------------------------------------------------

    /// These events and orders will be read one after the other. Where that costs a way over the wire each, they are
    /// better fetched now.
    fn prefetch_subjects(&self, _events: &[EventId], _orders: &[i64]) -> Result<()> {
        Ok(())
    }
}

/// A database with its tables, as the one thread that writes sees it.
pub trait Backend: Send + 'static {
    type Tables: Tables;

    /// Begins a transaction, and tells how the memory beside it stands.
    fn begin(&mut self, read_set: ReadSet) -> Result<CacheState>;

    /// Does what comes before all jobs of a transaction: an object's events that lie in an outbox come before its next.
    /// Answers whether it is done with that. If not, jobs that [`Backend::must_postpone`] names come again in the next
    /// transaction, and the others go on.
    fn drain_outboxes_first(_txn: &mut Txn<'_, Self::Tables>) -> Result<bool> {
        Ok(true)
    }

    /// Whether a job that will look at this cannot be done yet.
    fn must_postpone(&self, _foreseen: &ReadSet) -> bool {
        false
    }

    /// More jobs have come while the right to write was waited for, and this is what they will look at.
    fn extend_read_set(&mut self, _foreseen: ReadSet) -> Result<()> {
        Ok(())
    }

    /// The tables, inside the transaction that was begun; or, before the first, to read what there is.
    fn tables(&self) -> &Self::Tables;

    /// When this answers, everything is durable.
    fn commit(&mut self) -> Result<()>;

    /// Leaves the transaction without a trace, whatever state it is in.
    fn roll_back(&mut self);

    /// What a fault means to callers.
    fn to_store_error(fault: &Fault) -> StoreError;

    /// How many rows were written since the start.
    fn rows_written(&self) -> u64;
}

/// How the memory beside the tables stands when a transaction begins.
#[derive(Debug)]
pub enum CacheState {
    /// Nobody else has written since.
    Fresh,
    /// Others have written, and this is what they changed.
    Stale(PeerChanges),
    /// It must be read again.
    Unknown,
}

/// What others have changed.
#[derive(Debug, Default)]
pub struct PeerChanges {
    pub counters: Counters,
    /// Queues as they are now.
    pub queues: Vec<QueueRow>,
    pub limiter_states: Vec<(HandlerId, Pace)>,
    /// Tasks that may be remembered otherwise than they are.
    pub stale_tasks: Vec<TaskSeq>,
}

/// The number behind a public id, if it is one of this store's.
pub fn decode_task_seq(task_id_namespace: Realm, id: &TaskId) -> Option<TaskSeq> {
    id.uuid().and_then(|uuid| task_id_namespace.seq(uuid))
}
