//! Whether one tenant's flood delays the others.
//!
//! ```text
//!   one tenant:      a million tasks wait ──┐
//!                                           ├──▶ 16 slots, 1 ms each
//!   1,000 tenants:   1 task/s each ─────────┘
//! ```
//!
//! A task waits for something else for a millisecond, as one that calls a service nearby does: the others alone take
//! one or two of the slots, and the flood takes all that are left. There are two engines on stores of their own, one
//! with the flood and one without. They are measured in turns, so that both meet the same disk and the same
//! neighbours; while it is not its turn, the flood is held by a rule. A first turn of each fills the caches of a store
//! just opened, and is not counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pointsman_core::store::{Emission, Store};
use pointsman_core::task::Subject;
use pointsman_core::{HandlerName, HandlingKey, NewEvent, ObjectKey, Place, Rule, RuleKind, Tenant};
use pointsman_engine::{Delivery, Engine, HandlerSpec, Outcome, Settings};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::Options;
use crate::end_to_end::DEFAULT_SLOTS;
use crate::fill::{self, Stock};
use crate::ground::{Ground, Site};
use crate::report::{Figure, Unit, percentile};
use crate::rig::{self, Handled};

const TENANTS: usize = 1_000;
/// All of them together send one at a time, a millisecond apart.
const APART: Duration = Duration::from_millis(1);
const WORK: Duration = Duration::from_millis(1);
/// How long one side is measured before it is another's turn, unless all of it is shorter.
const TURN: Duration = Duration::from_secs(2);
const SHARED: &str = "shared";
const OWN: &str = "own";
const FLOODING: &str = "flooding";

pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Vec<Figure>> {
    let ground = site.ground()?;
    let turn = TURN.min(Duration::from_secs(options.seconds) / 2);
    let turns = options.seconds.div_ceil(TURN.as_secs()).max(1);
    let waiting = options.backlog.max(least_flood(turn * 2 * (turns + 1) as u32));
    let calm = Side::start(&ground, "calm", 0).await?;
    let flooded = Side::start(&ground, "flooded", waiting).await?;
    let (mut without, mut shared, mut own) = (vec![], vec![], vec![]);
    for round in 0..=turns {
        if round == 1 {
            [&mut without, &mut shared, &mut own].into_iter().for_each(Vec::clear);
        }
        without.extend(calm.send(SHARED, turn).await?);
        flooded.release().await?;
        shared.extend(flooded.send(SHARED, turn).await?);
        own.extend(flooded.send(OWN, turn).await?);
        flooded.hold().await?;
    }
    let run = flooded.flood.count();
    ensure!(run < waiting as u64, "the flood was over before the measurement");
    calm.engine.stop(Duration::from_secs(5)).await;
    flooded.engine.stop(Duration::from_secs(5)).await;

    let mut figures = Vec::new();
    for (whose, mut waits) in [("to the same handler", shared), ("to a handler of their own", own)] {
        for (part, name) in [(0.5, "p50"), (0.99, "p99")] {
            let what = format!(
                "wait of {TENANTS} tenants' tasks {whose}, {name}, 1/s each, while one has {waiting} waiting"
            );
            let figure = Figure::new(what, percentile(&mut waits, part), Unit::Milliseconds)
                .against(format!("without the flood, {name}"), percentile(&mut without, part));
            figures.push(if part == 0.99 { figure.at_most(1.5) } else { figure });
        }
    }
    let rate = run as f64 / (turn * 2 * (turns + 1) as u32).as_secs_f64();
    figures.push(Figure::new("tasks of the flood handled meanwhile", rate, Unit::PerSecond));
    Ok(figures)
}

/// So many that the flood lasts for that long, however fast its tasks are handled.
fn least_flood(time: Duration) -> usize {
    (time.as_millis() / WORK.as_millis()) as usize * DEFAULT_SLOTS
}

/// An engine on a store of its own, with a flood or without one.
struct Side {
    engine: Engine,
    store: Arc<dyn Store>,
    others: Arc<Others>,
    flood: Arc<Handled>,
}

/// What the other tenants sent, and how long each waited.
#[derive(Default)]
struct Others {
    sent: Mutex<Vec<Instant>>,
    /// In milliseconds.
    waits: Mutex<Vec<f64>>,
    handled: Handled,
}

impl Others {
    fn sent(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self) -> MutexGuard<'_, Vec<f64>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The n-th has begun.
    fn begun(&self, n: usize) {
        let now = Instant::now();
        let sent = self.sent().get(n).copied();
        self.waits().extend(sent.map(|sent| (now - sent).as_secs_f64() * 1000.0));
        self.handled.add();
    }
}

impl Side {
    async fn start(ground: &Ground, name: &str, waiting: usize) -> anyhow::Result<Self> {
        let store = match waiting {
            0 => ground.open(name).await?.store,
            waiting => {
                let stock = Stock { handler: SHARED, tenant: &Tenant::new(FLOODING)?, waiting, kept: 0 };
                let store = fill::filled(ground, name, stock).await?.store;
                store.hold(hold()?).await?;
                store
            }
        };
        let (others, flood) = (Arc::new(Others::default()), Arc::new(Handled::default()));
        let handlers = [SHARED, OWN].map(|name| handler(name, &others, &flood));
        let handlers = handlers.into_iter().collect::<anyhow::Result<_>>()?;
        let settings = Settings { slots: DEFAULT_SLOTS, ..Settings::default() };
        let engine = rig::engine_with(store.clone(), settings, handlers).await?;
        Ok(Self { engine, store, others, flood })
    }

    async fn hold(&self) -> anyhow::Result<()> {
        Ok(self.store.hold(hold()?).await?)
    }

    /// Lets the flood go, and waits until it is everywhere.
    async fn release(&self) -> anyhow::Result<()> {
        let Rule { kind, place, tenant, .. } = hold()?;
        let before = self.flood.count();
        self.store.release(kind, &place, tenant.as_ref()).await?;
        self.flood.reached(before + 4 * DEFAULT_SLOTS as u64).await;
        Ok(())
    }

    /// The others send their tasks for a turn; answers how long each waited.
    async fn send(&self, handler: &str, turn: Duration) -> anyhow::Result<Vec<f64>> {
        let mut pace = interval(APART);
        let mut emits = JoinSet::new();
        for _ in 0..turn.as_millis() / APART.as_millis() {
            pace.tick().await;
            let engine = self.engine.clone();
            let n = self.others.sent().len();
            let emission = Emission { events: vec![other(handler, n)?], idempotency: None };
            self.others.sent().push(Instant::now());
            emits.spawn(async move { engine.emit(emission).await });
        }
        while let Some(emitted) = emits.join_next().await {
            emitted.context("an emit did not end")??;
        }
        let sent = self.others.sent().len() as u64;
        self.others.handled.reached(sent).await;
        Ok(std::mem::take(&mut *self.others.waits()))
    }
}

fn handler(name: &str, others: &Arc<Others>, flood: &Arc<Handled>) -> anyhow::Result<HandlerSpec> {
    let (others, flood) = (others.clone(), flood.clone());
    rig::handler(name, move |delivery: Delivery| {
        match number(&delivery) {
            Some(n) => others.begun(n),
            None => flood.add(),
        }
        async {
            sleep(WORK).await;
            Outcome::done()
        }
    })
}

/// Which of the others' tasks it is, if it is one.
fn number(delivery: &Delivery) -> Option<usize> {
    match &delivery.task.subject {
        Subject::Event(event) => event.key.as_ref()?.as_str().strip_prefix("other:")?.parse().ok(),
        Subject::Run(_) | Subject::Step(_) => None,
    }
}

/// The n-th task of the other tenants, who take turns.
fn other(handler: &str, n: usize) -> anyhow::Result<NewEvent> {
    let mut event = NewEvent::of(HandlingKey::new(handler)?);
    event.tenant = Tenant::new(format!("tenant-{}", n % TENANTS))?;
    event.key = Some(ObjectKey::new(format!("other:{n}"))?);
    event.value = pointsman_core::Json::parse(&rig::payload(n))?;
    Ok(event)
}

/// The rule that holds the flood back.
fn hold() -> anyhow::Result<Rule> {
    Ok(Rule {
        kind: RuleKind::Pause,
        place: Place::Handler(HandlerName::new(SHARED)?),
        tenant: Some(Tenant::new(FLOODING)?),
        by: "bench".into(),
        reason: "it is not its turn".into(),
        since: pointsman_engine::now(),
    })
}
