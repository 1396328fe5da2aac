//! Measures whether one tenant's flood of tasks delays the tasks of other tenants.
//!
//! ```text
//!   one tenant:      a million tasks wait ──┐
//!                                           ├──▶ 16 slots, 1 ms each
//!   1,000 tenants:   1 task/s each ─────────┘
//! ```
//!
//! A task sleeps for a millisecond, as if it called a nearby service: the other tenants alone use one or two of the
//! slots, and the flood uses all that are left. There are two engines with their own stores, one with the flood and
//! one without. They are measured in alternating rounds, so that both have the same disk and the same noise; in the
//! other engine's rounds a rule pauses the flood. The first round of each fills the caches of a newly opened store, and
//! is not counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pointsman_core::store::{EmitBatch, Store};
use pointsman_core::task::TaskSubject;
use pointsman_core::{EventType, HandlerName, NewEvent, ObjectKey, Rule, RuleKind, RuleScope, Tenant};
use pointsman_engine::{Delivery, Engine, HandlerOutcome, HandlerSpec, Settings};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::BenchOptions;
use crate::end_to_end::DEFAULT_SLOTS;
use crate::filled_store::{self, StoreContents};
use crate::fixtures::{self, EventCounter};
use crate::report::{Figure, MeasurementUnit, percentile};
use crate::stores::{RunEnvironment, StoreFactory};

const OTHER_TENANT_COUNT: usize = 1_000;
/// The time between two events of all other tenants together.
const EMIT_INTERVAL: Duration = Duration::from_millis(1);
const TASK_DURATION: Duration = Duration::from_millis(1);
/// The duration of a round, unless the whole measurement is shorter.
const ROUND_DURATION: Duration = Duration::from_secs(2);
/// The handler of the flood and of other tenants' tasks.
const SHARED_HANDLER: &str = "shared";
/// The handler that has only other tenants' tasks.
const OTHER_TENANTS_HANDLER: &str = "own";
const FLOODING_TENANT: &str = "flooding";

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<Vec<Figure>> {
    let stores = environment.new_store_factory()?;
    let round_duration = ROUND_DURATION.min(Duration::from_secs(options.latency_seconds) / 2);
    let rounds = options.latency_seconds.div_ceil(ROUND_DURATION.as_secs()).max(1);
    let waiting = options.backlog_size.max(min_flood_task_count(round_duration * 2 * (rounds + 1) as u32));
    let without_flood_engine = EngineWithOptionalFlood::start(&stores, "calm", 0).await?;
    let flooded = EngineWithOptionalFlood::start(&stores, "flooded", waiting).await?;
    let (mut without_flood, mut shared_handler, mut separate_handler) = (vec![], vec![], vec![]);
    for round in 0..=rounds {
        if round == 1 {
            [&mut without_flood, &mut shared_handler, &mut separate_handler].into_iter().for_each(Vec::clear);
        }
        without_flood
            .extend(without_flood_engine.measure_other_tenant_waits(SHARED_HANDLER, round_duration).await?);
        flooded.resume_flood().await?;
        shared_handler.extend(flooded.measure_other_tenant_waits(SHARED_HANDLER, round_duration).await?);
        separate_handler
            .extend(flooded.measure_other_tenant_waits(OTHER_TENANTS_HANDLER, round_duration).await?);
        flooded.pause_flood().await?;
    }
    let handled = flooded.handled_flood_task_counter.count();
    ensure!(
        handled < waiting as u64,
        "all tasks of the flood ran before the measurement ended; use a larger --backlog"
    );
    without_flood_engine.engine.stop(Duration::from_secs(5)).await;
    flooded.engine.stop(Duration::from_secs(5)).await;

    let mut figures = Vec::new();
    for (handler_label, mut waits_ms) in
        [("for the same handler", shared_handler), ("for a separate handler", separate_handler)]
    {
        for (quantile, name) in [(0.5, "p50"), (0.99, "p99")] {
            let what = format!(
                "wait of {OTHER_TENANT_COUNT} tenants' tasks {handler_label}, {name}, 1/s each, while one tenant has {waiting} waiting"
            );
            let figure =
                Figure::new(what, percentile(&mut waits_ms, quantile), MeasurementUnit::Milliseconds)
                    .with_comparison(
                        format!("without the flood, {name}"),
                        percentile(&mut without_flood, quantile),
                    );
            figures.push(if quantile == 0.99 { figure.with_max_ratio(1.5) } else { figure });
        }
    }
    let rate = handled as f64 / (round_duration * 2 * (rounds + 1) as u32).as_secs_f64();
    figures.push(Figure::new("tasks of the flood handled meanwhile", rate, MeasurementUnit::PerSecond));
    Ok(figures)
}

/// Returns the number of tasks with which the flood lasts at least that long, even if it has all slots.
fn min_flood_task_count(time: Duration) -> usize {
    (time.as_millis() / TASK_DURATION.as_millis()) as usize * DEFAULT_SLOTS
}

/// An engine with its own store, with a flood or without one.
struct EngineWithOptionalFlood {
    engine: Engine,
    store: Arc<dyn Store>,
    other_tenant_timings: Arc<OtherTenantTimings>,
    handled_flood_task_counter: Arc<EventCounter>,
}

/// The times at which the other tenants emitted, and how long each task waited.
#[derive(Default)]
struct OtherTenantTimings {
    emit_times: Mutex<Vec<Instant>>,
    /// The waiting times of tasks, in milliseconds.
    wait_times_ms: Mutex<Vec<f64>>,
    handled_counter: EventCounter,
}

impl OtherTenantTimings {
    fn lock_emit_times(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.emit_times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_wait_times(&self) -> MutexGuard<'_, Vec<f64>> {
        self.wait_times_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the n-th task of the other tenants has started, and how long it waited.
    fn record_task_start(&self, n: usize) {
        let now = Instant::now();
        let emitted_at = self.lock_emit_times().get(n).copied();
        self.lock_wait_times().extend(emitted_at.map(|emitted_at| (now - emitted_at).as_secs_f64() * 1000.0));
        self.handled_counter.increment();
    }
}

impl EngineWithOptionalFlood {
    async fn start(stores: &StoreFactory, name: &str, waiting: usize) -> anyhow::Result<Self> {
        let store = match waiting {
            0 => stores.open_store(name).await?.store,
            waiting => {
                let contents = StoreContents {
                    handler_name: SHARED_HANDLER,
                    tenant: &Tenant::new(FLOODING_TENANT)?,
                    waiting_task_count: waiting,
                    archived_task_count: 0,
                };
                let store = filled_store::create_filled_store(stores, name, contents).await?.store;
                store.set_rule(flood_pause_rule()?).await?;
                store
            }
        };
        let (other_tenants, flood) =
            (Arc::new(OtherTenantTimings::default()), Arc::new(EventCounter::default()));
        let handlers = [SHARED_HANDLER, OTHER_TENANTS_HANDLER]
            .map(|name| new_sleeping_handler(name, &other_tenants, &flood));
        let handlers = handlers.into_iter().collect::<anyhow::Result<_>>()?;
        let settings = Settings { slot_count: DEFAULT_SLOTS, ..Settings::default() };
        let engine = fixtures::start_engine_with_handlers(store.clone(), settings, handlers).await?;
        Ok(Self { engine, store, other_tenant_timings: other_tenants, handled_flood_task_counter: flood })
    }

    async fn pause_flood(&self) -> anyhow::Result<()> {
        Ok(self.store.set_rule(flood_pause_rule()?).await?)
    }

    /// Removes the rule that pauses the flood, and waits until the flood fills the slots.
    async fn resume_flood(&self) -> anyhow::Result<()> {
        let Rule { kind, scope, tenant, .. } = flood_pause_rule()?;
        let before = self.handled_flood_task_counter.count();
        self.store.lift_rule(kind, &scope, tenant.as_ref()).await?;
        self.handled_flood_task_counter.wait_until_count_reached(before + 4 * DEFAULT_SLOTS as u64).await;
        Ok(())
    }

    /// Emits events of the other tenants for one round; returns how long each task waited.
    async fn measure_other_tenant_waits(
        &self,
        handler: &str,
        round_duration: Duration,
    ) -> anyhow::Result<Vec<f64>> {
        let mut ticker = interval(EMIT_INTERVAL);
        let mut emits = JoinSet::new();
        for _ in 0..round_duration.as_millis() / EMIT_INTERVAL.as_millis() {
            ticker.tick().await;
            let engine = self.engine.clone();
            let n = self.other_tenant_timings.lock_emit_times().len();
            let emission = EmitBatch { events: vec![other_tenant_event(handler, n)?], idempotency_key: None };
            self.other_tenant_timings.lock_emit_times().push(Instant::now());
            emits.spawn(async move { engine.emit(emission).await });
        }
        while let Some(emitted) = emits.join_next().await {
            emitted.context("an emit panicked")??;
        }
        let emit_count = self.other_tenant_timings.lock_emit_times().len() as u64;
        self.other_tenant_timings.handled_counter.wait_until_count_reached(emit_count).await;
        Ok(std::mem::take(&mut *self.other_tenant_timings.lock_wait_times()))
    }
}

fn new_sleeping_handler(
    name: &str,
    other_tenants: &Arc<OtherTenantTimings>,
    flood: &Arc<EventCounter>,
) -> anyhow::Result<HandlerSpec> {
    let (other_tenants, flood) = (other_tenants.clone(), flood.clone());
    fixtures::new_in_process_handler(name, move |delivery: Delivery| {
        match other_tenant_task_number(&delivery) {
            Some(n) => other_tenants.record_task_start(n),
            None => flood.increment(),
        }
        async {
            sleep(TASK_DURATION).await;
            HandlerOutcome::succeeded()
        }
    })
}

/// Returns the number of a task of the other tenants; None for a task of the flood.
fn other_tenant_task_number(delivery: &Delivery) -> Option<usize> {
    match &delivery.task.subject {
        TaskSubject::Event(event) => event.key.as_ref()?.as_str().strip_prefix("other:")?.parse().ok(),
        TaskSubject::CollectionRun(_) | TaskSubject::Step(_) => None,
    }
}

/// Returns the n-th event of the other tenants, which alternate.
fn other_tenant_event(handler: &str, n: usize) -> anyhow::Result<NewEvent> {
    let mut event = NewEvent::new(EventType::new(handler)?);
    event.tenant = Tenant::new(format!("tenant-{}", n % OTHER_TENANT_COUNT))?;
    event.key = Some(ObjectKey::new(format!("other:{n}"))?);
    event.value = pointsman_core::Json::parse(&fixtures::event_payload(n))?;
    Ok(event)
}

/// Returns the rule that pauses the flood.
fn flood_pause_rule() -> anyhow::Result<Rule> {
    Ok(Rule {
        kind: RuleKind::Pause,
        scope: RuleScope::Handler(HandlerName::new(SHARED_HANDLER)?),
        tenant: Some(Tenant::new(FLOODING_TENANT)?),
        set_by: "bench".into(),
        reason: "another engine is measured".into(),
        since: pointsman_engine::machine_clock_now(),
    })
}
