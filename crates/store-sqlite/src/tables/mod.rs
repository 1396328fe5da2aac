//! The rows of the file: one statement per call. `pointsman-store` defines their meaning.

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
    fn counters(&self) -> Result<Counters> {
        self.stored_counters.read_counters(&self.conn)
    }

    fn keep_counters(&self, counters: &Counters) -> Result<()> {
        self.stored_counters.write_counters(&self.conn, counters)
    }

    fn realm(&self) -> Result<Realm> {
        counters::read_task_id_namespace(&self.conn)
    }

    fn salt(&self) -> Result<u64> {
        counters::read_salt(&self.conn)
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        counters::read_meta(&self.conn, name)
    }

    fn put_text(&self, name: &str, text: &str) -> Result<()> {
        counters::write_meta(&self.conn, name, text)
    }

    fn answer(&self, tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>> {
        events::read_idempotency_record(&self.conn, tenant, key)
    }

    fn put_answer(&self, idempotency: &Idempotency, answer: &str, now: Timestamp) -> Result<()> {
        events::insert_idempotency_record(&self.conn, idempotency, answer, now)
    }

    fn insert_event(&self, event: &Event, number: i64, first_task: TaskSeq, tasks: usize) -> Result<()> {
        events::insert_event(&self.conn, event, number, first_task, tasks)
    }

    fn event(&self, id: EventId) -> Result<Option<Event>> {
        events::read_event(&self.conn, id)
    }

    fn events_between(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> {
        events::list_events_between(&self.conn, from, to, most)
    }

    fn event_numbered(&self, number: i64) -> Result<Option<EventId>> {
        events::find_marked_event(&self.conn, number)
    }

    fn last_event_up_to(&self, id: EventId) -> Result<EventId> {
        events::find_last_event_up_to(&self.conn, id)
    }

    fn object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        objects::read_object(&self.conn, tenant, key)
    }

    fn put_object(&self, tenant: &Tenant, key: &str, object: &Object) -> Result<()> {
        objects::write_object(&self.conn, tenant, key, object)
    }

    fn task(&self, seq: TaskSeq) -> Result<Option<Live>> {
        tasks::read_active_task(&self.conn, seq)
    }

    fn insert_task(&self, live: &Live) -> Result<()> {
        tasks::insert_active_task(&self.conn, live)
    }

    fn delete_task(&self, live: &Live) -> Result<()> {
        tasks::delete_active_task(&self.conn, live.seq)
    }

    fn set_phase(&self, seq: TaskSeq, phase: Phase, rank: i64) -> Result<()> {
        tasks::set_phase(&self.conn, seq, phase, rank)
    }

    fn lock_task(&self, live: &Live) -> Result<()> {
        tasks::lock_task(&self.conn, live)
    }

    fn rewrite_task(&self, live: &Live) -> Result<()> {
        tasks::update_task(&self.conn, live)
    }

    fn set_track(&self, live: &Live) -> Result<()> {
        tasks::set_lane_and_groups(&self.conn, live)
    }

    fn set_crowd(&self, seq: TaskSeq, crowd: Option<i64>) -> Result<()> {
        tasks::set_concurrency_group(&self.conn, seq, crowd)
    }

    fn set_score(&self, seq: TaskSeq, score: i64) -> Result<()> {
        tasks::set_score(&self.conn, seq, score)
    }

    fn set_until(&self, seq: TaskSeq, until: Timestamp) -> Result<()> {
        tasks::set_lease_end(&self.conn, seq, until)
    }

    /// Does nothing: no other process has the file, so there are no caches to invalidate.
    fn touched(&self, _seq: TaskSeq) {}

    fn lane_head(&self, lane: i64) -> Result<Option<Head>> {
        tasks::read_lane_head(&self.conn, lane)
    }

    fn in_lane(&self, lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> {
        tasks::list_lane_tasks(&self.conn, lane)
    }

    fn active_in_crowd(&self, crowd: i64, most: usize) -> Result<Vec<TaskSeq>> {
        tasks::list_active_in_group(&self.conn, crowd, most)
    }

    fn blocked_in_crowd(&self, crowd: i64) -> Result<Option<Waiting>> {
        tasks::find_blocked_in_group(&self.conn, crowd)
    }

    fn ready(&self, shares: &[(QueueId, i64)]) -> Result<Vec<Live>> {
        tasks::list_ready_tasks(&self.conn, shares)
    }

    fn scheduled(&self) -> Result<Vec<Live>> {
        tasks::list_scheduled_tasks(&self.conn)
    }

    fn due(&self, now: Timestamp, most: usize) -> Result<Vec<Waiting>> {
        tasks::list_due_tasks(&self.conn, now, most)
    }

    fn earliest_due(&self) -> Result<Option<Timestamp>> {
        tasks::read_earliest_due(&self.conn)
    }

    fn gated(&self, event: EventId) -> Result<Vec<Gated>> {
        tasks::list_gated_tasks(&self.conn, event)
    }

    fn sync_before(&self, event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> {
        tasks::find_sync_task_before(&self.conn, event, stage, fresh)
    }

    fn held_by(&self, node: NodeId) -> Result<Vec<Live>> {
        tasks::list_tasks_leased_by(&self.conn, node)
    }

    fn run_out(&self, since: Timestamp, now: Timestamp) -> Result<Vec<Live>> {
        tasks::list_expired_leases(&self.conn, since, now)
    }

    fn in_phases(&self, queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> {
        tasks::list_tasks_in_phases(&self.conn, queue, phases, most)
    }

    fn runners(&self, handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> {
        tasks::list_running_tasks_of_handler(&self.conn, handler, most)
    }

    fn to_score(&self, queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> {
        tasks::list_tasks_to_score(&self.conn, queue)
    }

    fn to_regroup(&self, queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> {
        tasks::list_tasks_to_regroup(&self.conn, queue)
    }

    fn ready_before(&self, live: &Live, most: u64) -> Result<u64> {
        tasks::count_ready_before(&self.conn, live, most)
    }

    fn ended(&self, seq: TaskSeq) -> Result<Option<Past>> {
        archived_tasks::read_archived_task(&self.conn, seq)
    }

    fn insert_ended(&self, past: &Past) -> Result<()> {
        archived_tasks::insert_archived_task(&self.conn, past)
    }

    fn delete_ended(&self, seq: TaskSeq) -> Result<()> {
        archived_tasks::delete_archived_task(&self.conn, seq)
    }

    fn put_attempt(&self, attempt: &AttemptRow<'_>) -> Result<()> {
        archived_tasks::write_attempt(&self.conn, attempt)
    }

    fn add_log_lines(&self, task: TaskSeq, lines: Vec<LogLine>) -> Result<()> {
        archived_tasks::append_log_lines(&self.conn, task, lines)
    }

    fn whole_task(&self, seq: TaskSeq) -> Result<Option<Task>> {
        read_tasks::read_task(&self.conn, seq)
    }

    fn queues(&self) -> Result<Vec<QueueRow>> {
        queues::list_queues(&self.conn)
    }

    fn make_queue(&self, handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> {
        queues::insert_queue(&self.conn, handler, tenant, of)
    }

    fn put_counts(&self, counts: &[(QueueId, Counts)]) -> Result<()> {
        queues::update_counts(&self.conn, counts)
    }

    fn ready_head(&self, queue: QueueId) -> Result<Option<(i64, TaskSeq)>> {
        queues::read_ready_head(&self.conn, queue)
    }

    fn ranks(&self, queue: QueueId) -> Result<Vec<Ranks>> {
        queues::read_ranks(&self.conn, queue)
    }

    fn handlers(&self) -> Result<Vec<HandlerRow>> {
        queues::list_handlers(&self.conn)
    }

    fn put_handlers(&self, handlers: &[HandlerDef]) -> Result<()> {
        queues::replace_handlers(&self.conn, handlers)
    }

    fn put_pace(&self, handler: HandlerId, pace: &Pace) -> Result<()> {
        queues::update_token_bucket(&self.conn, handler, pace)
    }

    fn gaps(&self, handler: HandlerId) -> Result<String> {
        queues::read_gaps(&self.conn, handler)
    }

    fn put_gaps(&self, handler: HandlerId, gaps: &str) -> Result<()> {
        queues::update_gaps(&self.conn, handler, gaps)
    }

    fn files(&self) -> Result<BTreeMap<String, String>> {
        registry::list_file_digests(&self.conn)
    }

    fn put_file(&self, key: &str, digest: &str) -> Result<()> {
        registry::write_file_digest(&self.conn, key, digest)
    }

    fn delete_file(&self, key: &str) -> Result<()> {
        registry::delete_file_digest(&self.conn, key)
    }

    fn rules(&self) -> Result<Vec<Rule>> {
        registry::list_rules(&self.conn)
    }

    fn put_rule(&self, rule: &Rule) -> Result<()> {
        registry::write_rule(&self.conn, rule)
    }

    fn delete_rule(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<()> {
        registry::delete_rule(&self.conn, kind, place, tenant)
    }

    fn nodes(&self) -> Result<Vec<NodeView>> {
        read_nodes::list_nodes(&self.conn)
    }

    fn live_nodes(&self) -> Result<Vec<NodeId>> {
        registry::list_live_nodes(&self.conn)
    }

    fn insert_node(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        registry::insert_node(&self.conn, name, now)
    }

    fn put_abilities(&self, node: NodeId, abilities: &Abilities) -> Result<()> {
        registry::update_node_capabilities(&self.conn, node, abilities)
    }

    fn node_heard(&self, node: NodeId, now: Timestamp) -> Result<bool> {
        registry::record_heartbeat(&self.conn, node, now)
    }

    fn node_gone(&self, node: NodeId) -> Result<()> {
        registry::mark_node_gone(&self.conn, node)
    }

    fn silent_nodes(&self, before: Timestamp) -> Result<Vec<NodeId>> {
        registry::list_silent_nodes(&self.conn, before)
    }

    fn insert_deed(&self, deed: &Deed) -> Result<()> {
        registry::insert_audit_entry(&self.conn, deed)
    }

    fn chains(&self) -> Result<Vec<Known>> {
        chains::list_chains(&self.conn)
    }

    fn put_chains(&self, chains: &[Chain]) -> Result<()> {
        chains::replace_chains(&self.conn, chains)
    }

    fn put_chain_state(&self, path: &ChainPath, state: &ChainState) -> Result<()> {
        chains::set_chain_state(&self.conn, path, state)
    }

    fn pending(&self) -> Result<Option<(ChainPath, i64)>> {
        chains::find_pending_chain(&self.conn)
    }

    fn put_pending(&self, path: &ChainPath, after: Option<i64>) -> Result<()> {
        chains::set_pending(&self.conn, path, after)
    }

    fn order(&self, n: i64) -> Result<Option<Numbered>> {
        chains::read_order(&self.conn, n)
    }

    fn order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        chains::read_order_by_key(&self.conn, tenant, key)
    }

    fn ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> {
        chains::read_ended_order(&self.conn, tenant, key)
    }

    fn put_ended_order(&self, ended: &EndedOrder) -> Result<()> {
        chains::write_ended_order(&self.conn, ended)
    }

    fn drop_ended_orders(&self, before: Timestamp) -> Result<bool> {
        retention::delete_ended_orders(&self.conn, before)
    }

    fn orders_after(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> {
        chains::list_order_numbers_after(&self.conn, path, n, most)
    }

    fn insert_order(&self, n: i64, order: &Order) -> Result<()> {
        chains::insert_order(&self.conn, n, order)
    }

    fn save_order(&self, order: &Numbered) -> Result<()> {
        chains::update_order(&self.conn, order)
    }

    fn delete_order(&self, n: i64) -> Result<()> {
        chains::delete_order(&self.conn, n)
    }

    fn schedules(&self) -> Result<BTreeMap<String, ScheduleRow>> {
        schedules::list_schedules(&self.conn)
    }

    fn begin_schedule(&self, name: &ScheduleName, expression: &str, now: Timestamp) -> Result<()> {
        schedules::start_schedule(&self.conn, name, expression, now)
    }

    fn name_schedules(&self, names: &[String], now: Timestamp) -> Result<()> {
        schedules::record_schedule_names(&self.conn, names, now)
    }

    fn forget_schedule(&self, name: &str) -> Result<()> {
        schedules::delete_schedule(&self.conn, name)
    }

    fn fire(&self, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> {
        schedules::read_fire(&self.conn, schedule, planned)
    }

    fn put_fire(&self, schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> {
        schedules::write_fire(&self.conn, schedule, fire, unmet)
    }

    fn made_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        schedules::clear_unmet_fires(&self.conn, schedule, up_to)
    }

    fn unfinished_of(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>> {
        schedules::list_unfinished_tasks(&self.conn, schedule)
    }

    fn drop_events(&self, after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        // A read in the same transaction must not find a gap above the low-water mark.
        self.stored_counters.set_forgotten(&self.conn, forgotten)?;
        retention::delete_events(&self.conn, after, forgotten)
    }

    fn drop_ended(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        retention::delete_archived_tasks(&self.conn, surplus, before)
    }

    fn drop_answers(&self, before: Timestamp) -> Result<bool> {
        retention::delete_idempotency_records(&self.conn, before)
    }

    fn drop_records(&self, before: Timestamp) -> Result<bool> {
        retention::delete_old_records(&self.conn, before)
    }

    fn idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        objects::list_idle_objects(&self.conn, up_to, most)
    }

    fn set_objects_checked(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        objects::set_objects_checked(&self.conn, objects)
    }

    fn keep_objects(&self, events: &[EventId], up_to: EventId, checked: EventId) -> Result<()> {
        objects::set_objects_of_events_checked(&self.conn, events, up_to, checked)
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
        objects::list_events_in_use(&self.conn, after, up_to, most)
    }
}
