//! Builds a bus: its handlers, their routes, schedules, chains and shared state.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::chain::{Chain, ChainNodeId, ChainNodeRole, ChainPath, ChainStep};
use pointsman_core::cron::{self, BadExpression};
use pointsman_core::fire::FireAction;
use pointsman_core::names::BadName;
use pointsman_core::route::{ChainRoutes, HandlerBinding};
use pointsman_core::store::StoreError;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{
    EventType, HandlerDef, HandlerName, LaneFailurePolicy, LaneOrdering, Routes, ScheduleName, Timestamp,
};
#[cfg(feature = "http")]
use pointsman_engine::handlers::http::{BadHttpTarget, HttpHandler, HttpTarget};
use pointsman_engine::handlers::in_process::InProcessHandler;
use pointsman_engine::{Delivery, Engine, HandlerSpec, Runner, ScheduleSpec, Settings, Setup};
use pointsman_store::store_kind::MissingStoreFeature;

use crate::bus_store;
use crate::emit::{EmitOptions, InvalidEvent};
use crate::event::to_new_event;
use crate::handler::{Handler, run_attempt};
use crate::shared_state::{BusResources, MissingState, StateMap};
use crate::{Bus, Event};

/// How long an attempt may take by default.
const DEFAULT_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a bus did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The URL names no store that this program can open.
    #[error(
        "{0:?} is not a kind of store; write `sqlite:app.db`, `sqlite::memory:`, `postgres://user@host/database` or \
         `redis://host:6379`"
    )]
    UnknownStoreKind(String),
    /// The program was compiled without the feature of the store.
    #[error(transparent)]
    MissingStoreFeature(#[from] MissingStoreFeature),
    /// The SQLite file cannot be opened.
    #[cfg(feature = "sqlite")]
    #[error("the SQLite store cannot be opened")]
    OpenSqlite(#[from] pointsman_store_sqlite::OpenError),
    /// The PostgreSQL database cannot be opened.
    #[cfg(feature = "postgres")]
    #[error("the PostgreSQL store cannot be opened")]
    OpenPostgres(#[from] pointsman_store_postgres::OpenError),
    /// The Redis database cannot be opened.
    #[cfg(feature = "redis")]
    #[error("the Redis store cannot be opened")]
    OpenRedis(#[from] pointsman_store_redis::OpenError),
    /// The target of an HTTP handler is invalid.
    #[cfg(feature = "http")]
    #[error("the target of the handler {handler} is invalid")]
    InvalidHttpTarget {
        /// The handler.
        handler: String,
        /// The mistake.
        source: BadHttpTarget,
    },
    /// The name of a handler, schedule, event type or chain is invalid.
    #[error(transparent)]
    InvalidName(#[from] BadName),
    /// Two handlers have the same name.
    #[error("there are two handlers named {0}")]
    DuplicateHandler(HandlerName),
    /// An event type is routed to a handler that was not added.
    #[error("{event_type} is routed to the handler {handler}, which does not exist; add it with `handler`")]
    UnknownHandler {
        /// The event type.
        event_type: EventType,
        /// The handler.
        handler: HandlerName,
    },
    /// A schedule has the name of another one, or of a handler.
    #[error("there is another schedule or handler named {0}; they share one namespace, so use another name")]
    DuplicateSchedule(ScheduleName),
    /// The cron expression of a schedule is invalid.
    #[error("the schedule {schedule} has an invalid cron expression")]
    InvalidCron {
        /// The schedule.
        schedule: ScheduleName,
        /// The mistake.
        #[source]
        mistake: BadExpression,
    },
    /// The event of a schedule cannot be emitted.
    #[error(transparent)]
    InvalidEvent(#[from] InvalidEvent),
    /// The handler of a chain's step was not added.
    #[error("the node {node} of the chain {chain} names the handler {handler}, which does not exist")]
    UnknownStepHandler {
        /// The chain.
        chain: ChainPath,
        /// The node of the step.
        node: ChainNodeId,
        /// The handler.
        handler: HandlerName,
    },
    /// A chain is invalid, for example because a node leads to a node that does not exist.
    #[error("the chain {chain} is invalid: {reason}")]
    InvalidChain {
        /// The chain.
        chain: ChainPath,
        /// The first mistake, as a text for people.
        reason: String,
    },
    /// Two chains have the same path.
    #[error("there are two chains {0}")]
    DuplicateChain(ChainPath),
    /// An event type is routed to a chain that was not added.
    #[error("{event_type} is routed to the chain {chain}, which does not exist")]
    UnknownChain {
        /// The event type.
        event_type: EventType,
        /// The chain.
        chain: ChainPath,
    },
    /// A handler takes a state that was not added to the builder.
    #[error("the handler {handler} cannot run")]
    MissingState {
        /// The handler.
        handler: HandlerName,
        /// The state that it takes.
        source: MissingState,
    },
    /// The store failed while the engine started.
    #[error("the engine did not start")]
    EngineNotStarted(#[from] StoreError),
}

/// Type state of a [`BusBuilder`] that has no handler yet.
#[derive(Debug)]
pub struct NoHandlerYet;

/// Type state of a [`BusBuilder`] whose last handler can be configured.
#[derive(Debug)]
pub struct HandlerAdded;

/// Describes a bus to start. [`BusBuilder::start`] returns the first mistake.
///
/// `lane_ordering`, `retry_policy`, `retries`, `attempt_timeout` and `on_error` configure the handler that was added last.
#[must_use = "a bus runs once it is started"]
pub struct BusBuilder<Last = NoHandlerYet> {
    plan: BusPlan,
    last_handler: PhantomData<Last>,
}

/// Everything that was given to a [`BusBuilder`].
struct BusPlan {
    store_url: String,
    settings: Settings,
    states: StateMap,
    handlers: Vec<BuilderHandler>,
    routes: Routes,
    schedules: Vec<ScheduleSpec>,
    chains: Vec<Chain>,
    chain_routes: ChainRoutes,
    first_error: Option<StartError>,
}

/// Builds the runner of a handler once all states are known.
type RunnerBuilder = Box<dyn FnOnce(Arc<BusResources>) -> Arc<dyn Runner> + Send>;

/// A handler that was added to a [`BusBuilder`].
struct BuilderHandler {
    def: HandlerDef,
    attempt_timeout: Duration,
    build_runner: RunnerBuilder,
    /// Checks that the states that the handler takes were given.
    check_states: fn(&StateMap) -> Result<(), MissingState>,
}

impl BusBuilder {
    pub(crate) fn new(store_url: &str) -> Self {
        let plan = BusPlan {
            store_url: store_url.into(),
            settings: Settings {
                registration_name: executable_name(),
                node_name: node_name(),
                ..Settings::default()
            },
            states: StateMap::default(),
            handlers: Vec::new(),
            routes: Routes::new(),
            schedules: Vec::new(),
            chains: Vec::new(),
            chain_routes: ChainRoutes::default(),
            first_error: None,
        };
        Self { plan, last_handler: PhantomData }
    }
}

impl<Last> BusBuilder<Last> {
    /// Sets the program's name on a store that several programs share; the default is the name of its executable.
    /// Buses of the same name are taken to have the same handlers and routes, and those of the bus started last apply;
    /// handlers and routes of differently named buses add up.
    pub fn program_name(mut self, name: &str) -> Self {
        self.plan.settings.registration_name = name.into();
        self
    }

    /// Sets how many tasks run at a time; 16 by default.
    pub fn workers(mut self, workers: usize) -> Self {
        self.plan.settings.slot_count = workers.max(1);
        self
    }

    /// Adds a value that handlers take as [`State<T>`](crate::State). There is one value of each type: the last one
    /// added.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.plan.states.insert(value);
        self
    }

    /// Adds a handler. The following calls may configure it.
    pub fn handler<Args: 'static, H: Handler<Args>>(
        mut self,
        name: &str,
        handler: H,
    ) -> BusBuilder<HandlerAdded> {
        let build_runner: RunnerBuilder = Box::new(move |resources| build_runner(handler, resources));
        self.plan.add_handler(name, build_runner, H::check_states);
        BusBuilder { plan: self.plan, last_handler: PhantomData }
    }

    /// Adds a handler that is an HTTP endpoint: an attempt is a POST request with the event, as a CloudEvent. The
    /// following calls may configure it.
    #[cfg(feature = "http")]
    pub fn http_handler(mut self, name: &str, target: HttpTarget) -> BusBuilder<HandlerAdded> {
        match HttpHandler::new(target) {
            Ok(handler) => self.plan.add_handler(name, Box::new(|_| Arc::new(handler)), |_| Ok(())),
            Err(source) => {
                self.plan.record_first_error(StartError::InvalidHttpTarget { handler: name.into(), source });
            }
        }
        BusBuilder { plan: self.plan, last_handler: PhantomData }
    }

    /// Routes events of this type, and of its subtypes, to a handler.
    pub fn on<E: Event>(self, handler: &str) -> Self {
        self.on_event_type(E::TYPE, handler)
    }

    /// Like [`on`](Self::on), but the handler is synchronous: it runs before the event's queued handlers, and
    /// synchronous handlers run one after another in the order of these calls.
    pub fn on_sync<E: Event>(self, handler: &str) -> Self {
        self.on_event_type_sync(E::TYPE, handler)
    }

    /// Routes events with this handling key, or one below it, to a handler.
    pub fn on_event_type(mut self, key: &str, handler: &str) -> Self {
        self.plan.bind_route(key, handler, HandlerBinding::new_queued);
        self
    }

    /// Like [`on_event_type`](Self::on_event_type), but the handler is synchronous: it runs before the event's queued
    /// handlers, and synchronous handlers run one after another in the order of these calls.
    pub fn on_event_type_sync(mut self, key: &str, handler: &str) -> Self {
        self.plan.bind_route(key, handler, HandlerBinding::new_sync);
        self
    }

    /// Emits this event at the planned times of a cron expression of five (Vixie) or six to seven (Quartz) fields, in
    /// UTC. Each planned time fires once, on one of the programs and servers that have the schedule. After a time
    /// without any of them, the latest missed time of the last day is caught up.
    pub fn schedule<E: Event>(mut self, name: &str, cron: &str, event: E) -> Self {
        match new_event_schedule(name, cron, &event) {
            Ok(schedule) => self.plan.schedules.push(schedule),
            Err(error) => self.plan.record_first_error(error),
        }
        self
    }

    /// Adds a schedule with policies of its own: a time zone, catching up, overlaps, jitter; or one that adds orders.
    pub fn schedule_spec(mut self, schedule: ScheduleSpec) -> Self {
        self.plan.schedules.push(schedule);
        self
    }

    /// Adds a chain for orders; its steps are handlers of this bus.
    pub fn chain(mut self, chain: Chain) -> Self {
        self.plan.chains.push(chain);
        self
    }

    /// Starts an order on a chain for each event of this type, and of its subtypes.
    pub fn on_chain<E: Event>(mut self, chain: &str) -> Self {
        match (EventType::new(E::TYPE), ChainPath::new(chain)) {
            (Ok(key), Ok(chain)) => self.plan.chain_routes.bind(key, chain),
            (Err(error), _) | (_, Err(error)) => self.plan.record_first_error(error.into()),
        }
        self
    }

    /// Opens the store and starts the engine.
    pub async fn start(self) -> Result<Bus, StartError> {
        let plan = self.plan;
        plan.check_handlers()?;
        plan.check_schedules()?;
        plan.check_chains()?;
        if let Some(error) = plan.first_error {
            return Err(error);
        }
        for handler in &plan.handlers {
            (handler.check_states)(&plan.states)
                .map_err(|source| StartError::MissingState { handler: handler.def.name.clone(), source })?;
        }
        let resources = Arc::new(BusResources::new(plan.states));
        let to_spec = |handler: BuilderHandler| HandlerSpec {
            def: handler.def,
            attempt_timeout: handler.attempt_timeout,
            runner: Some((handler.build_runner)(resources.clone())),
        };
        let setup = Setup {
            handlers: plan.handlers.into_iter().map(to_spec).collect(),
            routes: plan.routes,
            schedules: plan.schedules,
            chains: plan.chains,
            chain_routes: plan.chain_routes,
            ..Setup::default()
        };
        let store = bus_store::open_store(&plan.store_url, &plan.settings.time_source).await?;
        let program_name = plan.settings.registration_name.clone();
        match Engine::start(store.clone(), plan.settings, setup).await {
            Ok(engine) => {
                let bus = Bus::new(engine, store, &program_name, resources.clone());
                resources.set_bus(bus.clone());
                Ok(bus)
            }
            Err(error) => {
                store.close();
                Err(error.into())
            }
        }
    }
}

impl BusBuilder<HandlerAdded> {
    /// Sets whether events of one object are handled one at a time, in order, which is the default.
    pub fn lane_ordering(self, ordering: LaneOrdering) -> Self {
        self.change_last_handler(|handler| handler.def.ordering = ordering)
    }

    /// Sets how often and when a failed task is retried.
    pub fn retry_policy(self, policy: RetryPolicy) -> Self {
        self.change_last_handler(|handler| handler.def.retry = policy)
    }

    /// Sets the maximum number of retries: 2 by default, which means three attempts.
    pub fn retries(self, max: u32) -> Self {
        self.change_last_handler(|handler| handler.def.retry.max_retries = max)
    }

    /// Sets how long an attempt may take before it fails; one minute by default.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.change_last_handler(|handler| handler.attempt_timeout = timeout)
    }

    /// Sets what happens to the further events of an object when the task of one has failed for good.
    pub fn on_error(self, policy: LaneFailurePolicy) -> Self {
        self.change_last_handler(|handler| handler.def.on_error = policy)
    }

    fn change_last_handler(mut self, change: impl FnOnce(&mut BuilderHandler)) -> Self {
        // The handler is absent only if its name or target was invalid, and `start` returns that error.
        if let Some(handler) = self.plan.handlers.last_mut() {
            change(handler);
        }
        self
    }
}

impl BusPlan {
    /// Records an error that `start` returns, unless there is an earlier one.
    fn record_first_error(&mut self, error: StartError) {
        self.first_error.get_or_insert(error);
    }

    /// Adds a handler with the default settings.
    fn add_handler(
        &mut self,
        name: &str,
        build_runner: RunnerBuilder,
        check_states: fn(&StateMap) -> Result<(), MissingState>,
    ) {
        match HandlerName::new(name) {
            Ok(name) => self.handlers.push(BuilderHandler {
                def: HandlerDef::new(name),
                attempt_timeout: DEFAULT_ATTEMPT_TIMEOUT,
                build_runner,
                check_states,
            }),
            Err(error) => self.record_first_error(error.into()),
        }
    }

    fn bind_route(&mut self, key: &str, handler: &str, binding: fn(HandlerName) -> HandlerBinding) {
        match (EventType::new(key), HandlerName::new(handler)) {
            (Ok(key), Ok(handler)) => self.routes.bind(key, binding(handler)),
            (Err(error), _) | (_, Err(error)) => self.record_first_error(error.into()),
        }
    }

    /// Checks that handler names are unique and that every route leads to a handler.
    fn check_handlers(&self) -> Result<(), StartError> {
        let count_handlers_named =
            |name: &HandlerName| self.handlers.iter().filter(|h| h.def.name == *name).count();
        if let Some(duplicate) =
            self.handlers.iter().find(|handler| count_handlers_named(&handler.def.name) > 1)
        {
            return Err(StartError::DuplicateHandler(duplicate.def.name.clone()));
        }
        let bindings = self
            .routes
            .iter()
            .flat_map(|(event_type, bindings)| bindings.iter().map(move |binding| (event_type, binding)));
        match bindings.into_iter().find(|(_, binding)| count_handlers_named(&binding.handler) == 0) {
            None => Ok(()),
            Some((event_type, binding)) => Err(StartError::UnknownHandler {
                event_type: event_type.clone(),
                handler: binding.handler.clone(),
            }),
        }
    }

    /// Checks that no schedule has the name of another one or of a handler.
    fn check_schedules(&self) -> Result<(), StartError> {
        let mut names: BTreeSet<&str> =
            self.handlers.iter().map(|handler| handler.def.name.as_str()).collect();
        match self.schedules.iter().find(|schedule| !names.insert(schedule.name.as_str())) {
            None => Ok(()),
            Some(duplicate) => Err(StartError::DuplicateSchedule(duplicate.name.clone())),
        }
    }

    /// Checks that chains are unique and valid, and that routes lead to chains that exist.
    fn check_chains(&self) -> Result<(), StartError> {
        let mut paths = BTreeSet::new();
        for Chain { path: chain, .. } in &self.chains {
            if !paths.insert(chain) {
                return Err(StartError::DuplicateChain(chain.clone()));
            }
        }
        self.chains.iter().try_for_each(|chain| self.check_chain(chain))?;
        let mut routes = self
            .chain_routes
            .iter()
            .flat_map(|(event_type, chains)| chains.iter().map(move |chain| (event_type, chain)));
        match routes.find(|(_, chain)| !paths.contains(chain)) {
            None => Ok(()),
            Some((event_type, chain)) => {
                Err(StartError::UnknownChain { event_type: event_type.clone(), chain: chain.clone() })
            }
        }
    }

    fn check_chain(&self, chain: &Chain) -> Result<(), StartError> {
        let path = || chain.path.clone();
        if let Some((_, reason)) = chain.validation_errors().into_iter().next() {
            return Err(StartError::InvalidChain { chain: path(), reason });
        }
        for node in &chain.nodes {
            if let ChainNodeRole::Step(ChainStep { handler, .. }) = &node.role
                && !self.handlers.iter().any(|registered| registered.def.name == *handler)
            {
                let (node, handler) = (node.id.clone(), handler.clone());
                return Err(StartError::UnknownStepHandler { chain: path(), node, handler });
            }
        }
        Ok(())
    }
}

/// A schedule that emits an event, with the default policies.
fn new_event_schedule<E: Event>(name: &str, cron: &str, event: &E) -> Result<ScheduleSpec, StartError> {
    let name = ScheduleName::new(name)?;
    let cron = cron::Schedule::parse_utc(cron)
        .map_err(|mistake| StartError::InvalidCron { schedule: name.clone(), mistake })?;
    // Only an event with a delay depends on the current time.
    let event = to_new_event(event, &EmitOptions::new(), None, Timestamp::MIN)?;
    Ok(ScheduleSpec::new(name, cron, FireAction::EmitEvent(Box::new(event))))
}

fn build_runner<Args: 'static, H: Handler<Args>>(
    handler: H,
    resources: Arc<BusResources>,
) -> Arc<dyn Runner> {
    Arc::new(InProcessHandler::new(move |delivery: Delivery| {
        run_attempt(handler.clone(), delivery, resources.clone())
    }))
}

/// The name of the program's executable.
fn executable_name() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(Path::file_stem).and_then(|name| name.to_str());
    name.unwrap_or("program").into()
}

/// A name that distinguishes this process from others of the same program.
fn node_name() -> String {
    format!("{}-{}", executable_name(), std::process::id())
}

impl<Last> std::fmt::Debug for BusBuilder<Last> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let handlers: Vec<_> = self.plan.handlers.iter().map(|handler| &handler.def.name).collect();
        // The store's URL may contain a password.
        f.debug_struct("BusBuilder").field("handlers", &handlers).finish_non_exhaustive()
    }
}
