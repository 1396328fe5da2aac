//! Each verb of the tables, handed to the file that does it.

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
use super::seen::Answer;

/// Writes methods that only hand on, and answer that it is done.
macro_rules! hand_on {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $to:ident;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> Result<()> { self.$to($($arg),*); Ok(()) })*
    };
}

impl Tables for PgTables {
    fn counters(&self) -> Result<Counters> {
        Ok(self.sequencer.borrow().counters)
    }

    fn realm(&self) -> Result<Realm> {
        self.find_realm()
    }

    fn salt(&self) -> Result<u64> {
        self.find_salt()
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        self.find_text(name)
    }

    fn answer(&self, tenant: &Tenant, key: &str) -> Result<Option<Answer>> {
        self.find_answer(tenant, key)
    }

    fn event(&self, id: EventId) -> Result<Option<Event>> {
        self.find_event(id)
    }

    fn events_between(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> {
        self.find_events(from, to, most)
    }

    fn event_numbered(&self, number: i64) -> Result<Option<EventId>> {
        self.marked(number)
    }

    fn last_event_up_to(&self, id: EventId) -> Result<EventId> {
        self.last_up_to(id)
    }

    fn object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        self.find_object(tenant, key)
    }

    hand_on! {
        keep_counters(counters: &Counters) -> note_counters;
        put_text(name: &str, text: &str) -> keep_text;
        put_answer(idempotency: &Idempotency, answer: &str, now: Timestamp) -> keep_answer;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> add_event;
        put_object(tenant: &Tenant, key: &str, object: &Object) -> keep_object;
        insert_task(live: &Live) -> add_task;
        delete_task(live: &Live) -> remove_task;
        set_phase(seq: TaskSeq, phase: Phase, rank: i64) -> move_task;
        lock_task(live: &Live) -> lock_task;
        rewrite_task(live: &Live) -> change_task;
        set_track(live: &Live) -> track_task;
        set_crowd(seq: TaskSeq, crowd: Option<i64>) -> crowd_task;
        set_score(seq: TaskSeq, score: i64) -> score_task;
        insert_ended(past: &Past) -> add_ended;
        put_attempt(attempt: &AttemptRow<'_>) -> add_attempt;
        add_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> add_lines;
        put_gaps(handler: HandlerId, gaps: &str) -> keep_gaps;
        put_file(key: &str, digest: &str) -> keep_file;
        delete_file(key: &str) -> remove_file;
        put_rule(rule: &Rule) -> keep_rule;
        delete_rule(kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> remove_rule;
        node_gone(node: NodeId) -> remove_node;
        insert_deed(deed: &Deed) -> add_deed;
        put_pending(path: &ChainPath, after: Option<i64>) -> keep_pending;
        insert_order(n: i64, order: &Order) -> add_order;
        save_order(order: &Numbered) -> change_order;
        delete_order(n: i64) -> remove_order;
        put_ended_order(ended: &EndedOrder) -> keep_ended_order;
        begin_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> new_schedule;
        name_schedules(names: &[String], now: Timestamp) -> note_schedules;
        forget_schedule(name: &str) -> remove_schedule;
    }

    fn task(&self, seq: TaskSeq) -> Result<Option<Live>> {
        self.find_task(seq)
    }

    fn set_until(&self, seq: TaskSeq, until: Timestamp) -> Result<()> {
        self.lease_until(seq, until)
    }

    fn touched(&self, seq: TaskSeq) {
        self.note_touched(seq);
    }

    fn lane_head(&self, lane: i64) -> Result<Option<Head>> {
        self.first_in_lane(lane)
    }

    fn in_lane(&self, lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> {
        self.all_in_lane(lane)
    }

    fn active_in_crowd(&self, crowd: i64, most: usize) -> Result<Vec<TaskSeq>> {
        self.crowd_active(crowd, most)
    }

    fn blocked_in_crowd(&self, crowd: i64) -> Result<Option<Waiting>> {
        self.crowd_blocked(crowd)
    }

    fn ready(&self, shares: &[(QueueId, i64)]) -> Result<Vec<Live>> {
        self.best_of(shares)
    }

    fn scheduled(&self) -> Result<Vec<Live>> {
        self.all_scheduled()
    }

    fn due(&self, now: Timestamp, most: usize) -> Result<Vec<Waiting>> {
        self.fallen_due(now, most)
    }

    fn earliest_due(&self) -> Result<Option<Timestamp>> {
        self.first_due()
    }

    fn gated(&self, event: EventId) -> Result<Vec<Gated>> {
        self.gated_of(event)
    }

    fn sync_before(&self, event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> {
        self.sync_ahead(event, stage, fresh)
    }

    fn held_by(&self, node: NodeId) -> Result<Vec<Live>> {
        self.locked_by(node)
    }

    fn run_out(&self, since: Timestamp, now: Timestamp) -> Result<Vec<Live>> {
        self.leases_over(since, now)
    }

    fn in_phases(&self, queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> {
        self.of_phases(queue, phases, most)
    }

    fn runners(&self, handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> {
        self.some_runners(handler, most)
    }

    fn to_score(&self, queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> {
        self.all_to_score(queue)
    }

    fn to_regroup(&self, queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> {
        self.all_to_regroup(queue)
    }

    fn ready_before(&self, live: &Live, most: u64) -> Result<u64> {
        self.count_before(live, most)
    }

    fn ended(&self, seq: TaskSeq) -> Result<Option<Past>> {
        self.find_ended(seq)
    }

    fn delete_ended(&self, seq: TaskSeq) -> Result<()> {
        self.remove_ended(seq)
    }

    fn whole_task(&self, seq: TaskSeq) -> Result<Option<Task>> {
        self.read_task(seq)
    }

    fn queues(&self) -> Result<Vec<QueueRow>> {
        self.all_queues()
    }

    fn make_queue(&self, handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> {
        self.add_queue(handler, tenant, of)
    }

    fn put_counts(&self, counts: &[(QueueId, Counts)]) -> Result<()> {
        self.keep_counts(counts)
    }

    fn ready_head(&self, queue: QueueId) -> Result<Option<(i64, TaskSeq)>> {
        self.head_of(queue)
    }

    fn ranks(&self, queue: QueueId) -> Result<Vec<Ranks>> {
        self.ranks_of(queue)
    }

    fn handlers(&self) -> Result<Vec<HandlerRow>> {
        self.all_handlers()
    }

    fn put_handlers(&self, handlers: &[HandlerDef]) -> Result<()> {
        self.define_handlers(handlers)
    }

    fn put_pace(&self, handler: HandlerId, pace: &Pace) -> Result<()> {
        self.keep_pace(handler, pace)
    }

    fn gaps(&self, handler: HandlerId) -> Result<String> {
        self.gaps_of(handler)
    }

    fn files(&self) -> Result<BTreeMap<String, String>> {
        self.all_files()
    }

    fn rules(&self) -> Result<Vec<Rule>> {
        self.all_rules()
    }

    fn nodes(&self) -> Result<Vec<NodeView>> {
        self.all_nodes()
    }

    fn live_nodes(&self) -> Result<Vec<NodeId>> {
        self.nodes_alive()
    }

    fn insert_node(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        self.add_node(name, now)
    }

    fn put_abilities(&self, node: NodeId, abilities: &Abilities) -> Result<()> {
        self.keep_abilities(node, abilities)
    }

    fn node_heard(&self, node: NodeId, now: Timestamp) -> Result<bool> {
        self.hear_node(node, now)
    }

    fn silent_nodes(&self, before: Timestamp) -> Result<Vec<NodeId>> {
        self.nodes_silent(before)
    }

    fn chains(&self) -> Result<Vec<Known>> {
        self.all_chains()
    }

    fn put_chains(&self, chains: &[Chain]) -> Result<()> {
        self.define_chains(chains)
    }

    fn put_chain_state(&self, path: &ChainPath, state: &ChainState) -> Result<()> {
        self.set_chain(path, state)
    }

    fn pending(&self) -> Result<Option<(ChainPath, i64)>> {
        self.find_pending()
    }

    fn order(&self, n: i64) -> Result<Option<Numbered>> {
        self.find_order(n)
    }

    fn order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        self.find_order_named(tenant, key)
    }

    fn orders_after(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> {
        self.orders_behind(path, n, most)
    }

    fn schedules(&self) -> Result<BTreeMap<String, ScheduleRow>> {
        self.all_schedules()
    }

    fn fire(&self, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> {
        self.find_fire(schedule, planned)
    }

    fn put_fire(&self, schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> {
        self.keep_fire(schedule, fire, unmet)
    }

    fn made_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        self.make_up(schedule, up_to)
    }

    fn unfinished_of(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>> {
        self.unfinished(schedule)
    }

    fn drop_events(&self, _after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        Ok((self.forget_events(forgotten)?, None))
    }

    fn drop_ended(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        self.forget_ended(surplus, before)
    }

    fn ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> {
        self.find_ended_order(tenant, key)
    }

    fn drop_ended_orders(&self, before: Timestamp) -> Result<bool> {
        self.drop_old_ended_orders(before)
    }

    fn drop_answers(&self, before: Timestamp) -> Result<bool> {
        self.forget_answers(before)
    }

    fn drop_records(&self, before: Timestamp) -> Result<bool> {
        self.forget_records(before)
    }

    fn idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        self.find_idle_objects(up_to, most)
    }

    fn set_objects_checked(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        self.check_objects(objects)
    }

    fn keep_objects(&self, events: &[EventId], up_to: EventId, checked: EventId) -> Result<()> {
        self.check_objects_of(events, up_to, checked)
    }

    fn delete_objects(&self, objects: &[IdleObject]) -> Result<()> {
        self.remove_objects(objects)
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
            self.fetch_events(events)?;
        }
        if !orders.is_empty() {
            self.fetch_orders(orders)?;
        }
        Ok(())
    }
}
