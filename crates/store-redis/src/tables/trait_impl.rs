//! The `Tables` trait, forwarded to the methods of the other files.

use std::collections::BTreeMap;

use pointsman_core::chain::{Chain, ChainPath, ChainState, OrderKey};
use pointsman_core::fire::Fire;
use pointsman_core::limit::Pace;
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::store::{Abilities, Deed, Idempotency, NodeId, NodeView};
use pointsman_core::task::{LogLine, QueueOf, Realm, Task};
use pointsman_core::{
    Event, EventId, HandlerDef, Place, Rule, RuleKind, ScheduleName, TaskSeq, Tenant, Timestamp,
};
use pointsman_store::error::Result;
use pointsman_store::row::{
    AttemptRow, Counts, Gated, HandlerId, HandlerRow, Head, IdleObject, Known, Live, Numbered, Object, Past,
    Phase, QueueId, QueueRow, Ranks, ScheduleRow, Waiting,
};
use pointsman_store::tables::{Counters, Tables};

use super::RedisTables;

/// Generates methods that forward to others.
macro_rules! forward_to {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $answer:ty = $to:ident;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> $answer { self.$to($($arg),*) })*
    };
}

impl Tables for RedisTables {
    forward_to! {
        realm() -> Result<Realm> = read_task_id_namespace;
        salt() -> Result<u64> = read_salt;
        text(name: &str) -> Result<Option<String>> = read_text;
        put_text(name: &str, text: &str) -> Result<()> = write_text;
        answer(tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>> = read_idempotency_record;
        put_answer(idempotency: &Idempotency, answer: &str, now: Timestamp) -> Result<()> = write_idempotency_record;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> Result<()> = append_event;
        event(id: EventId) -> Result<Option<Event>> = read_event;
        events_between(from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> = read_events_between;
        event_numbered(number: i64) -> Result<Option<EventId>> = read_event_id_by_number;
        last_event_up_to(id: EventId) -> Result<EventId> = read_last_event_up_to;
        object(tenant: &Tenant, key: &str) -> Result<Option<Object>> = read_object;
        put_object(tenant: &Tenant, key: &str, object: &Object) -> Result<()> = write_object_keeping_check;
        task(seq: TaskSeq) -> Result<Option<Live>> = read_active_task;
        insert_task(live: &Live) -> Result<()> = add_active_task;
        delete_task(live: &Live) -> Result<()> = delete_active_task;
        set_phase(seq: TaskSeq, phase: Phase, rank: i64) -> Result<()> = write_phase;
        lock_task(live: &Live) -> Result<()> = lock_task;
        rewrite_task(live: &Live) -> Result<()> = write_task_changes;
        set_track(live: &Live) -> Result<()> = write_lane_assignment;
        set_crowd(seq: TaskSeq, crowd: Option<i64>) -> Result<()> = write_concurrency_group;
        set_score(seq: TaskSeq, score: i64) -> Result<()> = write_score;
        set_until(seq: TaskSeq, until: Timestamp) -> Result<()> = extend_lease;
        lane_head(lane: i64) -> Result<Option<Head>> = read_lane_head;
        in_lane(lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> = list_tasks_in_lane;
        active_in_crowd(crowd: i64, most: usize) -> Result<Vec<TaskSeq>> = list_active_in_group;
        blocked_in_crowd(crowd: i64) -> Result<Option<Waiting>> = read_first_blocked_in_group;
        ready(shares: &[(QueueId, i64)]) -> Result<Vec<Live>> = read_ready_tasks;
        put_counts(counts: &[(QueueId, Counts)]) -> Result<()> = write_queue_counts;
        scheduled() -> Result<Vec<Live>> = list_scheduled_tasks;
        due(now: Timestamp, most: usize) -> Result<Vec<Waiting>> = list_due_tasks;
        earliest_due() -> Result<Option<Timestamp>> = read_earliest_due;
        gated(event: EventId) -> Result<Vec<Gated>> = list_gated_tasks;
        sync_before(event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> = find_earlier_sync_task;
        held_by(node: NodeId) -> Result<Vec<Live>> = list_tasks_locked_by;
        run_out(since: Timestamp, now: Timestamp) -> Result<Vec<Live>> = list_expired_leases;
        in_phases(queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> = list_tasks_in_phases;
        runners(handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> = list_running_tasks;
        to_score(queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> = list_tasks_to_score;
        to_regroup(queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> = list_tasks_to_regroup;
        ready_before(live: &Live, most: u64) -> Result<u64> = count_ready_before;
        ended(seq: TaskSeq) -> Result<Option<Past>> = read_archived_task;
        insert_ended(past: &Past) -> Result<()> = add_archived_task;
        delete_ended(seq: TaskSeq) -> Result<()> = delete_archived_task;
        put_attempt(attempt: &AttemptRow<'_>) -> Result<()> = write_attempt;
        add_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> Result<()> = append_log_lines;
        whole_task(seq: TaskSeq) -> Result<Option<Task>> = read_task_with_attempts;
        queues() -> Result<Vec<QueueRow>> = list_queues;
        make_queue(handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> = create_queue;
        ready_head(queue: QueueId) -> Result<Option<(i64, TaskSeq)>> = read_queue_head;
        ranks(queue: QueueId) -> Result<Vec<Ranks>> = read_rank_ranges;
        handlers() -> Result<Vec<HandlerRow>> = list_handlers;
        put_handlers(handlers: &[HandlerDef]) -> Result<()> = replace_handlers;
        put_pace(handler: HandlerId, pace: &Pace) -> Result<()> = write_rate_limiter;
        gaps(handler: HandlerId) -> Result<String> = read_handler_gaps;
        put_gaps(handler: HandlerId, gaps: &str) -> Result<()> = write_handler_gaps;
        files() -> Result<BTreeMap<String, String>> = list_file_digests;
        put_file(key: &str, digest: &str) -> Result<()> = write_file_digest;
        delete_file(key: &str) -> Result<()> = delete_file_digest;
        rules() -> Result<Vec<Rule>> = list_rules;
        put_rule(rule: &Rule) -> Result<()> = write_rule;
        delete_rule(kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<()> = delete_rule_row;
        nodes() -> Result<Vec<NodeView>> = list_nodes;
        live_nodes() -> Result<Vec<NodeId>> = list_live_node_ids;
        insert_node(name: &str, now: Timestamp) -> Result<NodeId> = add_node_row;
        put_abilities(node: NodeId, abilities: &Abilities) -> Result<()> = write_node_capabilities;
        node_heard(node: NodeId, now: Timestamp) -> Result<bool> = write_heartbeat;
        node_gone(node: NodeId) -> Result<()> = mark_node_gone;
        silent_nodes(before: Timestamp) -> Result<Vec<NodeId>> = list_silent_nodes;
        insert_deed(deed: &Deed) -> Result<()> = add_audit_entry;
        chains() -> Result<Vec<Known>> = list_chains;
        put_chains(chains: &[Chain]) -> Result<()> = replace_chains;
        put_chain_state(path: &ChainPath, state: &ChainState) -> Result<()> = write_chain_state;
        pending() -> Result<Option<(ChainPath, i64)>> = read_pending_chain_update;
        put_pending(path: &ChainPath, after: Option<i64>) -> Result<()> = write_pending_chain_update;
        order(n: i64) -> Result<Option<Numbered>> = read_order;
        order_named(tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> = read_order_by_key;
        orders_after(path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> = list_orders_after;
        insert_order(n: i64, order: &Order) -> Result<()> = add_order_row;
        save_order(order: &Numbered) -> Result<()> = rewrite_order;
        delete_order(n: i64) -> Result<()> = delete_order_row;
        schedules() -> Result<BTreeMap<String, ScheduleRow>> = list_schedules;
        begin_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> Result<()> = start_schedule;
        name_schedules(names: &[String], now: Timestamp) -> Result<()> = write_last_configured;
        forget_schedule(name: &str) -> Result<()> = delete_schedule_row;
        fire(schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> = read_fire;
        put_fire(schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> = record_fire;
        made_up(schedule: &ScheduleName, up_to: Timestamp) -> Result<()> = advance_unmet_fire;
        unfinished_of(schedule: &ScheduleName) -> Result<Vec<TaskSeq>> = list_unfinished_tasks;
        drop_ended(surplus: i64, before: Timestamp) -> Result<(u64, bool)> = expire_archived_tasks;
        ended_order(tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> = read_ended_order;
        put_ended_order(ended: &EndedOrder) -> Result<()> = write_ended_order;
        drop_ended_orders(before: Timestamp) -> Result<bool> = expire_ended_orders;
        drop_answers(before: Timestamp) -> Result<bool> = expire_idempotency_records;
        drop_records(before: Timestamp) -> Result<bool> = expire_records;
        idle_objects(up_to: EventId, most: usize) -> Result<Vec<IdleObject>> = list_idle_objects;
        set_objects_checked(objects: &[(Tenant, String, EventId)]) -> Result<()> = write_object_checks;
        keep_objects(events: &[EventId], up_to: EventId, checked: EventId) -> Result<()> = write_object_checks_of_events;
        delete_objects(objects: &[IdleObject]) -> Result<()> = delete_object_rows;
        events_in_use(after: EventId, up_to: EventId, most: usize) -> Result<(Vec<EventId>, Option<EventId>)> = list_events_in_use;
    }

    fn counters(&self) -> Result<Counters> {
        Ok(self.store_state.borrow().counters)
    }

    fn keep_counters(&self, counters: &Counters) -> Result<()> {
        self.set_counters(counters);
        Ok(())
    }

    fn touched(&self, seq: TaskSeq) {
        self.record_task_change(seq);
    }

    fn drop_events(&self, after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        self.expire_events(after, forgotten)
    }

    fn foresee(&self, events: &[EventId], orders: &[i64]) -> Result<()> {
        self.prefetch_events(events)?;
        self.prefetch_orders(orders)
    }
}
