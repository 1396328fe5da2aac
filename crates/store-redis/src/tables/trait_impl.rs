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
use pointsman_store::error::Result;
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
        $(fn $name(&self, $($arg: $arg_type),*) -> $reply { self.$method($($arg),*) })*
    };
}

impl Tables for RedisTables {
    forward_to! {
        read_task_id_namespace() -> Result<TaskIdNamespace> = read_task_id_namespace;
        read_hash_salt() -> Result<u64> = read_hash_salt;
        read_named_text(name: &str) -> Result<Option<String>> = read_named_text;
        write_named_text(name: &str, text: &str) -> Result<()> = write_named_text;
        read_idempotency_record(tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>> = read_idempotency_record;
        write_idempotency_record(idempotency: &IdempotencyKey, reply: &str, now: Timestamp) -> Result<()> = write_idempotency_record;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, task_count: usize) -> Result<()> = append_event;
        read_event(id: EventId) -> Result<Option<Event>> = read_event;
        list_events_between(from: EventId, to: EventId, limit: usize) -> Result<Vec<Event>> = read_events_between;
        find_event_near_number(number: i64) -> Result<Option<EventId>> = find_event_near_number;
        find_last_event_up_to(id: EventId) -> Result<EventId> = find_last_event_up_to;
        read_object(tenant: &Tenant, key: &str) -> Result<Option<ObjectRow>> = read_object;
        write_object(tenant: &Tenant, key: &str, object: &ObjectRow) -> Result<()> = write_object_keeping_retention_check;
        read_active_task(seq: TaskSeq) -> Result<Option<ActiveTaskRow>> = read_active_task;
        insert_active_task(active: &ActiveTaskRow) -> Result<()> = add_active_task;
        delete_active_task(active: &ActiveTaskRow) -> Result<()> = delete_active_task;
        set_task_phase(seq: TaskSeq, phase: TaskPhase, rank: i64) -> Result<()> = write_task_phase;
        write_task_lock(active: &ActiveTaskRow) -> Result<()> = write_task_lock;
        update_active_task(active: &ActiveTaskRow) -> Result<()> = write_task_changes;
        set_task_grouping(active: &ActiveTaskRow) -> Result<()> = write_task_grouping;
        set_concurrency_group(seq: TaskSeq, group: Option<i64>) -> Result<()> = write_concurrency_group;
        set_task_score(seq: TaskSeq, score: i64) -> Result<()> = write_task_score;
        set_lease_end(seq: TaskSeq, until: Timestamp) -> Result<()> = set_lease_end;
        read_lane_head(lane: i64) -> Result<Option<LaneHead>> = read_lane_head;
        list_lane_tasks(lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> = list_lane_tasks;
        list_counted_tasks_of_concurrency_group(group: i64, limit: usize) -> Result<Vec<TaskSeq>> = list_counted_tasks_of_concurrency_group;
        find_oldest_blocked_in_concurrency_group(group: i64) -> Result<Option<WaitingTask>> = find_oldest_blocked_in_concurrency_group;
        list_first_ready_tasks_of_queues(shares: &[(QueueId, i64)]) -> Result<Vec<ActiveTaskRow>> = list_first_ready_tasks_of_queues;
        write_queue_counts(counts: &[(QueueId, QueueCounts)]) -> Result<()> = write_queue_counts;
        list_scheduled_tasks() -> Result<Vec<ActiveTaskRow>> = list_scheduled_tasks;
        list_due_tasks(now: Timestamp, limit: usize) -> Result<Vec<WaitingTask>> = list_due_tasks;
        read_earliest_due_time() -> Result<Option<Timestamp>> = read_earliest_due_time;
        list_sync_gated_tasks(event: EventId) -> Result<Vec<SyncGatedTask>> = list_sync_gated_tasks;
        find_unfinished_sync_task_before_stage(event: EventId, sync_stage: i64, only_untried: bool) -> Result<Option<TaskSeq>> = find_unfinished_sync_task_before_stage;
        list_tasks_locked_by_node(node: NodeId) -> Result<Vec<ActiveTaskRow>> = list_tasks_locked_by_node;
        list_expired_worker_leases(since: Timestamp, now: Timestamp) -> Result<Vec<ActiveTaskRow>> = list_expired_worker_leases;
        list_tasks_in_phases(queue: QueueId, phases: &[TaskPhase], limit: usize) -> Result<Vec<TaskSeq>> = list_tasks_in_phases;
        list_running_tasks_of_handler(handler: HandlerId, limit: usize) -> Result<Vec<TaskSeq>> = list_running_tasks_of_handler;
        list_tasks_to_rescore(queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> = list_tasks_to_rescore;
        list_tasks_to_regroup(queue: QueueId) -> Result<Vec<(WaitingTask, TaskPhase, String)>> = list_tasks_to_regroup;
        count_ready_tasks_before(active: &ActiveTaskRow, limit: u64) -> Result<u64> = count_ready_tasks_before;
        read_archived_task(seq: TaskSeq) -> Result<Option<ArchivedTaskRow>> = read_archived_task;
        insert_archived_task(archived: &ArchivedTaskRow) -> Result<()> = add_archived_task;
        delete_archived_task(seq: TaskSeq) -> Result<()> = delete_archived_task;
        write_attempt(attempt: &AttemptRow<'_>) -> Result<()> = write_attempt;
        append_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> Result<()> = append_log_lines;
        read_task_with_attempts(seq: TaskSeq) -> Result<Option<Task>> = read_task_with_attempts;
        list_queues() -> Result<Vec<QueueRow>> = list_queues;
        create_queue(handler: HandlerId, tenant: &Tenant, subject: &QueueSubject) -> Result<QueueId> = create_queue;
        read_queue_head(queue: QueueId) -> Result<Option<(i64, TaskSeq)>> = read_queue_head;
        list_rank_ranges(queue: QueueId) -> Result<Vec<RankRange>> = read_rank_ranges;
        list_handlers() -> Result<Vec<HandlerRow>> = list_handlers;
        set_defined_handlers(handlers: &[HandlerDef]) -> Result<()> = set_defined_handlers;
        write_limiter_state(handler: HandlerId, state: &LimiterAndBreakerState) -> Result<()> = write_rate_limiter;
        read_missed_event_ranges_json(handler: HandlerId) -> Result<String> = read_missed_event_ranges_json;
        write_missed_event_ranges_json(handler: HandlerId, gaps: &str) -> Result<()> = write_missed_event_ranges_json;
        list_configured_object_digests() -> Result<BTreeMap<String, String>> = list_configured_object_digests;
        write_configured_object_digest(key: &str, digest: &str) -> Result<()> = write_configured_object_digest;
        delete_configured_object_digest(key: &str) -> Result<()> = delete_configured_object_digest;
        list_rules() -> Result<Vec<Rule>> = list_rules;
        write_rule(rule: &Rule) -> Result<()> = write_rule;
        delete_rule(kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> Result<()> = delete_rule_row;
        list_nodes() -> Result<Vec<NodeView>> = list_nodes;
        list_live_nodes() -> Result<Vec<NodeId>> = list_live_node_ids;
        insert_node(name: &str, now: Timestamp) -> Result<NodeId> = add_node_row;
        write_node_capabilities(node: NodeId, capabilities: &NodeCapabilities) -> Result<()> = write_node_capabilities;
        record_node_heartbeat(node: NodeId, now: Timestamp) -> Result<bool> = record_node_heartbeat;
        mark_node_gone(node: NodeId) -> Result<()> = mark_node_gone;
        list_nodes_silent_since(before: Timestamp) -> Result<Vec<NodeId>> = list_silent_nodes;
        insert_audit_entry(entry: &AuditEntry) -> Result<()> = add_audit_entry;
        list_chains() -> Result<Vec<ChainRow>> = list_chains;
        set_defined_chains(chains: &[Chain]) -> Result<()> = set_defined_chains;
        write_chain_state(path: &ChainPath, state: &ChainState) -> Result<()> = write_chain_state;
        find_reevaluation_cursor() -> Result<Option<(ChainPath, i64)>> = find_reevaluation_cursor;
        write_reevaluation_cursor(path: &ChainPath, after: Option<i64>) -> Result<()> = write_reevaluation_cursor;
        read_order(number: i64) -> Result<Option<OrderRow>> = read_order;
        find_order_by_key(tenant: &Tenant, key: &OrderKey) -> Result<Option<OrderRow>> = read_order_by_key;
        list_order_numbers_after(path: &ChainPath, number: i64, limit: usize) -> Result<Vec<i64>> = list_order_numbers_after;
        insert_order(number: i64, order: &Order) -> Result<()> = add_order_row;
        update_order(order: &OrderRow) -> Result<()> = update_order_row;
        delete_order(number: i64) -> Result<()> = delete_order_row;
        list_schedules() -> Result<BTreeMap<String, ScheduleRow>> = list_schedules;
        start_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> Result<()> = start_schedule;
        record_schedules_registered(names: &[String], now: Timestamp) -> Result<()> = record_schedules_registered;
        delete_schedule(name: &str) -> Result<()> = delete_schedule_row;
        read_fire(schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> = read_fire;
        write_fire(schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> Result<()> = record_fire;
        advance_catch_up(schedule: &ScheduleName, up_to: Timestamp) -> Result<()> = advance_catch_up;
        list_unfinished_tasks_of_last_event(schedule: &ScheduleName) -> Result<Vec<TaskSeq>> = list_unfinished_tasks_of_last_event;
        delete_expired_archived_tasks(surplus: i64, before: Timestamp) -> Result<(u64, bool)> = expire_archived_tasks;
        read_ended_order(tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> = read_ended_order;
        write_ended_order(ended: &EndedOrder) -> Result<()> = write_ended_order;
        delete_expired_ended_orders(before: Timestamp) -> Result<bool> = expire_ended_orders;
        delete_expired_idempotency_records(before: Timestamp) -> Result<bool> = expire_idempotency_records;
        delete_expired_fires_nodes_audit(before: Timestamp) -> Result<bool> = expire_fires_nodes_and_audit_entries;
        list_idle_objects(up_to: EventId, limit: usize) -> Result<Vec<IdleObject>> = list_idle_objects;
        mark_objects_in_use(objects: &[(Tenant, String, EventId)]) -> Result<()> = mark_objects_in_use;
        mark_objects_of_events_in_use(events: &[EventId], up_to: EventId, retention_check: EventId) -> Result<()> = mark_event_objects_in_use;
        delete_objects(objects: &[IdleObject]) -> Result<()> = delete_object_rows;
        list_events_of_unfinished_tasks(after: EventId, up_to: EventId, limit: usize) -> Result<(Vec<EventId>, Option<EventId>)> = list_events_of_unfinished_tasks;
    }

    fn read_counters(&self) -> Result<Counters> {
        Ok(self.store_state.borrow().counters)
    }

    fn write_counters(&self, counters: &Counters) -> Result<()> {
        self.set_counters(counters);
        Ok(())
    }

    fn invalidate_task_on_peers(&self, seq: TaskSeq) {
        self.record_task_invalidation(seq);
    }

    fn delete_expired_events(
        &self,
        after: EventId,
        expired_up_to: EventId,
    ) -> Result<(u64, Option<EventId>)> {
        self.expire_events(after, expired_up_to)
    }

    fn prefetch_task_subjects(&self, events: &[EventId], orders: &[i64]) -> Result<()> {
        self.prefetch_events(events)?;
        self.prefetch_orders(orders)
    }
}
