//! Implements the `Tables` trait by delegating to the methods in the other files.

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
use pointsman_store::error::TableResult;
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, ChainRow, HandlerId, HandlerRow, IdleObject, LaneHead,
    ObjectRow, OrderRow, QueueCounts, QueueId, QueueRow, RankRange, ScheduleRow, SyncGatedTask, TaskPhase,
    WaitingTask,
};
use pointsman_store::tables::{Counters, Tables};

use super::PgTables;
use super::cache::IdempotencyRecord;

/// Implements trait methods by calling a method that cannot fail and returns nothing.
macro_rules! delegate {
    ($($name:ident($($arg:ident: $arg_type:ty),*) -> $method:ident;)*) => {
        $(fn $name(&mut self, $($arg: $arg_type),*) -> TableResult<()> { Self::$method(self, $($arg),*); Ok(()) })*
    };
}

impl Tables for PgTables {
    fn read_counters(&mut self) -> TableResult<Counters> {
        Ok(self.commit_version_row.borrow().counters)
    }

    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        Self::find_task_id_namespace(self)
    }

    fn read_hash_salt(&mut self) -> TableResult<u64> {
        Self::find_salt(self)
    }

    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        Self::find_named_text(self, name)
    }

    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<IdempotencyRecord>> {
        Self::find_idempotency_record(self, tenant, key)
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        Self::find_event(self, id)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        Self::list_events_between(self, from, to, limit)
    }

    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>> {
        Self::find_event_near_number(self, number)
    }

    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId> {
        Self::find_last_event_up_to(self, id)
    }

    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        Self::find_object(self, tenant, key)
    }

    delegate! {
        write_counters(counters: &Counters) -> set_counters;
        write_named_text(name: &str, text: &str) -> upsert_named_text;
        write_idempotency_record(idempotency: &IdempotencyKey, response: &str, now: Timestamp) -> write_idempotency_record;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> insert_event;
        write_object(tenant: &Tenant, key: &str, object: &ObjectRow) -> write_object;
        insert_active_task(task_row: &ActiveTaskRow) -> insert_active_task;
        delete_active_task(task_row: &ActiveTaskRow) -> delete_active_task;
        set_task_phase(seq: TaskSeq, phase: TaskPhase, rank: i64) -> set_task_phase;
        write_task_lock(task_row: &ActiveTaskRow) -> write_task_lock;
        update_active_task(task_row: &ActiveTaskRow) -> update_active_task;
        set_task_grouping(task_row: &ActiveTaskRow) -> set_task_grouping;
        set_concurrency_group(seq: TaskSeq, concurrency_group: Option<i64>) -> set_concurrency_group;
        set_task_score(seq: TaskSeq, score: i64) -> set_task_score;
        insert_archived_task(archived_row: &ArchivedTaskRow) -> insert_archived_task;
        write_attempt(attempt: &AttemptRow<'_>) -> write_attempt;
        append_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> append_log_lines;
        write_missed_event_ranges_json(handler: HandlerId, gaps: &str) -> write_missed_event_ranges_json;
        write_configured_object_digest(key: &str, digest: &str) -> write_configured_object_digest;
        delete_configured_object_digest(key: &str) -> delete_configured_object_digest;
        write_rule(rule: &Rule) -> write_rule;
        delete_rule(kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> delete_rule;
        mark_node_gone(node: NodeId) -> mark_node_gone;
        insert_audit_entry(entry: &AuditEntry) -> insert_audit_entry;
        write_reevaluation_cursor(path: &ChainPath, after: Option<i64>) -> write_reevaluation_cursor;
        insert_order(number: i64, order: &Order) -> insert_order;
        update_order(order: &OrderRow) -> update_order;
        delete_order(number: i64) -> delete_order;
        write_ended_order(ended: &EndedOrder) -> write_ended_order;
        start_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> start_schedule;
        record_schedules_registered(names: &[String], now: Timestamp) -> record_schedules_registered;
        delete_schedule(name: &str) -> delete_schedule;
    }

    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        Self::find_active_task(self, seq)
    }

    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        Self::extend_lease(self, seq, until)
    }

    fn invalidate_task_on_peers(&mut self, seq: TaskSeq) {
        Self::invalidate_task_on_peers(self, seq);
    }

    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>> {
        Self::find_lane_head(self, lane)
    }

    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        Self::list_lane_tasks(self, lane)
    }

    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        concurrency_group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        Self::list_active_in_concurrency_group(self, concurrency_group, limit)
    }

    fn find_oldest_blocked_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
    ) -> TableResult<Option<WaitingTask>> {
        Self::find_oldest_blocked_in_concurrency_group(self, concurrency_group)
    }

    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        Self::list_first_ready_tasks_of_queues(self, shares)
    }

    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>> {
        Self::list_scheduled_tasks(self)
    }

    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        Self::list_due_tasks(self, now, limit)
    }

    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>> {
        Self::find_earliest_due(self)
    }

    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        Self::list_sync_gated_tasks(self, event)
    }

    fn find_unfinished_sync_task_before_stage(
        &mut self,
        event: EventId,
        sync_stage: i64,
        only_untried: bool,
    ) -> TableResult<Option<TaskSeq>> {
        Self::find_unfinished_sync_task_before_stage(self, event, sync_stage, only_untried)
    }

    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        Self::list_tasks_locked_by_node(self, node)
    }

    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        Self::list_expired_worker_leases(self, since, now)
    }

    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        Self::list_tasks_in_phases(self, queue, phases, limit)
    }

    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        Self::list_running_tasks_of_handler(self, handler, limit)
    }

    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        Self::list_tasks_to_rescore(self, queue)
    }

    fn list_tasks_to_regroup(
        &mut self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        Self::list_tasks_to_regroup(self, queue)
    }

    fn count_ready_tasks_before(&mut self, task_row: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        Self::count_ready_tasks_before(self, task_row, limit)
    }

    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        Self::find_archived_task(self, seq)
    }

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        Self::delete_archived_task(self, seq)
    }

    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        Self::find_task_with_attempts(self, seq)
    }

    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        Self::list_queues(self)
    }

    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        Self::create_queue(self, handler, tenant, subject)
    }

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        Self::write_queue_counts(self, counts)
    }

    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        Self::find_queue_head(self, queue)
    }

    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        Self::list_rank_ranges(self, queue)
    }

    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        Self::list_handlers(self)
    }

    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()> {
        Self::set_defined_handlers(self, handlers)
    }

    fn write_limiter_state(
        &mut self,
        handler: HandlerId,
        limiter_state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        Self::write_limiter_state(self, handler, limiter_state)
    }

    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String> {
        Self::read_missed_event_ranges_json(self, handler)
    }

    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        Self::list_configured_object_digests(self)
    }

    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        Self::list_rules(self)
    }

    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        Self::list_nodes(self)
    }

    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>> {
        Self::list_live_nodes(self)
    }

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        Self::insert_node(self, name, now)
    }

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> {
        Self::write_node_capabilities(self, node, capabilities)
    }

    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        Self::record_node_heartbeat(self, node, now)
    }

    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        Self::list_nodes_silent_since(self, before)
    }

    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        Self::list_chains(self)
    }

    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        Self::set_defined_chains(self, chains)
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        Self::write_chain_state(self, path, state)
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        Self::find_reevaluation_cursor(self)
    }

    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        Self::find_order(self, number)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        Self::find_order_by_key(self, tenant, key)
    }

    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        Self::list_order_numbers_after(self, path, number, limit)
    }

    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        Self::list_schedules(self)
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        Self::find_fire(self, schedule, planned_at)
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> {
        Self::write_fire(self, schedule, fire, needs_catch_up)
    }

    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        Self::advance_catch_up(self, schedule, up_to)
    }

    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        Self::list_unfinished_tasks_of_last_event(self, schedule)
    }

    fn delete_expired_events(
        &mut self,
        _after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        Ok((Self::expire_events(self, expired_up_to)?, None))
    }

    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> {
        Self::expire_archived_tasks(self, surplus, before)
    }

    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> {
        Self::find_ended_order(self, tenant, key)
    }

    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool> {
        Self::delete_expired_ended_orders(self, before)
    }

    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool> {
        Self::delete_expired_idempotency_records(self, before)
    }

    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool> {
        Self::delete_expired_fires_nodes_audit(self, before)
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        Self::list_idle_objects(self, up_to, limit)
    }

    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        Self::mark_objects_in_use(self, objects)
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()> {
        Self::mark_objects_of_events_in_use(self, events, up_to, checked)
    }

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        Self::delete_objects(self, objects)
    }

    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)> {
        Self::list_events_of_unfinished_tasks(self, after, up_to, limit)
    }

    fn prefetch_task_subjects(&mut self, events: &[EventId], orders: &[i64]) -> TableResult<()> {
        if !events.is_empty() {
            Self::prefetch_events(self, events)?;
        }
        if !orders.is_empty() {
            Self::prefetch_orders(self, orders)?;
        }
        Ok(())
    }
}
