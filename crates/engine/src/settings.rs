//! The settings of an engine, which are fixed at its start, and its setup, which can be replaced while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::chain::Chain;
use pointsman_core::fire::{CatchUpPolicy, FireAction, OverlapPolicy};
use pointsman_core::journal::Retention;
use pointsman_core::route::ChainRoutes;
use pointsman_core::{HandlerName, Routes, ScheduleName, Tenant, Weight, cron};

use crate::{HandlerSpec, TimeSource};

/// Settings that are fixed for the life of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's name, for people.
    pub node_name: String,
    /// The name under which the node registers its handlers and routes. Nodes with the same configuration share a name,
    /// and the last registration under a name replaces the earlier ones; registrations under different names add up.
    pub registration_name: String,
    /// The maximum number of tasks that this node runs at a time.
    pub slot_count: usize,
    /// How long a node may be without a heartbeat before its tasks are given to others.
    pub node_lease_duration: Duration,
    /// How often the rescuer sends heartbeats and frees tasks of dead nodes.
    pub sweep_interval: Duration,
    /// How many events are kept, and how long.
    pub journal_retention: Retention,
    /// How many ended tasks are kept, and how long.
    pub history_retention: Retention,
    /// How long an unused object is kept after its last event.
    pub object_retention: Duration,
    /// The services that this process runs.
    pub enabled_services: EnabledServices,
    /// The time source of the node. Measure the clock of a store's server before opening the store, so that nothing is
    /// written with a wrong time.
    pub time_source: Arc<TimeSource>,
    /// The limits of a bounded run; none for a node that runs permanently.
    pub bounded_run: Option<BoundedRun>,
}

/// The limits of a bounded run. It uses the handlers and routes that are registered in the store.
#[derive(Clone, Debug)]
pub struct BoundedRun {
    /// The only handlers that are run; all if empty.
    pub handlers: BTreeSet<HandlerName>,
    /// The maximum number of attempts that are started.
    pub max_attempts: u64,
}

/// How long an unused object is kept, unless the settings say otherwise.
const DEFAULT_OBJECT_RETENTION: Duration = Duration::from_secs(90 * 86_400);

impl Default for Settings {
    fn default() -> Self {
        Self {
            node_name: "pointsman".into(),
            registration_name: "server".into(),
            slot_count: 16,
            node_lease_duration: Duration::from_secs(30),
            sweep_interval: Duration::from_secs(5),
            journal_retention: Retention::default(),
            history_retention: Retention::default(),
            object_retention: DEFAULT_OBJECT_RETENTION,
            enabled_services: EnabledServices::default(),
            time_source: Arc::default(),
            bounded_run: None,
        }
    }
}

/// The services that this process runs. Emitting and reading always work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnabledServices {
    /// Schedules tasks ahead of free slots.
    pub scheduler: bool,
    /// Runs handlers.
    pub worker: bool,
    /// Fires schedules.
    pub clock: bool,
    /// Frees the tasks of dead nodes and workers.
    pub rescuer: bool,
    /// Deletes old events, tasks and objects.
    pub pruner: bool,
}

impl Default for EnabledServices {
    fn default() -> Self {
        Self { scheduler: true, worker: true, clock: true, rescuer: true, pruner: true }
    }
}

/// Handlers, routes, schedules and chains, from the configuration and the program. Can be replaced while running.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The handlers.
    pub handlers: Vec<HandlerSpec>,
    /// Which handlers events go to.
    pub routes: Routes,
    /// The weights of tenants in the round robin; 1 for tenants that are not named.
    pub tenant_weights: BTreeMap<Tenant, Weight>,
    /// The schedules.
    pub schedules: Vec<ScheduleSpec>,
    /// The chains.
    pub chains: Vec<Chain>,
    /// The chains for which events create orders.
    pub chain_routes: ChainRoutes,
    /// Digests of all objects that are configured in files, by their key in the journal.
    pub file_digests: BTreeMap<String, String>,
}

/// A schedule, which creates an event, a task or an order at planned times.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleSpec {
    /// The schedule's name.
    pub name: ScheduleName,
    /// The planned times.
    pub cron: cron::Schedule,
    /// What each fire creates.
    pub action: FireAction,
    /// Which missed times are caught up.
    pub catch_up: CatchUpPolicy,
    /// Missed times are caught up only if they are at most this old.
    pub catch_up_window: Duration,
    /// What happens at a planned time at which the previous fire's task or order is unfinished.
    pub overlap: OverlapPolicy,
    /// The maximum delay of each fire. Each planned time is delayed by a part of it, which is the same on every node.
    pub jitter: Duration,
}

impl ScheduleSpec {
    /// A schedule with the default policies.
    pub fn new(name: ScheduleName, cron: cron::Schedule, action: FireAction) -> Self {
        Self {
            name,
            cron,
            action,
            catch_up: CatchUpPolicy::default(),
            catch_up_window: Duration::from_secs(24 * 3600),
            overlap: OverlapPolicy::default(),
            jitter: Duration::ZERO,
        }
    }
}
