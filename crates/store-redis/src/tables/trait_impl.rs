//! The `Tables` trait, forwarded to the methods of the other files.

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

use super::RedisTables;

/// Generates the methods of the trait: each forwards to a method of `RedisTables`.
macro_rules! forward_to {
    ($($name:ident($($arg:ident: $arg_type:ty),*) -> $reply:ty = $method:ident;)*) => {
        $(fn $name(&mut self, $($arg: $arg_type),*) -> $reply { Self::$method(self, $($arg),*) })*
    };
}

impl Tables for RedisTables {
    forward_to! {
        read_task_id_namespace() -> TableResult<TaskIdNamespace> = read_task_id_namespace;
        read_hash_salt() -> TableResult<u64> = read_hash_salt;
        read_named_text(name: &str) -> TableResult<Option<String>> = read_named_text;
        write_named_text(name: &str, text: &str) -> TableResult<()> = write_named_text;
        read_idempotency_record(tenant: &Tenant, key: &str) -> TableResult<Option<([u8; 32], String)>> = read_idempotency_record;
        write_idempotency_record(idempotency: &IdempotencyKey, reply: &str, now: Timestamp) -> TableResult<()> = write_idempotency_record;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, task_count: usize) -> TableResult<()> = append_event;
        read_event(id: EventId) -> TableResult<Option<Event>> = read_event;
        list_events_between(from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> = read_events_between;
        find_event_near_number(number: i64) -> TableResult<Option<EventId>> = find_event_near_number;
        find_last_event_up_to(id: EventId) -> TableResult<EventId> = find_last_event_up_to;
        read_object(tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> = read_object;
        write_object(tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()> = write_object_keeping_retention_check;
        read_active_task(seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> = read_active_task;
        insert_active_task(active: &ActiveTaskRow) -> TableResult<()> = add_active_task;
        delete_active_task(active: &ActiveTaskRow) -> TableResult<()> = delete_active_task;
        set_task_phase(seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()> = write_task_phase;
        write_task_lock(active: &ActiveTaskRow) -> TableResult<()> = write_task_lock;
        update_active_task(active: &ActiveTaskRow) -> TableResult<()> = write_task_changes;
        set_task_grouping(active: &ActiveTaskRow) -> TableResult<()> = write_task_grouping;
        set_concurrency_group(seq: TaskSeq, group: Option<i64>) -> TableResult<()> = write_concurrency_group;
        set_task_score(seq: TaskSeq, score: i64) -> TableResult<()> = write_task_score;
        set_lease_end(seq: TaskSeq, until: Timestamp) -> TableResult<()> = set_lease_end;
        read_lane_head(lane: i64) -> TableResult<Option<LaneHead>> = read_lane_head;
        list_lane_tasks(lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> = list_lane_tasks;
        list_counted_tasks_of_concurrency_group(group: i64, limit: usize) -> TableResult<Vec<TaskSeq>> = list_counted_tasks_of_concurrency_group;
        find_oldest_blocked_in_concurrency_group(group: i64) -> TableResult<Option<WaitingTask>> = find_oldest_blocked_in_concurrency_group;
        list_first_ready_tasks_of_queues(shares: &[(QueueId, i64)]) -> TableResult<Vec<ActiveTaskRow>> = list_first_ready_tasks_of_queues;
        write_queue_counts(counts: &[(QueueId, QueueCounts)]) -> TableResult<()> = write_queue_counts;
        list_scheduled_tasks() -> TableResult<Vec<ActiveTaskRow>> = list_scheduled_tasks;
        list_due_tasks(now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> = list_due_tasks;
        read_earliest_due_time() -> TableResult<Option<Timestamp>> = read_earliest_due_time;
        list_sync_gated_tasks(event: EventId) -> TableResult<Vec<SyncGatedTask>> = list_sync_gated_tasks;
        find_unfinished_sync_task_before_stage(event: EventId, sync_stage: i64, only_untried: bool) -> TableResult<Option<TaskSeq>> = find_unfinished_sync_task_before_stage;
        list_tasks_locked_by_node(node: NodeId) -> TableResult<Vec<ActiveTaskRow>> = list_tasks_locked_by_node;
        list_expired_worker_leases(since: Timestamp, now: Timestamp) -> TableResult<Vec<ActiveTaskRow>> = list_expired_worker_leases;
        list_tasks_in_phases(queue: QueueId, phases: &[TaskPhase], limit: usize) -> TableResult<Vec<TaskSeq>> = list_tasks_in_phases;
        list_running_tasks_of_handler(handler: HandlerId, limit: usize) -> TableResult<Vec<TaskSeq>> = list_running_tasks_of_handler;
        list_tasks_to_rescore(queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> = list_tasks_to_rescore;
        list_tasks_to_regroup(queue: QueueId) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> = list_tasks_to_regroup;
        count_ready_tasks_before(active: &ActiveTaskRow, limit: u64) -> TableResult<u64> = count_ready_tasks_before;
        read_archived_task(seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> = read_archived_task;
        insert_archived_task(archived: &ArchivedTaskRow) -> TableResult<()> = add_archived_task;
        delete_archived_task(seq: TaskSeq) -> TableResult<()> = delete_archived_task;
        write_attempt(attempt: &AttemptRow<'_>) -> TableResult<()> = write_attempt;
        append_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> = append_log_lines;
        read_task_with_attempts(seq: TaskSeq) -> TableResult<Option<Task>> = read_task_with_attempts;
        list_queues() -> TableResult<Vec<QueueRow>> = list_queues;
        create_queue(handler: HandlerId, tenant: &Tenant, subject: &QueueSubject) -> TableResult<QueueId> = create_queue;
        read_queue_head(queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> = read_queue_head;
        list_rank_ranges(queue: QueueId) -> TableResult<Vec<RankRange>> = read_rank_ranges;
        list_handlers() -> TableResult<Vec<HandlerRow>> = list_handlers;
        set_defined_handlers(handlers: &[HandlerDef]) -> TableResult<()> = set_defined_handlers;
        write_limiter_state(handler: HandlerId, state: &LimiterAndBreakerState) -> TableResult<()> = write_rate_limiter;
        read_missed_event_ranges_json(handler: HandlerId) -> TableResult<String> = read_missed_event_ranges_json;
        write_missed_event_ranges_json(handler: HandlerId, gaps: &str) -> TableResult<()> = write_missed_event_ranges_json;
        list_configured_object_digests() -> TableResult<BTreeMap<String, String>> = list_configured_object_digests;
        write_configured_object_digest(key: &str, digest: &str) -> TableResult<()> = write_configured_object_digest;
        delete_configured_object_digest(key: &str) -> TableResult<()> = delete_configured_object_digest;
        list_rules() -> TableResult<Vec<Rule>> = list_rules;
        write_rule(rule: &Rule) -> TableResult<()> = write_rule;
        delete_rule(kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()> = delete_rule_row;
        list_nodes() -> TableResult<Vec<NodeView>> = list_nodes;
        list_live_nodes() -> TableResult<Vec<NodeId>> = list_live_node_ids;
        insert_node(name: &str, now: Timestamp) -> TableResult<NodeId> = add_node_row;
        write_node_capabilities(node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> = write_node_capabilities;
        record_node_heartbeat(node: NodeId, now: Timestamp) -> TableResult<bool> = record_node_heartbeat;
        mark_node_gone(node: NodeId) -> TableResult<()> = mark_node_gone;
        list_nodes_silent_since(before: Timestamp) -> TableResult<Vec<NodeId>> = list_silent_nodes;
        insert_audit_entry(entry: &AuditEntry) -> TableResult<()> = add_audit_entry;
        list_chains() -> TableResult<Vec<ChainRow>> = list_chains;
        set_defined_chains(chains: &[Chain]) -> TableResult<()> = set_defined_chains;
        write_chain_state(path: &ChainPath, state: &ChainState) -> TableResult<()> = write_chain_state;
        find_reevaluation_cursor() -> TableResult<Option<(ChainPath, i64)>> = find_reevaluation_cursor;
        write_reevaluation_cursor(path: &ChainPath, after: Option<i64>) -> TableResult<()> = write_reevaluation_cursor;
        read_order(number: i64) -> TableResult<Option<OrderRow>> = read_order;
        find_order_by_key(tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> = read_order_by_key;
        list_order_numbers_after(path: &ChainPath, number: i64, limit: usize) -> TableResult<Vec<i64>> = list_order_numbers_after;
        insert_order(number: i64, order: &Order) -> TableResult<()> = add_order_row;
        update_order(order: &OrderRow) -> TableResult<()> = update_order_row;
        delete_order(number: i64) -> TableResult<()> = delete_order_row;
        list_schedules() -> TableResult<BTreeMap<String, ScheduleRow>> = list_schedules;
        start_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()> = start_schedule;
        record_schedules_registered(names: &[String], now: Timestamp) -> TableResult<()> = record_schedules_registered;
        delete_schedule(name: &str) -> TableResult<()> = delete_schedule_row;
        read_fire(schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>> = read_fire;
        write_fire(schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> = record_fire;
        advance_catch_up(schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> = advance_catch_up;
        list_unfinished_tasks_of_last_event(schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> = list_unfinished_tasks_of_last_event;
        delete_expired_archived_tasks(surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> = expire_archived_tasks;
        read_ended_order(tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> = read_ended_order;
        write_ended_order(ended: &EndedOrder) -> TableResult<()> = write_ended_order;
        delete_expired_ended_orders(before: Timestamp) -> TableResult<bool> = expire_ended_orders;
        delete_expired_idempotency_records(before: Timestamp) -> TableResult<bool> = expire_idempotency_records;
        delete_expired_fires_nodes_audit(before: Timestamp) -> TableResult<bool> = expire_fires_nodes_and_audit_entries;
        list_idle_objects(up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> = list_idle_objects;
        mark_objects_in_use(objects: &[(Tenant, String, EventId)]) -> TableResult<()> = mark_objects_in_use;
        mark_objects_of_events_in_use(events: &[EventId], up_to: EventId, retention_check: EventId) -> TableResult<()> = mark_event_objects_in_use;
        delete_objects(objects: &[IdleObject]) -> TableResult<()> = delete_object_rows;
        list_events_of_unfinished_tasks(after: EventId, up_to: EventId, limit: usize) -> TableResult<(Vec<EventId>, Option<EventId>)> = list_events_of_unfinished_tasks;
    }

    fn read_counters(&mut self) -> TableResult<Counters> {
        Ok(self.store_state.borrow().counters)
    }

    fn write_counters(&mut self, counters: &Counters) -> TableResult<()> {
        Self::set_counters(self, counters);
        Ok(())
    }

    fn invalidate_task_on_peers(&mut self, seq: TaskSeq) {
        Self::record_task_invalidation(self, seq);
    }

    fn delete_expired_events(
        &mut self,
        after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        Self::expire_events(self, after, expired_up_to)
    }

    fn prefetch_task_subjects(&mut self, events: &[EventId], orders: &[i64]) -> TableResult<()> {
        Self::prefetch_events(self, events)?;
        Self::prefetch_orders(self, orders)
    }
}
