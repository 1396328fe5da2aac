//! Each verb of the tables, and the file that does it.

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

/// Writes methods that only hand on.
macro_rules! hand_on {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $answer:ty = $to:ident;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> $answer { self.$to($($arg),*) })*
    };
}

impl Tables for RedisTables {
    hand_on! {
        realm() -> Result<Realm> = find_realm;
        salt() -> Result<u64> = find_salt;
        text(name: &str) -> Result<Option<String>> = find_text;
        put_text(name: &str, text: &str) -> Result<()> = keep_text;
        answer(tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>> = find_answer;
        put_answer(idempotency: &Idempotency, answer: &str, now: Timestamp) -> Result<()> = keep_answer;
        insert_event(event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> Result<()> = add_event;
        event(id: EventId) -> Result<Option<Event>> = find_event;
        events_between(from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> = find_events;
        event_numbered(number: i64) -> Result<Option<EventId>> = marked;
        last_event_up_to(id: EventId) -> Result<EventId> = last_up_to;
        object(tenant: &Tenant, key: &str) -> Result<Option<Object>> = find_object;
        put_object(tenant: &Tenant, key: &str, object: &Object) -> Result<()> = keep_object;
        task(seq: TaskSeq) -> Result<Option<Live>> = find_task;
        insert_task(live: &Live) -> Result<()> = add_task;
        delete_task(live: &Live) -> Result<()> = remove_task;
        set_phase(seq: TaskSeq, phase: Phase, rank: i64) -> Result<()> = move_task;
        lock_task(live: &Live) -> Result<()> = lock_task;
        rewrite_task(live: &Live) -> Result<()> = change_task;
        set_track(live: &Live) -> Result<()> = track_task;
        set_crowd(seq: TaskSeq, crowd: Option<i64>) -> Result<()> = crowd_task;
        set_score(seq: TaskSeq, score: i64) -> Result<()> = score_task;
        set_until(seq: TaskSeq, until: Timestamp) -> Result<()> = lease_until;
        lane_head(lane: i64) -> Result<Option<Head>> = first_in_lane;
        in_lane(lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> = all_in_lane;
        active_in_crowd(crowd: i64, most: usize) -> Result<Vec<TaskSeq>> = crowd_active;
        blocked_in_crowd(crowd: i64) -> Result<Option<Waiting>> = crowd_blocked;
        ready(shares: &[(QueueId, i64)]) -> Result<Vec<Live>> = best_of;
        put_counts(counts: &[(QueueId, Counts)]) -> Result<()> = keep_counts;
        scheduled() -> Result<Vec<Live>> = all_scheduled;
        due(now: Timestamp, most: usize) -> Result<Vec<Waiting>> = fallen_due;
        earliest_due() -> Result<Option<Timestamp>> = first_due;
        gated(event: EventId) -> Result<Vec<Gated>> = gated_of;
        sync_before(event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> = sync_ahead;
        held_by(node: NodeId) -> Result<Vec<Live>> = locked_by;
        run_out(since: Timestamp, now: Timestamp) -> Result<Vec<Live>> = leases_over;
        in_phases(queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> = of_phases;
        runners(handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> = some_runners;
        to_score(queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> = all_to_score;
        to_regroup(queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> = all_to_regroup;
        ready_before(live: &Live, most: u64) -> Result<u64> = count_before;
        ended(seq: TaskSeq) -> Result<Option<Past>> = find_ended;
        insert_ended(past: &Past) -> Result<()> = add_ended;
        delete_ended(seq: TaskSeq) -> Result<()> = remove_ended;
        put_attempt(attempt: &AttemptRow<'_>) -> Result<()> = add_attempt;
        add_log_lines(task: TaskSeq, lines: Vec<LogLine>) -> Result<()> = add_lines;
        whole_task(seq: TaskSeq) -> Result<Option<Task>> = read_task;
        queues() -> Result<Vec<QueueRow>> = all_queues;
        make_queue(handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> = add_queue;
        ready_head(queue: QueueId) -> Result<Option<(i64, TaskSeq)>> = head_of;
        ranks(queue: QueueId) -> Result<Vec<Ranks>> = ranks_of;
        handlers() -> Result<Vec<HandlerRow>> = all_handlers;
        put_handlers(handlers: &[HandlerDef]) -> Result<()> = define_handlers;
        put_pace(handler: HandlerId, pace: &Pace) -> Result<()> = keep_pace;
        gaps(handler: HandlerId) -> Result<String> = gaps_of;
        put_gaps(handler: HandlerId, gaps: &str) -> Result<()> = keep_gaps;
        files() -> Result<BTreeMap<String, String>> = all_files;
        put_file(key: &str, digest: &str) -> Result<()> = keep_file;
        delete_file(key: &str) -> Result<()> = remove_file;
        rules() -> Result<Vec<Rule>> = all_rules;
        put_rule(rule: &Rule) -> Result<()> = keep_rule;
        delete_rule(kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<()> = remove_rule;
        nodes() -> Result<Vec<NodeView>> = all_nodes;
        live_nodes() -> Result<Vec<NodeId>> = nodes_alive;
        insert_node(name: &str, now: Timestamp) -> Result<NodeId> = add_node;
        put_abilities(node: NodeId, abilities: &Abilities) -> Result<()> = keep_abilities;
        node_heard(node: NodeId, now: Timestamp) -> Result<bool> = hear_node;
        node_gone(node: NodeId) -> Result<()> = remove_node;
        silent_nodes(before: Timestamp) -> Result<Vec<NodeId>> = nodes_silent;
        insert_deed(deed: &Deed) -> Result<()> = add_deed;
        chains() -> Result<Vec<Known>> = all_chains;
        put_chains(chains: &[Chain]) -> Result<()> = define_chains;
        put_chain_state(path: &ChainPath, state: &ChainState) -> Result<()> = set_chain;
        pending() -> Result<Option<(ChainPath, i64)>> = find_pending;
        put_pending(path: &ChainPath, after: Option<i64>) -> Result<()> = keep_pending;
        order(n: i64) -> Result<Option<Numbered>> = find_order;
        order_named(tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> = find_order_named;
        orders_after(path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> = orders_behind;
        insert_order(n: i64, order: &Order) -> Result<()> = add_order;
        save_order(order: &Numbered) -> Result<()> = change_order;
        delete_order(n: i64) -> Result<()> = remove_order;
        schedules() -> Result<BTreeMap<String, ScheduleRow>> = all_schedules;
        begin_schedule(name: &ScheduleName, expression: &str, now: Timestamp) -> Result<()> = new_schedule;
        name_schedules(names: &[String], now: Timestamp) -> Result<()> = note_schedules;
        forget_schedule(name: &str) -> Result<()> = remove_schedule;
        fire(schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> = find_fire;
        put_fire(schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> = keep_fire;
        made_up(schedule: &ScheduleName, up_to: Timestamp) -> Result<()> = make_up;
        unfinished_of(schedule: &ScheduleName) -> Result<Vec<TaskSeq>> = unfinished;
        drop_ended(surplus: i64, before: Timestamp) -> Result<(u64, bool)> = forget_ended;
        ended_order(tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> = find_ended_order;
        put_ended_order(ended: &EndedOrder) -> Result<()> = keep_ended_order;
        drop_ended_orders(before: Timestamp) -> Result<bool> = drop_old_ended_orders;
        drop_answers(before: Timestamp) -> Result<bool> = forget_answers;
        drop_records(before: Timestamp) -> Result<bool> = forget_records;
        idle_objects(up_to: EventId, most: usize) -> Result<Vec<IdleObject>> = find_idle_objects;
        set_objects_checked(objects: &[(Tenant, String, EventId)]) -> Result<()> = check_objects;
        keep_objects(events: &[EventId], up_to: EventId, checked: EventId) -> Result<()> = check_objects_of;
        delete_objects(objects: &[IdleObject]) -> Result<()> = remove_objects;
        events_in_use(after: EventId, up_to: EventId, most: usize) -> Result<(Vec<EventId>, Option<EventId>)> = find_events_in_use;
    }

    fn counters(&self) -> Result<Counters> {
        Ok(self.standing.borrow().counters)
    }

    fn keep_counters(&self, counters: &Counters) -> Result<()> {
        self.note_counters(counters);
        Ok(())
    }

    fn touched(&self, seq: TaskSeq) {
        self.note_touched(seq);
    }

    fn drop_events(&self, after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        self.forget_events(after, forgotten)
    }

    fn foresee(&self, events: &[EventId], orders: &[i64]) -> Result<()> {
        self.fetch_events(events)?;
        self.fetch_orders(orders)
    }
}
