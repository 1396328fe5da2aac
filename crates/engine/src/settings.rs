//! What an engine is told when it starts, and what can be changed while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::chain::Chain;
use pointsman_core::fire::{CatchUp, Makes, Overlap};
use pointsman_core::journal::Retention;
use pointsman_core::route::ChainRoutes;
use pointsman_core::{HandlerName, Routes, ScheduleName, Tenant, Weight, cron};

use crate::{HandlerSpec, TimeSource};

/// Fixed for the life of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    pub node_name: String,
    /// By which name it registers its handlers and routes. Nodes on one store that are set up alike share one, and what
    /// the last of them registered counts; those of others add up.
    pub registrant: String,
    /// How many tasks run at a time.
    pub slots: usize,
    /// How long a node may be silent before its work is given to others.
    pub lease: Duration,
    /// How often the rescuer looks.
    pub sweep_interval: Duration,
    pub journal_retention: Retention,
    pub history_retention: Retention,
    /// How long an unused object is kept after its last event.
    pub object_retention: Duration,
    pub services: EnabledServices,
    /// The time source of the node. Measure the clock of a store's server before opening the store, so that nothing is
    /// written by a clock that is off.
    pub time_source: Arc<TimeSource>,
    /// A run that ends by itself; a node that goes on for ever has none.
    pub bounded_run: Option<BoundedRun>,
}

/// What a bounded run does. It takes handlers and routes as the store has them.
#[derive(Clone, Debug)]
pub struct BoundedRun {
    /// It runs only these; all that it can if empty.
    pub handlers: BTreeSet<HandlerName>,
    /// It begins no more attempts than this.
    pub max_events: u64,
}

/// How long an unused object is kept, unless the settings say otherwise.
const OBJECTS_RETAIN_FOR: Duration = Duration::from_secs(90 * 86_400);

impl Default for Settings {
    fn default() -> Self {
        Self {
            node_name: "pointsman".into(),
            registrant: "server".into(),
            slots: 16,
            lease: Duration::from_secs(30),
            sweep_interval: Duration::from_secs(5),
            journal_retention: Retention::default(),
            history_retention: Retention::default(),
            object_retention: OBJECTS_RETAIN_FOR,
            services: EnabledServices::default(),
            time_source: Arc::default(),
            bounded_run: None,
        }
    }
}

/// Which rooms this process runs. Emitting and reading work in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnabledServices {
    pub scheduler: bool,
    pub worker: bool,
    pub clock: bool,
    pub rescuer: bool,
    pub pruner: bool,
}

impl Default for EnabledServices {
    fn default() -> Self {
        Self { scheduler: true, worker: true, clock: true, rescuer: true, pruner: true }
    }
}

/// What the configuration and the program say is to be done. Can be replaced while running.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub handlers: Vec<HandlerSpec>,
    pub routes: Routes,
    /// The shares of tenants in the round robin; 1 for those not named.
    pub tenant_weights: BTreeMap<Tenant, Weight>,
    pub schedules: Vec<ScheduleSpec>,
    pub chains: Vec<Chain>,
    /// Which chains events make orders for.
    pub chain_routes: ChainRoutes,
    /// What is configured in files, by its key in the stream, and a digest of each.
    pub file_digests: BTreeMap<String, String>,
}

/// Makes an event, a task or an order at planned times.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleSpec {
    pub name: ScheduleName,
    pub cron: cron::Schedule,
    pub action: Makes,
    pub catch_up: CatchUp,
    /// Only times that passed no longer ago are made up for.
    pub catch_up_window: Duration,
    pub overlap: Overlap,
    /// Each firing is put off by a part of this, the same on every node.
    pub jitter: Duration,
}

impl ScheduleSpec {
    /// One with the usual policies.
    pub fn new(name: ScheduleName, when: cron::Schedule, makes: Makes) -> Self {
        Self {
            name,
            cron: when,
            action: makes,
            catch_up: CatchUp::default(),
            catch_up_window: Duration::from_secs(24 * 3600),
            overlap: Overlap::default(),
            jitter: Duration::ZERO,
        }
    }
}
