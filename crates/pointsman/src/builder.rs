//! Building a bus: handlers, what routes to them, and what they share.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::chain::{Chain, ChainPath, NodeId, Role, Step};
use pointsman_core::names::BadName;
use pointsman_core::route::{Binding, ChainRoutes};
use pointsman_core::store::StoreError;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{HandlerDef, HandlerName, HandlingKey, LaneFailure, Order, Routes};
use pointsman_engine::handlers::in_process::InProcess;
use pointsman_engine::{Delivery, Engine, HandlerSpec, Settings, Setup};

use crate::handler::{Handler, attempt};
use crate::opened::Opened;
use crate::state::{MissingState, Shared, States};
use crate::{Bus, Event};

/// How long an attempt may take, if nothing is said.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why a bus did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "{0:?} is not a kind of store; write `sqlite:app.db`, `sqlite::memory:`, `postgres://user@host/database` or \
         `redis://host:6379`"
    )]
    NoSuchStore(String),
    #[error("the store cannot be opened")]
    Open(#[from] pointsman_store_sqlite::OpenError),
    #[error("the database cannot be opened")]
    Postgres(#[from] pointsman_store_postgres::OpenError),
    #[error("the database cannot be opened")]
    Redis(#[from] pointsman_store_redis::OpenError),
    #[error(transparent)]
    BadName(#[from] BadName),
    #[error("there are two handlers named {0}")]
    TwoHandlers(HandlerName),
    #[error("{kind} is routed to the handler {handler}, which does not exist")]
    NoSuchHandler { kind: HandlingKey, handler: HandlerName },
    #[error("the node {node} of the chain {chain} names the handler {handler}, which does not exist")]
    NoSuchStep { chain: ChainPath, node: NodeId, handler: HandlerName },
    #[error("the chain {chain}: {fault}")]
    BadChain { chain: ChainPath, fault: String },
    #[error("there are two chains {0}")]
    TwoChains(ChainPath),
    #[error("{kind} is routed to the chain {chain}, which does not exist")]
    NoSuchChain { kind: HandlingKey, chain: ChainPath },
    #[error("the handler {handler}: {missing}")]
    MissingState { handler: HandlerName, missing: MissingState },
    #[error("the engine did not start")]
    Store(#[from] StoreError),
}

/// The state of a [`Builder`] that has no handler yet.
#[derive(Debug)]
pub struct Empty;

/// The state of a [`Builder`] whose last handler can still be told how it is treated.
#[derive(Debug)]
pub struct Tuning;

/// Describes a bus. Faults are kept until [`Builder::start`], which names the first.
///
/// `order`, `retry`, `retries`, `timeout` and `on_error` are about the handler that was named last.
#[must_use = "a bus runs once it is started"]
pub struct Builder<Last = Empty> {
    plan: Plan,
    last: PhantomData<Last>,
}

struct Plan {
    store: String,
    settings: Settings,
    states: States,
    handlers: Vec<Registered>,
    routes: Routes,
    chains: Vec<Chain>,
    chain_routes: ChainRoutes,
    fault: Option<StartError>,
}

struct Registered {
    def: HandlerDef,
    timeout: Duration,
    /// Made when all states are known.
    runner: Box<dyn FnOnce(Arc<Shared>) -> Arc<dyn pointsman_engine::Runner> + Send>,
    check: fn(&States) -> Result<(), MissingState>,
}

impl Builder {
    pub(crate) fn new(store: &str) -> Self {
        let plan = Plan {
            store: store.into(),
            settings: Settings { registrant: program(), node_name: node_name(), ..Settings::default() },
            states: States::default(),
            handlers: Vec::new(),
            routes: Routes::new(),
            chains: Vec::new(),
            chain_routes: ChainRoutes::default(),
            fault: None,
        };
        Self { plan, last: PhantomData }
    }
}

impl<Last> Builder<Last> {
    /// What the program is called on a store that others share, such as a database: that of its file, if nothing is
    /// said. Buses of one name are taken to have the same handlers and routes, and what the last of them was started with
    /// counts; those of different names add up.
    pub fn name(mut self, name: &str) -> Self {
        self.plan.settings.registrant = name.into();
        self
    }

    /// How many tasks run at a time; 16 if nothing is said.
    pub fn workers(mut self, workers: usize) -> Self {
        self.plan.settings.slots = workers.max(1);
        self
    }

    /// A value that handlers take as [`State<T>`](crate::State). One for each type; the last one counts.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.plan.states.put(value);
        self
    }

    /// Names a handler. What comes next may say how it is treated.
    pub fn handler<Args: 'static, H: Handler<Args>>(mut self, name: &str, handler: H) -> Builder<Tuning> {
        match HandlerName::new(name) {
            Ok(name) => self.plan.handlers.push(Registered {
                def: HandlerDef::new(name),
                timeout: TIMEOUT,
                runner: Box::new(move |shared| runner(handler, shared)),
                check: H::check,
            }),
            Err(fault) => self.plan.blame(fault.into()),
        }
        Builder { plan: self.plan, last: PhantomData }
    }

    /// Events of this type, and of those below it, go to a handler.
    pub fn on<E: Event>(self, handler: &str) -> Self {
        self.on_key(E::TYPE, handler)
    }

    /// The same, before the queued handlers of the event and one after the other in this order.
    pub fn on_sync<E: Event>(self, handler: &str) -> Self {
        self.on_key_sync(E::TYPE, handler)
    }

    /// Events with this handling key, or one below it, go to a handler.
    pub fn on_key(mut self, key: &str, handler: &str) -> Self {
        self.plan.bind(key, handler, Binding::queued);
        self
    }

    /// The same, synchronously.
    pub fn on_key_sync(mut self, key: &str, handler: &str) -> Self {
        self.plan.bind(key, handler, Binding::sync);
        self
    }

    /// A chain that orders travel; its steps are handlers of this bus.
    pub fn chain(mut self, chain: Chain) -> Self {
        self.plan.chains.push(chain);
        self
    }

    /// Events of this type, and of those below it, each make an order that travels a chain.
    pub fn on_chain<E: Event>(mut self, chain: &str) -> Self {
        match (HandlingKey::new(E::TYPE), ChainPath::new(chain)) {
            (Ok(key), Ok(chain)) => self.plan.chain_routes.bind(key, chain),
            (Err(fault), _) | (_, Err(fault)) => self.plan.blame(fault.into()),
        }
        self
    }

    /// Opens the store and starts to work.
    pub async fn start(self) -> Result<Bus, StartError> {
        let plan = self.plan;
        plan.check_names()?;
        plan.check_chains()?;
        if let Some(fault) = plan.fault {
            return Err(fault);
        }
        for handler in &plan.handlers {
            (handler.check)(&plan.states)
                .map_err(|missing| StartError::MissingState { handler: handler.def.name.clone(), missing })?;
        }
        let shared = Arc::new(Shared::new(plan.states));
        let spec = |handler: Registered| HandlerSpec {
            def: handler.def,
            timeout: handler.timeout,
            runner: Some((handler.runner)(shared.clone())),
        };
        let setup = Setup {
            handlers: plan.handlers.into_iter().map(spec).collect(),
            routes: plan.routes,
            chains: plan.chains,
            chain_routes: plan.chain_routes,
            ..Setup::default()
        };
        let opened = Opened::open(&plan.store, &plan.settings.time).await?;
        match Engine::start(opened.store(), plan.settings, setup).await {
            Ok(engine) => {
                let bus = Bus::new(engine, opened, shared.clone());
                shared.started(bus.clone());
                Ok(bus)
            }
            Err(fault) => {
                opened.store().close();
                Err(fault.into())
            }
        }
    }
}

impl Builder<Tuning> {
    /// Whether events of one object are handled one at a time, in order. They are, if nothing is said.
    pub fn order(self, order: Order) -> Self {
        self.tune(|handler| handler.def.order = order)
    }

    /// When a failed attempt is tried again.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.tune(|handler| handler.def.retry = policy)
    }

    /// How many times a task is tried again: 2, if nothing is said, which means three runs.
    pub fn retries(self, max: u32) -> Self {
        self.tune(|handler| handler.def.retry.max = max)
    }

    /// An attempt that takes longer has failed. One minute if nothing is said.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.tune(|handler| handler.timeout = timeout)
    }

    /// What becomes of an object's further events when one has failed for good.
    pub fn on_error(self, policy: LaneFailure) -> Self {
        self.tune(|handler| handler.def.on_error = policy)
    }

    fn tune(mut self, change: impl FnOnce(&mut Registered)) -> Self {
        // There is none only if its name was refused, and then the start will say so.
        if let Some(handler) = self.plan.handlers.last_mut() {
            change(handler);
        }
        self
    }
}

impl Plan {
    /// Keeps the first fault.
    fn blame(&mut self, fault: StartError) {
        self.fault.get_or_insert(fault);
    }

    fn bind(&mut self, key: &str, handler: &str, binding: fn(HandlerName) -> Binding) {
        match (HandlingKey::new(key), HandlerName::new(handler)) {
            (Ok(key), Ok(handler)) => self.routes.bind(key, binding(handler)),
            (Err(fault), _) | (_, Err(fault)) => self.blame(fault.into()),
        }
    }

    /// Every handler is named once, and every route leads to one.
    fn check_names(&self) -> Result<(), StartError> {
        let named = |name: &HandlerName| self.handlers.iter().filter(|h| h.def.name == *name).count();
        if let Some(twice) = self.handlers.iter().find(|handler| named(&handler.def.name) > 1) {
            return Err(StartError::TwoHandlers(twice.def.name.clone()));
        }
        let bindings =
            self.routes.iter().flat_map(|(key, list)| list.iter().map(move |binding| (key, binding)));
        match bindings.into_iter().find(|(_, binding)| named(&binding.handler) == 0) {
            None => Ok(()),
            Some((kind, binding)) => {
                Err(StartError::NoSuchHandler { kind: kind.clone(), handler: binding.handler.clone() })
            }
        }
    }
}

impl Plan {
    /// Every chain is there once and sound, and all that is named is there.
    fn check_chains(&self) -> Result<(), StartError> {
        let mut paths = BTreeSet::new();
        for Chain { path: chain, .. } in &self.chains {
            if !paths.insert(chain) {
                return Err(StartError::TwoChains(chain.clone()));
            }
        }
        self.chains.iter().try_for_each(|chain| self.check_chain(chain))?;
        let mut bound =
            self.chain_routes.iter().flat_map(|(kind, list)| list.iter().map(move |to| (kind, to)));
        match bound.find(|(_, chain)| !paths.contains(chain)) {
            None => Ok(()),
            Some((kind, chain)) => Err(StartError::NoSuchChain { kind: kind.clone(), chain: chain.clone() }),
        }
    }

    fn check_chain(&self, chain: &Chain) -> Result<(), StartError> {
        let path = || chain.path.clone();
        if let Some((_, fault)) = chain.faults().into_iter().next() {
            return Err(StartError::BadChain { chain: path(), fault });
        }
        for node in &chain.nodes {
            if let Role::Step(Step { handler, .. }) = &node.role
                && !self.handlers.iter().any(|there| there.def.name == *handler)
            {
                let (node, handler) = (node.id.clone(), handler.clone());
                return Err(StartError::NoSuchStep { chain: path(), node, handler });
            }
        }
        Ok(())
    }
}

fn runner<Args: 'static, H: Handler<Args>>(
    handler: H,
    shared: Arc<Shared>,
) -> Arc<dyn pointsman_engine::Runner> {
    Arc::new(InProcess::new(move |delivery: Delivery| attempt(handler.clone(), delivery, shared.clone())))
}

/// The name of the program's file.
fn program() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(Path::file_stem).and_then(|name| name.to_str());
    name.unwrap_or("program").into()
}

/// Tells this process from others of the same program.
fn node_name() -> String {
    format!("{}-{}", program(), std::process::id())
}

impl<Last> std::fmt::Debug for Builder<Last> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let handlers: Vec<_> = self.plan.handlers.iter().map(|handler| &handler.def.name).collect();
        // The store's URL may hold a password.
        f.debug_struct("Builder").field("handlers", &handlers).finish_non_exhaustive()
    }
}
