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
        $(fn $name(&mut self, $($arg: $arg_type),*) -> TableResult<()> { (&*self).$method($($arg),*); Ok(()) })*
    };
}

impl Tables for PgTables {
    fn read_counters(&mut self) -> TableResult<Counters> {
        Ok(self.commit_version_row.borrow().counters)
    }

    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        (&*self).find_task_id_namespace()
    }

    fn read_hash_salt(&mut self) -> TableResult<u64> {
        (&*self).find_salt()
    }

    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        (&*self).find_named_text(name)
    }

    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<IdempotencyRecord>> {
        (&*self).find_idempotency_record(tenant, key)
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        (&*self).find_event(id)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        (&*self).list_events_between(from, to, limit)
    }

    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>> {
        (&*self).find_event_near_number(number)
    }

    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId> {
        (&*self).find_last_event_up_to(id)
    }

    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        (&*self).find_object(tenant, key)
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
        (&*self).find_active_task(seq)
    }

    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        (&*self).extend_lease(seq, until)
    }

    fn invalidate_task_on_peers(&mut self, seq: TaskSeq) {
        (&*self).invalidate_task_on_peers(seq);
    }

    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>> {
        (&*self).find_lane_head(lane)
    }

    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        (&*self).list_lane_tasks(lane)
    }

    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        concurrency_group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        (&*self).list_active_in_concurrency_group(concurrency_group, limit)
    }

    fn find_oldest_blocked_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
    ) -> TableResult<Option<WaitingTask>> {
        (&*self).find_oldest_blocked_in_concurrency_group(concurrency_group)
    }

    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        (&*self).list_first_ready_tasks_of_queues(shares)
    }

    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>> {
        (&*self).list_scheduled_tasks()
    }

    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        (&*self).list_due_tasks(now, limit)
    }

    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>> {
        (&*self).find_earliest_due()
    }

    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        (&*self).list_sync_gated_tasks(event)
    }

    fn find_unfinished_sync_task_before_stage(
        &mut self,
        event: EventId,
        sync_stage: i64,
        only_untried: bool,
    ) -> TableResult<Option<TaskSeq>> {
        (&*self).find_unfinished_sync_task_before_stage(event, sync_stage, only_untried)
    }

    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        (&*self).list_tasks_locked_by_node(node)
    }

    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        (&*self).list_expired_worker_leases(since, now)
    }

    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        (&*self).list_tasks_in_phases(queue, phases, limit)
    }

    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        (&*self).list_running_tasks_of_handler(handler, limit)
    }

    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        (&*self).list_tasks_to_rescore(queue)
    }

    fn list_tasks_to_regroup(
        &mut self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        (&*self).list_tasks_to_regroup(queue)
    }

    fn count_ready_tasks_before(&mut self, task_row: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        (&*self).count_ready_tasks_before(task_row, limit)
    }

    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        (&*self).find_archived_task(seq)
    }

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        (&*self).delete_archived_task(seq)
    }

    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        (&*self).find_task_with_attempts(seq)
    }

    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        (&*self).list_queues()
    }

    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        (&*self).create_queue(handler, tenant, subject)
    }

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        (&*self).write_queue_counts(counts)
    }

    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        (&*self).find_queue_head(queue)
    }

    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        (&*self).list_rank_ranges(queue)
    }

    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        (&*self).list_handlers()
    }

    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()> {
        (&*self).set_defined_handlers(handlers)
    }

    fn write_limiter_state(
        &mut self,
        handler: HandlerId,
        limiter_state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        (&*self).write_limiter_state(handler, limiter_state)
    }

    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String> {
        (&*self).read_missed_event_ranges_json(handler)
    }

    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        (&*self).list_configured_object_digests()
    }

    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        (&*self).list_rules()
    }

    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        (&*self).list_nodes()
    }

    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>> {
        (&*self).list_live_nodes()
    }

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        (&*self).insert_node(name, now)
    }

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> {
        (&*self).write_node_capabilities(node, capabilities)
    }

    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        (&*self).record_node_heartbeat(node, now)
    }

    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        (&*self).list_nodes_silent_since(before)
    }

    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        (&*self).list_chains()
    }

    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        (&*self).set_defined_chains(chains)
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        (&*self).write_chain_state(path, state)
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        (&*self).find_reevaluation_cursor()
    }

    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        (&*self).find_order(number)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        (&*self).find_order_by_key(tenant, key)
    }

    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        (&*self).list_order_numbers_after(path, number, limit)
    }

    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        (&*self).list_schedules()
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        (&*self).find_fire(schedule, planned_at)
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> {
        (&*self).write_fire(schedule, fire, needs_catch_up)
    }

    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        (&*self).advance_catch_up(schedule, up_to)
    }

    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        (&*self).list_unfinished_tasks_of_last_event(schedule)
    }

    fn delete_expired_events(
        &mut self,
        _after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        Ok(((&*self).expire_events(expired_up_to)?, None))
    }

    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> {
        (&*self).expire_archived_tasks(surplus, before)
    }

    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> {
        (&*self).find_ended_order(tenant, key)
    }

    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool> {
        (&*self).delete_expired_ended_orders(before)
    }

    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool> {
        (&*self).delete_expired_idempotency_records(before)
    }

    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool> {
        (&*self).delete_expired_fires_nodes_audit(before)
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        (&*self).list_idle_objects(up_to, limit)
    }

    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        (&*self).mark_objects_in_use(objects)
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()> {
        (&*self).mark_objects_of_events_in_use(events, up_to, checked)
    }

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        (&*self).delete_objects(objects)
    }

    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)> {
        (&*self).list_events_of_unfinished_tasks(after, up_to, limit)
    }

    fn prefetch_task_subjects(&mut self, events: &[EventId], orders: &[i64]) -> TableResult<()> {
        if !events.is_empty() {
            (&*self).prefetch_events(events)?;
        }
        if !orders.is_empty() {
            (&*self).prefetch_orders(orders)?;
        }
        Ok(())
    }
}
