//! Implements the `Tables` trait by delegating to the methods in the other files.

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

use super::PgTables;
use super::cache::IdempotencyRecord;

/// Declares trait methods that delegate to a method without a result.
macro_rules! delegate {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $to:ident;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> Result<()> { self.$to($($arg),*); Ok(()) })*
    };
}

impl Tables for PgTables {
    fn counters(&self) -> Result<Counters> {
        Ok(self.commit_state.borrow().counters)
    }

    fn realm(&self) -> Result<Realm> {
        self.find_task_id_namespace()
    }

    fn salt(&self) -> Result<u64> {
        self.find_salt()
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        self.find_text(name)
    }

    fn answer(&self, tenant: &Tenant, key: &str) -> Result<Option<IdempotencyRecord>> {
        self.find_idempotency_record(tenant, key)
    }

    fn event(&self, id: EventId) -> Result<Option<Event>> {
        self.find_event(id)
    }

    fn events_between(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> {
        self.list_events_between(from, to, most)
    }

    fn event_numbered(&self, number: i64) -> Result<Option<EventId>> {
        self.event_id_at_number(number)
    }

    fn last_event_up_to(&self, id: EventId) -> Result<EventId> {
        self.find_last_event_up_to(id)
    }

    fn object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        self.find_object(tenant, key)
    }

    delegate! {
        keep_counters(counters: &Counters) -> set_counters;
        put_text(name: &str, text: &str) -> write_text;
        put_answer(idempotency: &Idempotency, answer: &str, now: Timestamp) -> write_idempotency_record;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> append_event;
        put_object(tenant: &Tenant, key: &str, object: &Object) -> write_object;
        insert_task(live: &Live) -> insert_active_task;
        delete_task(live: &Live) -> delete_active_task;
        set_phase(seq: TaskSeq, phase: Phase, rank: i64) -> set_task_phase;
        lock_task(live: &Live) -> lock_task;
        rewrite_task(live: &Live) -> rewrite_active_task;
        set_track(live: &Live) -> set_task_grouping;
        set_crowd(seq: TaskSeq, crowd: Option<i64>) -> set_task_concurrency_group;
        set_score(seq: TaskSeq, score: i64) -> set_task_score;
        insert_ended(past: &Past) -> insert_archived_task;
        put_attempt(attempt: &AttemptRow<'_>) -> write_attempt;
        add_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> append_log_lines;
        put_gaps(handler: HandlerId, gaps: &str) -> write_handler_gaps;
        put_file(key: &str, digest: &str) -> write_config_file;
        delete_file(key: &str) -> delete_config_file;
        put_rule(rule: &Rule) -> write_rule;
        delete_rule(kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> delete_existing_rule;
        node_gone(node: NodeId) -> mark_node_gone;
        insert_deed(deed: &Deed) -> insert_audit_entry;
        put_pending(path: &ChainPath, after: Option<i64>) -> write_pending_chain;
        insert_order(n: i64, order: &Order) -> insert_new_order;
        save_order(order: &Numbered) -> update_order;
        delete_order(n: i64) -> delete_existing_order;
        put_ended_order(ended: &EndedOrder) -> write_ended_order;
        begin_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> upsert_schedule;
        name_schedules(names: &[String], now: Timestamp) -> refresh_schedules;
        forget_schedule(name: &str) -> delete_schedule;
    }

    fn task(&self, seq: TaskSeq) -> Result<Option<Live>> {
        self.find_task(seq)
    }

    fn set_until(&self, seq: TaskSeq, until: Timestamp) -> Result<()> {
        self.extend_lease(seq, until)
    }

    fn touched(&self, seq: TaskSeq) {
        self.record_task_change(seq);
    }

    fn lane_head(&self, lane: i64) -> Result<Option<Head>> {
        self.find_lane_head(lane)
    }

    fn in_lane(&self, lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> {
        self.list_lane_tasks(lane)
    }

    fn active_in_crowd(&self, crowd: i64, most: usize) -> Result<Vec<TaskSeq>> {
        self.list_active_in_group(crowd, most)
    }

    fn blocked_in_crowd(&self, crowd: i64) -> Result<Option<Waiting>> {
        self.find_blocked_in_group(crowd)
    }

    fn ready(&self, shares: &[(QueueId, i64)]) -> Result<Vec<Live>> {
        self.list_best_ready(shares)
    }

    fn scheduled(&self) -> Result<Vec<Live>> {
        self.list_scheduled()
    }

    fn due(&self, now: Timestamp, most: usize) -> Result<Vec<Waiting>> {
        self.list_due(now, most)
    }

    fn earliest_due(&self) -> Result<Option<Timestamp>> {
        self.find_earliest_due()
    }

    fn gated(&self, event: EventId) -> Result<Vec<Gated>> {
        self.list_gated(event)
    }

    fn sync_before(&self, event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> {
        self.find_sync_task_before(event, stage, fresh)
    }

    fn held_by(&self, node: NodeId) -> Result<Vec<Live>> {
        self.list_locked_by(node)
    }

    fn run_out(&self, since: Timestamp, now: Timestamp) -> Result<Vec<Live>> {
        self.list_expired_leases(since, now)
    }

    fn in_phases(&self, queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> {
        self.list_in_phases(queue, phases, most)
    }

    fn runners(&self, handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> {
        self.list_running(handler, most)
    }

    fn to_score(&self, queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> {
        self.list_to_score(queue)
    }

    fn to_regroup(&self, queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> {
        self.list_to_regroup(queue)
    }

    fn ready_before(&self, live: &Live, most: u64) -> Result<u64> {
        self.count_ready_before(live, most)
    }

    fn ended(&self, seq: TaskSeq) -> Result<Option<Past>> {
        self.find_archived_task(seq)
    }

    fn delete_ended(&self, seq: TaskSeq) -> Result<()> {
        self.delete_archived_task(seq)
    }

    fn whole_task(&self, seq: TaskSeq) -> Result<Option<Task>> {
        self.find_task_with_attempts(seq)
    }

    fn queues(&self) -> Result<Vec<QueueRow>> {
        self.list_queues()
    }

    fn make_queue(&self, handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> {
        self.create_queue(handler, tenant, of)
    }

    fn put_counts(&self, counts: &[(QueueId, Counts)]) -> Result<()> {
        self.write_queue_counts(counts)
    }

    fn ready_head(&self, queue: QueueId) -> Result<Option<(i64, TaskSeq)>> {
        self.find_first_ready_task(queue)
    }

    fn ranks(&self, queue: QueueId) -> Result<Vec<Ranks>> {
        self.list_ranks(queue)
    }

    fn handlers(&self) -> Result<Vec<HandlerRow>> {
        self.list_handlers()
    }

    fn put_handlers(&self, handlers: &[HandlerDef]) -> Result<()> {
        self.define_handlers(handlers)
    }

    fn put_pace(&self, handler: HandlerId, pace: &Pace) -> Result<()> {
        self.write_limiter_state(handler, pace)
    }

    fn gaps(&self, handler: HandlerId) -> Result<String> {
        self.read_handler_gaps(handler)
    }

    fn files(&self) -> Result<BTreeMap<String, String>> {
        self.list_config_files()
    }

    fn rules(&self) -> Result<Vec<Rule>> {
        self.list_rules()
    }

    fn nodes(&self) -> Result<Vec<NodeView>> {
        self.list_nodes()
    }

    fn live_nodes(&self) -> Result<Vec<NodeId>> {
        self.list_live_nodes()
    }

    fn insert_node(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        self.insert_new_node(name, now)
    }

    fn put_abilities(&self, node: NodeId, abilities: &Abilities) -> Result<()> {
        self.write_node_capabilities(node, abilities)
    }

    fn node_heard(&self, node: NodeId, now: Timestamp) -> Result<bool> {
        self.record_heartbeat(node, now)
    }

    fn silent_nodes(&self, before: Timestamp) -> Result<Vec<NodeId>> {
        self.list_silent_nodes(before)
    }

    fn chains(&self) -> Result<Vec<Known>> {
        self.list_chains()
    }

    fn put_chains(&self, chains: &[Chain]) -> Result<()> {
        self.define_chains(chains)
    }

    fn put_chain_state(&self, path: &ChainPath, state: &ChainState) -> Result<()> {
        self.write_chain_state(path, state)
    }

    fn pending(&self) -> Result<Option<(ChainPath, i64)>> {
        self.find_pending_chain()
    }

    fn order(&self, n: i64) -> Result<Option<Numbered>> {
        self.find_order(n)
    }

    fn order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        self.find_order_by_key(tenant, key)
    }

    fn orders_after(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> {
        self.list_orders_after(path, n, most)
    }

    fn schedules(&self) -> Result<BTreeMap<String, ScheduleRow>> {
        self.list_schedules()
    }

    fn fire(&self, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> {
        self.find_fire(schedule, planned)
    }

    fn put_fire(&self, schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> {
        self.write_fire(schedule, fire, unmet)
    }

    fn made_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        self.clear_missed_times(schedule, up_to)
    }

    fn unfinished_of(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>> {
        self.list_unfinished_tasks(schedule)
    }

    fn drop_events(&self, _after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        Ok((self.expire_events(forgotten)?, None))
    }

    fn drop_ended(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        self.expire_archived_tasks(surplus, before)
    }

    fn ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> {
        self.find_ended_order(tenant, key)
    }

    fn drop_ended_orders(&self, before: Timestamp) -> Result<bool> {
        self.delete_old_ended_orders(before)
    }

    fn drop_answers(&self, before: Timestamp) -> Result<bool> {
        self.delete_old_idempotency_records(before)
    }

    fn drop_records(&self, before: Timestamp) -> Result<bool> {
        self.delete_old_records(before)
    }

    fn idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        self.find_idle_objects(up_to, most)
    }

    fn set_objects_checked(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        self.mark_objects_checked(objects)
    }

    fn keep_objects(&self, events: &[EventId], up_to: EventId, checked: EventId) -> Result<()> {
        self.mark_objects_of_events_checked(events, up_to, checked)
    }

    fn delete_objects(&self, objects: &[IdleObject]) -> Result<()> {
        self.delete_idle_objects(objects)
    }

    fn events_in_use(
        &self,
        after: EventId,
        up_to: EventId,
        most: usize,
    ) -> Result<(Vec<EventId>, Option<EventId>)> {
        self.find_events_in_use(after, up_to, most)
    }

    fn foresee(&self, events: &[EventId], orders: &[i64]) -> Result<()> {
        if !events.is_empty() {
            self.prefetch_events(events)?;
        }
        if !orders.is_empty() {
            self.prefetch_orders(orders)?;
        }
        Ok(())
    }
}
