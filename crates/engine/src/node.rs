//! What the rooms of one node share: the store, what is set up, the slots, and the signals between them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use pointsman_core::store::{Claim, Claims, NodeId, Registration, Store};
use pointsman_core::{HandlerName, NewEvent, Timestamp};
use tokio::sync::{Notify, mpsc, watch};

use crate::attempt::{self, EndedAttempt};
use crate::change::Changes;
use crate::held::{Asked, Held};
use crate::logbook::Logbook;
use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::running::Running;
use crate::signals::Signals;
use crate::slots::{Reserved, Slots};
use crate::{HandlerSpec, Settings, Setup};

pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) observer: Observer,
    pub(crate) changes: Changes,
    pub(crate) slots: Slots,
    pub(crate) running: Running,
    pub(crate) held: Held,
    pub(crate) logbook: Logbook,
    /// Ends on their way to the worker.
    pub(crate) ended: mpsc::UnboundedSender<EndedAttempt>,
    pub(crate) signals: Arc<Signals>,
    /// Wakes whoever checks that running attempts still hold their tasks.
    pub(crate) nudged: Notify,
    /// Whether there is work that waits for a slot.
    pub(crate) saturated: watch::Sender<bool>,
    configured: ArcSwap<Configured>,
    reconfigured: watch::Sender<()>,
    id: AtomicI64,
}

/// What a node is made of before it has joined.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) logbook: Logbook,
    pub(crate) ended: mpsc::UnboundedSender<EndedAttempt>,
}

impl Node {
    pub(crate) fn new(parts: Parts, id: NodeId, setup: Setup) -> Self {
        let slots = if parts.settings.rooms.worker { parts.settings.slots } else { 0 };
        let signals = Arc::new(Signals::new());
        Self {
            observer: Observer::new(parts.store.clone(), parts.metrics.clone(), signals.clone()),
            store: parts.store,
            settings: parts.settings,
            metrics: parts.metrics,
            changes: Changes::new(),
            slots: Slots::new(slots),
            running: Running::default(),
            held: Held::default(),
            logbook: parts.logbook,
            ended: parts.ended,
            signals,
            nudged: Notify::new(),
            saturated: watch::Sender::new(false),
            configured: ArcSwap::from_pointee(Configured::new(setup)),
            reconfigured: watch::Sender::new(()),
            id: AtomicI64::new(id),
        }
    }

    /// Who this node is to the store. Changes when the node was given up and joined again.
    pub(crate) fn id(&self) -> NodeId {
        self.id.load(Ordering::Acquire)
    }

    pub(crate) fn set_id(&self, id: NodeId) {
        self.id.store(id, Ordering::Release);
    }

    pub(crate) fn configured(&self) -> Arc<Configured> {
        self.configured.load_full()
    }

    pub(crate) fn configure(&self, setup: Setup) {
        self.configured.store(Arc::new(Configured::new(setup)));
        self.reconfigured.send_replace(());
        self.signals.work.notify_one();
    }

    /// Changes whenever something else is set up.
    pub(crate) fn reconfigured(&self) -> watch::Receiver<()> {
        self.reconfigured.subscribe()
    }

    /// A claim that fills these slots; none if there is nothing to fill or nothing to run.
    pub(crate) fn claim(&self, reserved: &Reserved) -> Option<Claim> {
        let handlers = self.configured.load().names.clone();
        let max = reserved.count();
        (max > 0 && !handlers.is_empty()).then(|| Claim { node: self.id(), handlers, max })
    }

    /// Starts what a claim brought, each in one of the slots that were reserved for it.
    pub(crate) fn start(self: &Arc<Self>, claims: &mut Claims, reserved: &mut Reserved, asked: Asked) {
        for task in claims.tasks.drain(..) {
            attempt::start(self, task, reserved.take(), asked);
        }
    }

    /// Counts a call that the store did not answer.
    pub(crate) fn store_failed(&self) {
        self.metrics.store_errors.inc();
    }
}

/// A setup, prepared for looking things up.
pub(crate) struct Configured {
    pub(crate) setup: Arc<Setup>,
    names: Arc<BTreeSet<HandlerName>>,
    specs: HashMap<HandlerName, HandlerSpec>,
}

impl Configured {
    fn new(setup: Setup) -> Self {
        let specs: HashMap<_, _> =
            setup.handlers.iter().map(|spec| (spec.def.name.clone(), spec.clone())).collect();
        Self { names: Arc::new(specs.keys().cloned().collect()), specs, setup: Arc::new(setup) }
    }

    pub(crate) fn spec(&self, handler: &HandlerName) -> Option<&HandlerSpec> {
        self.specs.get(handler)
    }

    /// How many tasks will be ready at once when these events are journaled. Stops counting at `enough`, and
    /// after a few dozen events: it is only to know how many slots to set aside.
    pub(crate) fn ready_tasks<'a>(
        &self,
        events: impl Iterator<Item = &'a NewEvent>,
        enough: usize,
        now: Timestamp,
    ) -> usize {
        const LOOK_AT: usize = 64;
        let mut tasks = 0;
        for event in events.filter(|event| event.due.is_none_or(|due| due <= now)).take(LOOK_AT) {
            if tasks >= enough {
                break;
            }
            tasks += self.setup.routes.resolve(&event.kind).len();
        }
        tasks.min(enough)
    }
}

/// What the store is told of a setup.
pub(crate) fn registration(setup: &Setup) -> Registration {
    let handlers = setup.handlers.iter().map(|spec| spec.def.clone()).collect();
    Registration { handlers, routes: setup.routes.clone() }
}
