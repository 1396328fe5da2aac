//! Implements the [`Tables`] of the common store on the file. Each operation runs one or a few SQL statements.

pub(crate) mod archived_tasks;
pub(crate) mod chains;
pub(crate) mod counters;
pub(crate) mod events;
mod objects;
mod queues;
pub(crate) mod registry;
mod retention;
pub(crate) mod row;
pub(crate) mod schedules;
pub(crate) mod tasks;

use std::collections::BTreeMap;

use pointsman_core::chain::{Chain, ChainPath, ChainState, OrderKey};
use pointsman_core::fire::Fire;
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::store::{AuditEntry, IdempotencyKey, NodeCapabilities, NodeId, NodeView};
use pointsman_core::task::{LogLine, QueueSubject, Task, TaskIdNamespace};
use pointsman_core::{
    Event, EventId, HandlerDef, Rule, RuleKind, RuleScope, ScheduleName, TaskSeq, Tenant, Timestamp,
};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, ChainRow, HandlerId, HandlerRow, IdleObject, LaneHead,
    ObjectRow, OrderRow, QueueCounts, QueueId, QueueRow, RankRange, ScheduleRow, SyncGatedTask, TaskPhase,
    WaitingTask,
};
use pointsman_store::tables::{Counters, Tables};
use rusqlite::Connection;

use crate::error::TableResult;
use crate::{read_nodes, read_tasks};

/// The tables of the file, as its one writer uses them.
#[derive(Debug)]
pub struct SqliteTables {
    conn: Connection,
    stored_counters: counters::StoredCounters,
}

impl SqliteTables {
    pub(crate) fn new(conn: Connection) -> Self {
        Self { conn, stored_counters: counters::StoredCounters::default() }
    }

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }
}

impl Tables for SqliteTables {
    fn read_counters(&mut self) -> TableResult<Counters> {
        self.stored_counters.read_counters(&self.conn)
    }

    fn write_counters(&mut self, counters: &Counters) -> TableResult<()> {
        self.stored_counters.write_counters(&self.conn, counters)
    }

    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        counters::read_task_id_namespace(&self.conn)
    }

    fn read_hash_salt(&mut self) -> TableResult<u64> {
        counters::read_hash_salt(&self.conn)
    }

    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        counters::read_meta_value(&self.conn, name)
    }

    fn write_named_text(&mut self, name: &str, text: &str) -> TableResult<()> {
        counters::write_meta_value(&self.conn, name, text)
    }

    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>> {
        events::read_idempotency_record(&self.conn, tenant, key)
    }

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        answer: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        events::insert_idempotency_record(&self.conn, idempotency, answer, now)
    }

    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        events::insert_event(&self.conn, event, number, first_task, task_count)
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        events::read_event(&self.conn, id)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        events::list_events_between(&self.conn, from, to, limit)
    }

    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>> {
        events::find_event_near_number(&self.conn, number)
    }

    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId> {
        events::find_last_event_up_to(&self.conn, id)
    }

    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        objects::read_object(&self.conn, tenant, key)
    }

    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()> {
        objects::write_object(&self.conn, tenant, key, object)
    }

    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        tasks::read_active_task(&self.conn, seq)
    }

    fn insert_active_task(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        tasks::insert_active_task(&self.conn, active_task)
    }

    fn delete_active_task(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        tasks::delete_active_task(&self.conn, active_task.seq)
    }

    fn set_task_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()> {
        tasks::set_task_phase(&self.conn, seq, phase, rank)
    }

    fn write_task_lock(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        tasks::write_task_lock(&self.conn, active_task)
    }

    fn update_active_task(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        tasks::update_active_task(&self.conn, active_task)
    }

    fn set_task_grouping(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        tasks::set_task_grouping(&self.conn, active_task)
    }

    fn set_concurrency_group(&mut self, seq: TaskSeq, concurrency_group: Option<i64>) -> TableResult<()> {
        tasks::set_concurrency_group(&self.conn, seq, concurrency_group)
    }

    fn set_task_score(&mut self, seq: TaskSeq, score: i64) -> TableResult<()> {
        tasks::set_task_score(&self.conn, seq, score)
    }

    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        tasks::set_lease_end(&self.conn, seq, until)
    }

    /// Does nothing: no other process has the file, so there are no caches to invalidate.
    fn invalidate_task_on_peers(&mut self, _seq: TaskSeq) {}

    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>> {
        tasks::read_lane_head(&self.conn, lane)
    }

    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        tasks::list_lane_tasks(&self.conn, lane)
    }

    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        concurrency_group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        tasks::list_counted_tasks_of_concurrency_group(&self.conn, concurrency_group, limit)
    }

    fn find_oldest_blocked_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
    ) -> TableResult<Option<WaitingTask>> {
        tasks::find_oldest_blocked_in_concurrency_group(&self.conn, concurrency_group)
    }

    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        tasks::list_first_ready_tasks_of_queues(&self.conn, shares)
    }

    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>> {
        tasks::list_scheduled_tasks(&self.conn)
    }

    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        tasks::list_due_tasks(&self.conn, now, limit)
    }

    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>> {
        tasks::read_earliest_due_time(&self.conn)
    }

    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        tasks::list_sync_gated_tasks(&self.conn, event)
    }

    fn find_unfinished_sync_task_before_stage(
        &mut self,
        event: EventId,
        sync_stage: i64,
        only_untried: bool,
    ) -> TableResult<Option<TaskSeq>> {
        tasks::find_unfinished_sync_task_before_stage(&self.conn, event, sync_stage, only_untried)
    }

    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        tasks::list_tasks_locked_by_node(&self.conn, node)
    }

    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        tasks::list_expired_worker_leases(&self.conn, since, now)
    }

    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        tasks::list_tasks_in_phases(&self.conn, queue, phases, limit)
    }

    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        tasks::list_running_tasks_of_handler(&self.conn, handler, limit)
    }

    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        tasks::list_tasks_to_rescore(&self.conn, queue)
    }

    fn list_tasks_to_regroup(
        &mut self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        tasks::list_tasks_to_regroup(&self.conn, queue)
    }

    fn count_ready_tasks_before(&mut self, active_task: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        tasks::count_ready_tasks_before(&self.conn, active_task, limit)
    }

    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        archived_tasks::read_archived_task(&self.conn, seq)
    }

    fn insert_archived_task(&mut self, archived_task: &ArchivedTaskRow) -> TableResult<()> {
        archived_tasks::insert_archived_task(&self.conn, archived_task)
    }

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        archived_tasks::delete_archived_task(&self.conn, seq)
    }

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()> {
        archived_tasks::write_attempt(&self.conn, attempt)
    }

    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> {
        archived_tasks::append_log_lines(&self.conn, task, lines)
    }

    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        read_tasks::read_task(&self.conn, seq)
    }

    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        queues::list_queues(&self.conn)
    }

    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        queues::insert_queue(&self.conn, handler, tenant, subject)
    }

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        queues::write_queue_counts(&self.conn, counts)
    }

    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        queues::read_queue_head(&self.conn, queue)
    }

    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        queues::list_rank_ranges(&self.conn, queue)
    }

    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        queues::list_handlers(&self.conn)
    }

    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()> {
        queues::set_defined_handlers(&self.conn, handlers)
    }

    fn write_limiter_state(
        &mut self,
        handler: HandlerId,
        limiter_state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        queues::write_limiter_state(&self.conn, handler, limiter_state)
    }

    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String> {
        queues::read_missed_event_ranges_json(&self.conn, handler)
    }

    fn write_missed_event_ranges_json(&mut self, handler: HandlerId, gaps: &str) -> TableResult<()> {
        queues::write_missed_event_ranges_json(&self.conn, handler, gaps)
    }

    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        registry::list_configured_object_digests(&self.conn)
    }

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()> {
        registry::write_configured_object_digest(&self.conn, key, digest)
    }

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()> {
        registry::delete_configured_object_digest(&self.conn, key)
    }

    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        registry::list_rules(&self.conn)
    }

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()> {
        registry::write_rule(&self.conn, rule)
    }

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()> {
        registry::delete_rule(&self.conn, kind, scope, tenant)
    }

    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        read_nodes::list_nodes(&self.conn)
    }

    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>> {
        registry::list_live_nodes(&self.conn)
    }

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        registry::insert_node(&self.conn, name, now)
    }

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> {
        registry::update_node_capabilities(&self.conn, node, capabilities)
    }

    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        registry::record_heartbeat(&self.conn, node, now)
    }

    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()> {
        registry::mark_node_gone(&self.conn, node)
    }

    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        registry::list_silent_nodes(&self.conn, before)
    }

    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        registry::insert_audit_entry(&self.conn, entry)
    }

    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        chains::list_chains(&self.conn)
    }

    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        chains::set_defined_chains(&self.conn, chains)
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        chains::write_chain_state(&self.conn, path, state)
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        chains::find_reevaluation_cursor(&self.conn)
    }

    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()> {
        chains::write_reevaluation_cursor(&self.conn, path, after)
    }

    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        chains::read_order(&self.conn, number)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        chains::find_order_by_key(&self.conn, tenant, key)
    }

    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> {
        chains::read_ended_order(&self.conn, tenant, key)
    }

    fn write_ended_order(&mut self, ended: &EndedOrder) -> TableResult<()> {
        chains::write_ended_order(&self.conn, ended)
    }

    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool> {
        retention::delete_ended_orders(&self.conn, before)
    }

    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        chains::list_order_numbers_after(&self.conn, path, number, limit)
    }

    fn insert_order(&mut self, number: i64, order: &Order) -> TableResult<()> {
        chains::insert_order(&self.conn, number, order)
    }

    fn update_order(&mut self, order: &OrderRow) -> TableResult<()> {
        chains::update_order(&self.conn, order)
    }

    fn delete_order(&mut self, number: i64) -> TableResult<()> {
        chains::delete_order(&self.conn, number)
    }

    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        schedules::list_schedules(&self.conn)
    }

    fn start_schedule(&mut self, name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()> {
        schedules::start_schedule(&self.conn, name, expression, now)
    }

    fn record_schedules_registered(&mut self, names: &[String], now: Timestamp) -> TableResult<()> {
        schedules::record_schedules_registered(&self.conn, names, now)
    }

    fn delete_schedule(&mut self, name: &str) -> TableResult<()> {
        schedules::delete_schedule(&self.conn, name)
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>> {
        schedules::read_fire(&self.conn, schedule, planned)
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> {
        schedules::write_fire(&self.conn, schedule, fire, needs_catch_up)
    }

    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        schedules::advance_catch_up(&self.conn, schedule, up_to)
    }

    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        schedules::list_unfinished_tasks_of_last_event(&self.conn, schedule)
    }

    fn delete_expired_events(
        &mut self,
        after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        // The low-water mark is stored first, so that no read finds deleted events above it.
        self.stored_counters.set_expired_up_to(&self.conn, expired_up_to)?;
        retention::delete_expired_events(&self.conn, after, expired_up_to)
    }

    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> {
        retention::delete_archived_tasks(&self.conn, surplus, before)
    }

    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool> {
        retention::delete_idempotency_records(&self.conn, before)
    }

    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool> {
        retention::delete_expired_fires_nodes_audit(&self.conn, before)
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        objects::list_idle_objects(&self.conn, up_to, limit)
    }

    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        objects::mark_objects_in_use(&self.conn, objects)
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()> {
        objects::mark_objects_of_events_in_use(&self.conn, events, up_to, checked)
    }

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        objects::delete_objects(&self.conn, objects)
    }

    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)> {
        objects::list_events_of_unfinished_tasks(&self.conn, after, up_to, limit)
    }
}
