//! The writer's cache of the tables. With a single node it is never stale; after a failed transaction it is reloaded.
//! With several nodes, each applies the changes of the others at the beginning of a transaction.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use foldhash::HashMap;
use pointsman_core::store::NodeId;
use pointsman_core::task::{Lease, QueueSubject, TaskIdNamespace, TaskSubject};
use pointsman_core::{
    EventId, EventIdGenerator, EventType, HandlerDef, HandlerName, Routes, Rule, RuleKind, RuleScope,
    ScheduleName, TaskId, TaskSeq, Tenant, Timestamp, Weight,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chains::ChainRegistry;
use crate::error::{Fault, TableResult};
use crate::limiters::Limiters;
use crate::queues::QueueStates;
use crate::recent_events::RecentEventCache;
use crate::row::{ActiveTaskRow, HandlerId, HandlerRow, ObjectNumber, OrderRow};
use crate::store_copy;
use crate::tables::{ActiveTaskTable, Counters, MetaTable, PeerChanges, RuleTable, Tables};

/// A handler that was ever registered. Tasks refer to it by number.
#[derive(Debug)]
pub(crate) struct RegisteredHandler {
    pub(crate) id: HandlerId,
    pub(crate) def: HandlerDef,
    pub(crate) is_defined: bool,
}

/// A running task, cached so that its end needs no read of the table. Other nodes publish their changes to the task.
#[derive(Debug)]
pub(crate) struct RunningTask {
    pub(crate) row: ActiveTaskRow,
    pub(crate) subject: TaskSubject,
    /// The order whose step the task is.
    pub(crate) order: Option<OrderRow>,
}

/// The writer's cache of handlers, queues, rules, chains, counters and running tasks.
#[derive(Debug)]
pub struct WriterState {
    pub(crate) event_id_generator: EventIdGenerator,
    /// Allocated numbers. The id of the last event comes from the id generator, and is copied here when the counters
    /// are written.
    pub(crate) counters: Counters,
    /// The counters as last written.
    written_counters: Counters,
    pub(crate) task_id_namespace: TaskIdNamespace,
    /// Mixed into hashes of lanes, so that nobody can choose keys that collide.
    pub(crate) hash_salt: u64,
    pub(crate) handlers: Vec<Arc<RegisteredHandler>>,
    handler_ids_by_name: HashMap<HandlerName, HandlerId>,
    pub(crate) routes: Routes,
    /// Cache of resolved routes by event type; cleared when the registration changes.
    handlers_by_event_type: HashMap<EventType, Arc<[(HandlerId, bool)]>>,
    /// Weights of tenants; tenants not listed have weight 1.
    pub(crate) tenant_weights: BTreeMap<Tenant, Weight>,
    pub(crate) queues: QueueStates,
    pub(crate) limiters: Limiters,
    pub(crate) rules: Vec<Rule>,
    pub(crate) chains: ChainRegistry,
    /// Nodes that have joined and have neither left nor been declared gone.
    pub(crate) live_nodes: HashSet<NodeId>,
    /// When workers last pulled tasks of each pull handler.
    pub(crate) last_pull_times: HashMap<HandlerId, Timestamp>,
    pub(crate) recent_events: RecentEventCache,
    /// Tasks leased to this node since the start; at most as many as it has slots.
    pub(crate) running_tasks: HashMap<TaskSeq, RunningTask>,
    /// When this node last checked which registrations have live nodes.
    pub(crate) registrations_checked_at: Timestamp,
    /// The expired event up to which the pruner's current round has come; zero before a round.
    pub(crate) pruned_up_to: EventId,
    /// Number of `scheduled` tasks in all queues.
    pub(crate) scheduled_count: i64,
    /// Whether a task became ready in this transaction.
    pub(crate) has_new_ready_tasks: bool,
    /// Whether a task will be due earlier than all tasks that waited before this transaction.
    pub(crate) has_earlier_due_time: bool,
}

/// Most event types whose routes are cached. The cache is cleared when it is full, because the number of types is
/// unlimited.
pub(crate) const MAX_CACHED_EVENT_TYPES: usize = 10_000;

impl WriterState {
    pub(crate) fn load(tables: &mut dyn Tables, now: Timestamp) -> TableResult<Self> {
        store_copy::reject_incomplete_copy(tables)?;
        let counters = tables.read_counters()?;
        let mut state = Self {
            event_id_generator: EventIdGenerator::new(counters.last_event, now),
            counters,
            written_counters: counters,
            task_id_namespace: tables.read_task_id_namespace()?,
            hash_salt: tables.read_hash_salt()?,
            handlers: Vec::new(),
            handler_ids_by_name: HashMap::default(),
            routes: Routes::new(),
            handlers_by_event_type: HashMap::default(),
            tenant_weights: BTreeMap::new(),
            queues: QueueStates::default(),
            limiters: Limiters::default(),
            rules: tables.list_rules()?,
            chains: ChainRegistry::load(tables)?,
            live_nodes: tables.list_live_nodes()?.into_iter().collect(),
            last_pull_times: HashMap::default(),
            recent_events: RecentEventCache::default(),
            running_tasks: HashMap::default(),
            registrations_checked_at: Timestamp::MIN,
            scheduled_count: 0,
            pruned_up_to: EventId::ZERO,
            has_new_ready_tasks: false,
            has_earlier_due_time: false,
        };
        state.load_registration(tables)?;
        state.load_queue_states(tables)?;
        state.refill_fair_queues(now)?;
        state.reload_next_due(tables)?;
        Ok(state)
    }

    pub(crate) fn load_registration(&mut self, tables: &mut dyn Tables) -> TableResult<()> {
        self.handlers.clear();
        self.handler_ids_by_name.clear();
        self.handlers_by_event_type.clear();
        let mut limiter_states = Vec::new();
        for HandlerRow { id, def, is_defined, limiter_state } in tables.list_handlers()? {
            self.handler_ids_by_name.insert(def.name.clone(), id);
            self.handlers.push(Arc::new(RegisteredHandler { id, def, is_defined }));
            limiter_states.push(limiter_state);
        }
        self.add_missing_limiters(limiter_states);
        self.routes = read_named_json(tables, "routes")?.unwrap_or_default();
        self.tenant_weights = read_named_json(tables, "tenants")?.unwrap_or_default();
        Ok(())
    }

    pub(crate) fn load_rules(&mut self, tables: &mut dyn RuleTable) -> TableResult<()> {
        self.rules = tables.list_rules()?;
        Ok(())
    }

    pub(crate) fn reload_next_due(&mut self, tables: &mut dyn ActiveTaskTable) -> TableResult<()> {
        self.counters.next_due = tables.read_earliest_due_time()?;
        Ok(())
    }

    /// Applies changes that other nodes have committed.
    pub(crate) fn apply_peer_changes(
        &mut self,
        tables: &mut dyn Tables,
        changes: PeerChanges,
    ) -> TableResult<()> {
        let PeerChanges { counters, queue_rows: queues, limiter_states, stale_tasks } = changes;
        let is_earlier = |due: &Timestamp| self.counters.next_due.is_none_or(|cached| *due < cached);
        self.has_earlier_due_time |= counters.next_due.as_ref().is_some_and(is_earlier);
        self.event_id_generator.advance_past(counters.last_event);
        (self.counters, self.written_counters) = (counters, counters);
        for task in stale_tasks {
            self.running_tasks.remove(&task);
        }
        let mut changed_handlers = BTreeSet::new();
        for row in queues {
            let cached = self.queue(row.id).map_or(0, |queue| queue.counts.ready);
            self.has_new_ready_tasks |= row.counts.ready > cached;
            changed_handlers.insert(row.handler);
            self.apply_queue_row(tables, row)?;
        }
        for (handler, limiter_state) in limiter_states {
            self.limiter_mut(handler)?.state = limiter_state;
            changed_handlers.insert(handler);
        }
        for handler in changed_handlers {
            self.refresh_handler_free_slots(handler, self.event_id_generator.observed_time())?;
        }
        Ok(())
    }

    /// Lists the attempts that this node has begun with a fence greater than this one.
    pub(crate) fn list_attempts_after_fence(&self, fence: i64) -> Vec<(TaskSeq, Lease)> {
        let running_attempts =
            self.running_tasks.iter().filter_map(|(seq, running)| Some((*seq, running.row.lease()?)));
        running_attempts.filter(|(_, lease)| lease.fence > fence).collect()
    }

    /// Reserves ids up to this one, which may have been given to events that are not journaled yet.
    pub fn reserve_event_ids(&mut self, up_to: EventId) {
        self.event_id_generator.reserve_up_to(up_to);
    }

    /// Returns the time that a caller reported last, at most an hour after the one before.
    pub fn last_observed_time(&self) -> Timestamp {
        self.event_id_generator.observed_time()
    }

    pub(crate) fn handler(&self, id: HandlerId) -> TableResult<&Arc<RegisteredHandler>> {
        let index = usize::try_from(id - 1).unwrap_or(usize::MAX);
        self.handlers.get(index).ok_or_else(|| Fault::damaged(format!("handler {id} does not exist")))
    }

    pub(crate) fn find_handler(&self, name: &HandlerName) -> Option<&Arc<RegisteredHandler>> {
        let id = self.handler_ids_by_name.get(name)?;
        self.handler(*id).ok()
    }

    /// Returns the handlers of an event type, synchronous ones first, and whether each is synchronous.
    pub(crate) fn find_handlers_of_event_type(&mut self, event_type: &EventType) -> Arc<[(HandlerId, bool)]> {
        if let Some(cached) = self.handlers_by_event_type.get(event_type) {
            return cached.clone();
        }
        let bindings = self.routes.find_handlers_of_event_type(event_type);
        let handlers: Arc<[_]> = bindings
            .iter()
            .filter_map(|binding| {
                self.handler_ids_by_name.get(&binding.handler).map(|id| (*id, binding.sync))
            })
            .collect();
        if self.handlers_by_event_type.len() >= MAX_CACHED_EVENT_TYPES {
            self.handlers_by_event_type.clear();
        }
        self.handlers_by_event_type.insert(event_type.clone(), handlers.clone());
        handlers
    }

    pub(crate) fn is_queue_paused(
        &self,
        handler: HandlerId,
        subject: &QueueSubject,
        tenant: &Tenant,
    ) -> bool {
        let Ok(handler) = self.handler(handler) else { return false };
        self.rules.iter().any(|rule| rule.applies_to_queue(&handler.def.name, subject, tenant))
            || self.chains.is_chain_or_node_stopped(subject)
    }

    pub(crate) fn is_schedule_paused(&self, schedule: &ScheduleName) -> bool {
        self.rules.iter().any(|rule| rule.applies_to_schedule(schedule))
    }

    pub(crate) fn has_rule(&self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.kind == kind && rule.scope == *scope && rule.tenant.as_ref() == tenant)
    }

    /// Writes the counts of queues, the limiter states and the counters that changed. Called once before each commit.
    pub fn flush_changes(&mut self, tables: &mut dyn Tables) -> TableResult<()> {
        self.flush_queue_counts(tables)?;
        self.flush_limiter_states(tables)?;
        self.counters.last_event = self.event_id_generator.last_id();
        if self.counters != self.written_counters {
            tables.write_counters(&self.counters)?;
            self.written_counters = self.counters;
        }
        Ok(())
    }

    /// Allocates `count` consecutive task numbers; returns the first.
    pub(crate) fn allocate_task_numbers(&mut self, count: usize) -> TaskSeq {
        let first = self.counters.last_task + 1;
        self.counters.last_task += count as i64;
        TaskSeq(first)
    }

    /// Allocates the fence of an attempt, which is greater than any before it.
    pub(crate) fn allocate_fence(&mut self) -> i64 {
        self.counters.last_fence += 1;
        self.counters.last_fence
    }

    pub(crate) fn allocate_object_number(&mut self) -> ObjectNumber {
        self.counters.last_object += 1;
        self.counters.last_object
    }

    pub(crate) fn allocate_order_number(&mut self) -> i64 {
        self.counters.last_order += 1;
        self.counters.last_order
    }

    pub(crate) fn build_task_id(
        &self,
        handler: HandlerId,
        collection: &str,
        seq: TaskSeq,
    ) -> TableResult<TaskId> {
        Ok(TaskId::new(
            self.handler(handler)?.def.name.as_str(),
            collection,
            self.task_id_namespace.uuid_of_seq(seq),
        ))
    }
}

/// Reads a value that is stored as JSON in a named text.
pub(crate) fn read_named_json<V: DeserializeOwned>(
    tables: &mut dyn MetaTable,
    name: &str,
) -> TableResult<Option<V>> {
    let value = tables.read_named_text(name)?.map(|text| serde_json::from_str(&text)).transpose();
    value.map_err(|e| Fault::undecodable(format!("the text {name}"), e))
}

/// Stores a value as JSON in a named text.
pub(crate) fn write_named_json(
    tables: &mut dyn MetaTable,
    name: &str,
    value: &impl Serialize,
) -> TableResult<()> {
    tables.write_named_text(name, &serde_json::to_string(value).map_err(Fault::damaged)?)
}
