//! In-memory registry of chains (definitions and operator settings), and the operations on chains. The operator
//! settings are what an operator has set at run time: whether the chain is stopped, and the action of each chain node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pointsman_core::chain::{Chain, ChainNodeAction, ChainNodeId, ChainPath, ChainState};
use pointsman_core::engine_event::{EngineEvent, FileBasedChange};
use pointsman_core::order::OrderInput;
use pointsman_core::route::ChainRoutes;
use pointsman_core::store::OrderError;
use pointsman_core::task::QueueSubject;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{EventType, HandlerName, Timestamp};

use crate::error::TableResult;
use crate::queues::QueueState;
use crate::row::ChainRow;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::{MAX_CACHED_EVENT_TYPES, read_named_json, write_named_json};

/// Most orders that one transaction re-evaluates.
const MAX_ORDERS_PER_REEVALUATION: usize = 500;

/// All chains ever defined, and the routes from events to chains.
#[derive(Debug, Default)]
pub struct ChainRegistry {
    chains: BTreeMap<ChainPath, Arc<ChainRow>>,
    routes: ChainRoutes,
    /// Cache of resolved routes by event type; cleared when the registration changes.
    chains_by_event_type: HashMap<EventType, Arc<[ChainPath]>>,
}

impl ChainRegistry {
    pub(crate) fn load(tables: &mut dyn Tables) -> TableResult<Self> {
        let routes = read_named_json(tables, "chain_routes")?.unwrap_or_default();
        Ok(Self { routes, ..Self::from_rows(tables.list_chains()?) })
    }

    /// Builds a registry for readers. It has no routes, so no event resolves to a chain.
    pub fn from_rows(rows: Vec<ChainRow>) -> Self {
        let chains = rows.into_iter().map(|row| (row.path().clone(), Arc::new(row)));
        Self { chains: chains.collect(), ..Self::default() }
    }

    pub fn find_chain(&self, path: &ChainPath) -> Option<&Arc<ChainRow>> {
        self.chains.get(path)
    }

    pub(crate) fn iter_defined_chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains.values().filter_map(|chain_row| chain_row.current_definition())
    }

    pub(crate) fn routes(&self) -> &ChainRoutes {
        &self.routes
    }

    /// Returns whether the tasks of a queue wait because their chain or their chain node is stopped.
    pub fn is_chain_or_node_stopped(&self, subject: &QueueSubject) -> bool {
        let QueueSubject::ChainNode { chain, node } = subject else { return false };
        self.chains.get(chain).is_some_and(|chain_row| chain_row.state.is_node_stopped(node))
    }

    /// Describes the stop that keeps the tasks of a queue from running: that of their chain or of their chain node.
    /// `None` if there is none.
    pub fn describe_chain_or_node_stop(&self, subject: &QueueSubject) -> Option<String> {
        let QueueSubject::ChainNode { chain, node } = subject else { return None };
        let state = &self.chains.get(chain)?.state;
        match (state.stopped, state.is_node_stopped(node)) {
            (true, _) => Some(format!("the chain {chain} is stopped")),
            (false, true) => Some(format!("the node {node} of {chain} is stopped")),
            (false, false) => None,
        }
    }

    /// Returns the retry policy that a chain node sets in place of the handler's; `None` if it sets none.
    pub(crate) fn find_retry_override(&self, subject: &QueueSubject) -> Option<&RetryPolicy> {
        let QueueSubject::ChainNode { chain, node } = subject else { return None };
        self.chains.get(chain)?.chain.find_step(node)?.retry.as_ref()
    }

    /// Returns the chains for which an event of this type creates orders.
    pub(crate) fn find_chains_of_event_type(&mut self, event_type: &EventType) -> Arc<[ChainPath]> {
        if let Some(cached) = self.chains_by_event_type.get(event_type) {
            return cached.clone();
        }
        if self.chains_by_event_type.len() >= MAX_CACHED_EVENT_TYPES {
            self.chains_by_event_type.clear();
        }
        let chain_paths: Arc<[_]> = self.routes.find_chains_of_event_type(event_type).into();
        self.chains_by_event_type.insert(event_type.clone(), chain_paths.clone());
        chain_paths
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Replaces the defined chains. Marks orders for re-evaluation if their chain changed or uses a handler that was
    /// not registered before.
    pub(crate) fn register_chains(
        &mut self,
        chains: &[Chain],
        routes: &ChainRoutes,
        new_handlers: &[HandlerName],
    ) -> TableResult<()> {
        write_named_json(self.tables, "chain_routes", routes)?;
        self.tables.set_defined_chains(chains)?;
        let before = std::mem::replace(&mut self.state.chains, ChainRegistry::load(self.tables)?);
        let is_changed =
            |(path, chain_row): &(&ChainPath, &Arc<ChainRow>)| before.find_chain(path) != Some(chain_row);
        let uses_new_handler =
            |chain_row: &ChainRow| chain_row.chain.handlers().any(|handler| new_handlers.contains(handler));
        let all_chains = self.state.chains.chains.iter();
        let changed = all_chains
            .filter(|entry| is_changed(entry) || uses_new_handler(entry.1))
            .map(|(path, _)| path.clone());
        changed
            .collect::<Vec<_>>()
            .iter()
            .try_for_each(|path| self.mark_orders_of_chain_for_reevaluation(path))
    }

    /// Publishes engine events for each object that was added to, changed in or removed from the configuration files.
    pub(crate) fn publish_configured_object_changes(
        &mut self,
        files: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> TableResult<()> {
        let before = self.tables.list_configured_object_digests()?;
        for key in before.keys().filter(|key| !files.contains_key(*key)) {
            self.tables.delete_configured_object_digest(key)?;
            self.publish_configured_object_change(FileBasedChange::Removed, key, now)?;
        }
        for (key, digest) in files.iter().filter(|(key, digest)| before.get(*key) != Some(*digest)) {
            self.tables.write_configured_object_digest(key, digest)?;
            let change =
                if before.contains_key(key) { FileBasedChange::Replaced } else { FileBasedChange::Added };
            self.publish_configured_object_change(change, key, now)?;
            self.publish_configured_object_change(FileBasedChange::Activated, key, now)?;
        }
        Ok(())
    }

    fn publish_configured_object_change(
        &mut self,
        change: FileBasedChange,
        key: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        self.publish_engine_event(&EngineEvent::FileBasedChanged { change, key: key.into() }, now)
    }

    /// Stops or resumes a chain.
    pub(crate) fn set_chain_stopped(
        &mut self,
        path: &ChainPath,
        stopped: bool,
        now: Timestamp,
    ) -> TableResult<Result<(), OrderError>> {
        let Some(chain_row) =
            self.state.chains.find_chain(path).filter(|chain_row| chain_row.is_defined).cloned()
        else {
            return Ok(Err(OrderError::NoSuchChain(path.clone())));
        };
        if chain_row.state.stopped == stopped {
            return Ok(Ok(()));
        }
        let state = ChainState { stopped, ..chain_row.state.clone() };
        let event = EngineEvent::JobChainStateChanged { chain: path.clone(), state: state.as_str() };
        let skips_nodes = state.node_actions.keys().any(|node| state.skips_node(node));
        self.write_and_apply_chain_state(&chain_row, state, now)?;
        self.publish_engine_event(&event, now)?;
        if skips_nodes {
            self.mark_orders_of_chain_for_reevaluation(path)?;
        }
        Ok(Ok(()))
    }

    /// Sets whether orders run, wait at, or skip a chain node.
    pub(crate) fn set_chain_node_action(
        &mut self,
        path: &ChainPath,
        node: &ChainNodeId,
        action: ChainNodeAction,
        now: Timestamp,
    ) -> TableResult<Result<(), OrderError>> {
        let Some(chain_row) =
            self.state.chains.find_chain(path).filter(|chain_row| chain_row.is_defined).cloned()
        else {
            return Ok(Err(OrderError::NoSuchChain(path.clone())));
        };
        if chain_row.chain.find_step(node).is_none() {
            return Ok(Err(OrderError::NoSuchNode(path.clone(), node.clone())));
        }
        if chain_row.state.node_action(node) == action {
            return Ok(Ok(()));
        }
        let was_skipped = chain_row.state.skips_node(node);
        let mut state = chain_row.state.clone();
        match action {
            ChainNodeAction::Process => drop(state.node_actions.remove(node)),
            ChainNodeAction::Stop | ChainNodeAction::NextState => {
                state.node_actions.insert(node.clone(), action);
            }
        }
        self.write_and_apply_chain_state(&chain_row, state, now)?;
        let (chain, node) = (path.clone(), node.clone());
        self.publish_engine_event(
            &EngineEvent::JobChainNodeActionChanged { chain, node: node.clone(), action },
            now,
        )?;
        // Orders that found only skipped nodes in a cycle have stopped at any of them.
        if was_skipped || action == ChainNodeAction::NextState {
            self.mark_orders_of_chain_for_reevaluation(path)?;
        }
        Ok(Ok(()))
    }

    /// Writes the operator settings of a chain, and pauses or resumes the queues of its steps.
    fn write_and_apply_chain_state(
        &mut self,
        chain_row: &ChainRow,
        state: ChainState,
        now: Timestamp,
    ) -> TableResult<()> {
        let path = chain_row.chain.path.clone();
        self.tables.write_chain_state(&path, &state)?;
        self.state.chains.chains.insert(path.clone(), Arc::new(ChainRow { state, ..chain_row.clone() }));
        for queue in self.state.refresh_paused_flags(|queue| is_step_queue_of_chain(queue, &path))? {
            self.unschedule_queue_tasks(queue, now)?;
        }
        self.state.has_new_ready_tasks = true;
        Ok(())
    }

    /// Marks all orders of a chain for re-evaluation.
    fn mark_orders_of_chain_for_reevaluation(&mut self, path: &ChainPath) -> TableResult<()> {
        self.tables.write_reevaluation_cursor(path, Some(0))
    }

    /// Re-evaluates a batch of orders whose chains have changed; returns whether there may be more. Batches keep emits
    /// from waiting for all orders; the cursor is stored and survives a restart.
    pub(crate) fn reevaluate_order_batch(&mut self, now: Timestamp) -> TableResult<bool> {
        let Some((path, after)) = self.tables.find_reevaluation_cursor()? else { return Ok(false) };
        let numbers = self.tables.list_order_numbers_after(&path, after, MAX_ORDERS_PER_REEVALUATION)?;
        for number in &numbers {
            self.apply_input_to_order_number(*number, OrderInput::Reevaluate, now)?;
        }
        self.tables.write_reevaluation_cursor(&path, numbers.last().copied())?;
        Ok(true)
    }
}

/// Returns whether the tasks of a queue are steps of orders of this chain.
pub(crate) fn is_step_queue_of_chain(queue: &QueueState, path: &ChainPath) -> bool {
    matches!(&queue.subject, QueueSubject::ChainNode { chain, .. } if chain == path)
}
