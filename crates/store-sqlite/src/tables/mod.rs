//! The rows of the file, a statement a call. What they mean, `pointsman-store` says.

pub(crate) mod chains;
pub(crate) mod ended;
pub(crate) mod events;
mod forgetting;
pub(crate) mod numbers;
mod objects;
mod queues;
pub(crate) mod registry;
pub(crate) mod row;
pub(crate) mod schedules;
pub(crate) mod tasks;

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
use pointsman_store::row::{
    AttemptRow, Counts, Gated, HandlerId, HandlerRow, Head, IdleObject, Known, Live, Numbered, Object, Past,
    Phase, QueueId, QueueRow, Ranks, ScheduleRow, Waiting,
};
use pointsman_store::tables::{Counters, Tables};
use rusqlite::Connection;

use crate::error::Result;
use crate::{people, read_tasks};

/// The tables of the file, as its one writer sees them.
#[derive(Debug)]
pub struct SqliteTables {
    conn: Connection,
    written: numbers::Written,
}

impl SqliteTables {
    pub(crate) fn new(conn: Connection) -> Self {
        Self { conn, written: numbers::Written::default() }
    }

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }
}

impl Tables for SqliteTables {
    fn counters(&self) -> Result<Counters> {
        self.written.counters(&self.conn)
    }

    fn keep_counters(&self, counters: &Counters) -> Result<()> {
        self.written.keep(&self.conn, counters)
    }

    fn realm(&self) -> Result<Realm> {
        numbers::realm(&self.conn)
    }

    fn salt(&self) -> Result<u64> {
        numbers::salt(&self.conn)
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        numbers::meta(&self.conn, name)
    }

    fn put_text(&self, name: &str, text: &str) -> Result<()> {
        numbers::put_meta(&self.conn, name, text)
    }

    fn answer(&self, tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>> {
        events::answer(&self.conn, tenant, key)
    }

    fn put_answer(&self, idempotency: &Idempotency, answer: &str, now: Timestamp) -> Result<()> {
        events::put_answer(&self.conn, idempotency, answer, now)
    }

    fn insert_event(&self, event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> Result<()> {
        events::insert(&self.conn, event, number, first_task, tasks)
    }

    fn event(&self, id: EventId) -> Result<Option<Event>> {
        events::event(&self.conn, id)
    }

    fn events_between(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> {
        events::between(&self.conn, from, to, most)
    }

    fn event_numbered(&self, number: i64) -> Result<Option<EventId>> {
        events::numbered(&self.conn, number)
    }

    fn last_event_up_to(&self, id: EventId) -> Result<EventId> {
        events::last_up_to(&self.conn, id)
    }

    fn object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        objects::object(&self.conn, tenant, key)
    }

    fn put_object(&self, tenant: &Tenant, key: &str, object: &Object) -> Result<()> {
        objects::put_object(&self.conn, tenant, key, object)
    }

    fn task(&self, seq: TaskSeq) -> Result<Option<Live>> {
        tasks::task(&self.conn, seq)
    }

    fn insert_task(&self, live: &Live) -> Result<()> {
        tasks::insert(&self.conn, live)
    }

    fn delete_task(&self, live: &Live) -> Result<()> {
        tasks::delete(&self.conn, live.seq)
    }

    fn set_phase(&self, seq: TaskSeq, phase: Phase, rank: i64) -> Result<()> {
        tasks::set_phase(&self.conn, seq, phase, rank)
    }

    fn lock_task(&self, live: &Live) -> Result<()> {
        tasks::lock(&self.conn, live)
    }

    fn rewrite_task(&self, live: &Live) -> Result<()> {
        tasks::rewrite(&self.conn, live)
    }

    fn set_track(&self, live: &Live) -> Result<()> {
        tasks::set_track(&self.conn, live)
    }

    fn set_crowd(&self, seq: TaskSeq, crowd: Option<i64>) -> Result<()> {
        tasks::set_crowd(&self.conn, seq, crowd)
    }

    fn set_score(&self, seq: TaskSeq, score: i64) -> Result<()> {
        tasks::set_score(&self.conn, seq, score)
    }

    fn set_until(&self, seq: TaskSeq, until: Timestamp) -> Result<()> {
        tasks::set_until(&self.conn, seq, until)
    }

    /// Nobody else has the file.
    fn touched(&self, _seq: TaskSeq) {}

    fn lane_head(&self, lane: i64) -> Result<Option<Head>> {
        tasks::lane_head(&self.conn, lane)
    }

    fn in_lane(&self, lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> {
        tasks::in_lane(&self.conn, lane)
    }

    fn active_in_crowd(&self, crowd: i64, most: usize) -> Result<Vec<TaskSeq>> {
        tasks::active_in_crowd(&self.conn, crowd, most)
    }

    fn blocked_in_crowd(&self, crowd: i64) -> Result<Option<Waiting>> {
        tasks::blocked_in_crowd(&self.conn, crowd)
    }

    fn ready(&self, shares: &[(QueueId, i64)]) -> Result<Vec<Live>> {
        tasks::ready(&self.conn, shares)
    }

    fn scheduled(&self) -> Result<Vec<Live>> {
        tasks::scheduled(&self.conn)
    }

    fn due(&self, now: Timestamp, most: usize) -> Result<Vec<Waiting>> {
        tasks::due(&self.conn, now, most)
    }

    fn earliest_due(&self) -> Result<Option<Timestamp>> {
        tasks::earliest_due(&self.conn)
    }

    fn gated(&self, event: EventId) -> Result<Vec<Gated>> {
        tasks::gated(&self.conn, event)
    }

    fn sync_before(&self, event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> {
        tasks::sync_before(&self.conn, event, stage, fresh)
    }

    fn held_by(&self, node: NodeId) -> Result<Vec<Live>> {
        tasks::held_by(&self.conn, node)
    }

    fn run_out(&self, since: Timestamp, now: Timestamp) -> Result<Vec<Live>> {
        tasks::run_out(&self.conn, since, now)
    }

    fn in_phases(&self, queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> {
        tasks::in_phases(&self.conn, queue, phases, most)
    }

    fn runners(&self, handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> {
        tasks::runners(&self.conn, handler, most)
    }

    fn to_score(&self, queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> {
        tasks::to_score(&self.conn, queue)
    }

    fn to_regroup(&self, queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> {
        tasks::to_regroup(&self.conn, queue)
    }

    fn ready_before(&self, live: &Live, most: u64) -> Result<u64> {
        tasks::ready_before(&self.conn, live, most)
    }

    fn ended(&self, seq: TaskSeq) -> Result<Option<Past>> {
        ended::ended(&self.conn, seq)
    }

    fn insert_ended(&self, past: &Past) -> Result<()> {
        ended::insert(&self.conn, past)
    }

    fn delete_ended(&self, seq: TaskSeq) -> Result<()> {
        ended::delete(&self.conn, seq)
    }

    fn put_attempt(&self, attempt: &AttemptRow<'_>) -> Result<()> {
        ended::put_attempt(&self.conn, attempt)
    }

    fn add_log_lines(&self, task: TaskSeq, lines: Vec<LogLine>) -> Result<()> {
        ended::add_log_lines(&self.conn, task, lines)
    }

    fn whole_task(&self, seq: TaskSeq) -> Result<Option<Task>> {
        read_tasks::task(&self.conn, seq)
    }

    fn queues(&self) -> Result<Vec<QueueRow>> {
        queues::queues(&self.conn)
    }

    fn make_queue(&self, handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> {
        queues::make(&self.conn, handler, tenant, of)
    }

    fn put_counts(&self, counts: &[(QueueId, Counts)]) -> Result<()> {
        queues::put_counts(&self.conn, counts)
    }

    fn ready_head(&self, queue: QueueId) -> Result<Option<(i64, TaskSeq)>> {
        queues::ready_head(&self.conn, queue)
    }

    fn ranks(&self, queue: QueueId) -> Result<Vec<Ranks>> {
        queues::ranks(&self.conn, queue)
    }

    fn handlers(&self) -> Result<Vec<HandlerRow>> {
        queues::handlers(&self.conn)
    }

    fn put_handlers(&self, handlers: &[HandlerDef]) -> Result<()> {
        queues::put_handlers(&self.conn, handlers)
    }

    fn put_pace(&self, handler: HandlerId, pace: &Pace) -> Result<()> {
        queues::put_pace(&self.conn, handler, pace)
    }

    fn gaps(&self, handler: HandlerId) -> Result<String> {
        queues::gaps(&self.conn, handler)
    }

    fn put_gaps(&self, handler: HandlerId, gaps: &str) -> Result<()> {
        queues::put_gaps(&self.conn, handler, gaps)
    }

    fn files(&self) -> Result<BTreeMap<String, String>> {
        registry::files(&self.conn)
    }

    fn put_file(&self, key: &str, digest: &str) -> Result<()> {
        registry::put_file(&self.conn, key, digest)
    }

    fn delete_file(&self, key: &str) -> Result<()> {
        registry::delete_file(&self.conn, key)
    }

    fn rules(&self) -> Result<Vec<Rule>> {
        registry::rules(&self.conn)
    }

    fn put_rule(&self, rule: &Rule) -> Result<()> {
        registry::put_rule(&self.conn, rule)
    }

    fn delete_rule(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<()> {
        registry::delete_rule(&self.conn, kind, place, tenant)
    }

    fn nodes(&self) -> Result<Vec<NodeView>> {
        people::nodes(&self.conn)
    }

    fn live_nodes(&self) -> Result<Vec<NodeId>> {
        registry::live_nodes(&self.conn)
    }

    fn insert_node(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        registry::insert_node(&self.conn, name, now)
    }

    fn put_abilities(&self, node: NodeId, abilities: &Abilities) -> Result<()> {
        registry::put_abilities(&self.conn, node, abilities)
    }

    fn node_heard(&self, node: NodeId, now: Timestamp) -> Result<bool> {
        registry::node_heard(&self.conn, node, now)
    }

    fn node_gone(&self, node: NodeId) -> Result<()> {
        registry::node_gone(&self.conn, node)
    }

    fn silent_nodes(&self, before: Timestamp) -> Result<Vec<NodeId>> {
        registry::silent_nodes(&self.conn, before)
    }

    fn insert_deed(&self, deed: &Deed) -> Result<()> {
        registry::insert_deed(&self.conn, deed)
    }

    fn chains(&self) -> Result<Vec<Known>> {
        chains::chains(&self.conn)
    }

    fn put_chains(&self, chains: &[Chain]) -> Result<()> {
        chains::put_chains(&self.conn, chains)
    }

    fn put_chain_state(&self, path: &ChainPath, state: &ChainState) -> Result<()> {
        chains::put_state(&self.conn, path, state)
    }

    fn pending(&self) -> Result<Option<(ChainPath, i64)>> {
        chains::pending(&self.conn)
    }

    fn put_pending(&self, path: &ChainPath, after: Option<i64>) -> Result<()> {
        chains::put_pending(&self.conn, path, after)
    }

    fn order(&self, n: i64) -> Result<Option<Numbered>> {
        chains::order(&self.conn, n)
    }

    fn order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        chains::order_named(&self.conn, tenant, key)
    }

    fn ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> {
        chains::ended_order(&self.conn, tenant, key)
    }

    fn put_ended_order(&self, ended: &EndedOrder) -> Result<()> {
        chains::put_ended_order(&self.conn, ended)
    }

    fn drop_ended_orders(&self, before: Timestamp) -> Result<bool> {
        forgetting::drop_ended_orders(&self.conn, before)
    }

    fn orders_after(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> {
        chains::orders_after(&self.conn, path, n, most)
    }

    fn insert_order(&self, n: i64, order: &Order) -> Result<()> {
        chains::insert_order(&self.conn, n, order)
    }

    fn save_order(&self, order: &Numbered) -> Result<()> {
        chains::save_order(&self.conn, order)
    }

    fn delete_order(&self, n: i64) -> Result<()> {
        chains::delete_order(&self.conn, n)
    }

    fn schedules(&self) -> Result<BTreeMap<String, ScheduleRow>> {
        schedules::schedules(&self.conn)
    }

    fn begin_schedule(&self, name: &ScheduleName, expression: &str, now: Timestamp) -> Result<()> {
        schedules::begin(&self.conn, name, expression, now)
    }

    fn name_schedules(&self, names: &[String], now: Timestamp) -> Result<()> {
        schedules::name(&self.conn, names, now)
    }

    fn forget_schedule(&self, name: &str) -> Result<()> {
        schedules::forget(&self.conn, name)
    }

    fn fire(&self, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> {
        schedules::fire(&self.conn, schedule, planned)
    }

    fn put_fire(&self, schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> {
        schedules::put_fire(&self.conn, schedule, fire, unmet)
    }

    fn made_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        schedules::made_up(&self.conn, schedule, up_to)
    }

    fn unfinished_of(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>> {
        schedules::unfinished_of(&self.conn, schedule)
    }

    fn drop_events(&self, after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        // Whoever reads in the same transaction is not to find a gap where nothing seems to be forgotten.
        self.written.forget(&self.conn, forgotten)?;
        forgetting::drop_events(&self.conn, after, forgotten)
    }

    fn drop_ended(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        forgetting::drop_ended(&self.conn, surplus, before)
    }

    fn drop_answers(&self, before: Timestamp) -> Result<bool> {
        forgetting::drop_answers(&self.conn, before)
    }

    fn drop_records(&self, before: Timestamp) -> Result<bool> {
        forgetting::drop_records(&self.conn, before)
    }

    fn idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        objects::idle_objects(&self.conn, up_to, most)
    }

    fn set_objects_checked(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        objects::set_objects_checked(&self.conn, objects)
    }

    fn keep_objects(&self, events: &[EventId], up_to: EventId, checked: EventId) -> Result<()> {
        objects::keep_objects(&self.conn, events, up_to, checked)
    }

    fn delete_objects(&self, objects: &[IdleObject]) -> Result<()> {
        objects::delete_objects(&self.conn, objects)
    }

    fn events_in_use(
        &self,
        after: EventId,
        up_to: EventId,
        most: usize,
    ) -> Result<(Vec<EventId>, Option<EventId>)> {
        objects::events_in_use(&self.conn, after, up_to, most)
    }
}
