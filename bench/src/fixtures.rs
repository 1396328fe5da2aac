//! Fixtures of the measurements: events, and engines with in-process handlers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pointsman_core::route::HandlerBinding;
use pointsman_core::store::{EmitBatch, Store};
use pointsman_core::{EventType, HandlerDef, HandlerName, Json, NewEvent, ObjectKey, Routes};
use pointsman_engine::handlers::in_process::InProcessHandler;
use pointsman_engine::{Delivery, Engine, HandlerOutcome, HandlerSpec, Settings, Setup};
use tokio::sync::Notify;

/// The type of the events; their handler has the same name.
pub(crate) const EVENT_TYPE: &str = "bench.event";
pub(crate) const HANDLER_NAME: &str = EVENT_TYPE;

/// Returns a payload of about a hundred bytes, like a small event's.
pub(crate) fn event_payload(n: usize) -> String {
    format!(
        r#"{{"n":{n},"title":"A record that somebody has just published","by":"bench","rank":{}}}"#,
        n % 17
    )
}

/// Returns the n-th event. The events alternate between ten thousand objects.
pub(crate) fn new_event(n: usize) -> anyhow::Result<NewEvent> {
    let mut event = NewEvent::new(EventType::new(EVENT_TYPE)?);
    event.key = Some(ObjectKey::new(format!("object:{}", n % 10_000))?);
    event.value = Json::parse(&event_payload(n))?;
    Ok(event)
}

pub(crate) fn new_emit_batch(from: usize, count: usize) -> anyhow::Result<EmitBatch> {
    let events = (from..from + count).map(new_event).collect::<anyhow::Result<_>>()?;
    Ok(EmitBatch { events, idempotency_key: None })
}

/// A counter, such as of handled events, steps or deliveries, that wakes the futures which wait for a count.
#[derive(Default)]
pub(crate) struct EventCounter {
    count: AtomicU64,
    count_changed: Notify,
}

impl EventCounter {
    pub(crate) fn increment(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.count_changed.notify_waiters();
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) async fn wait_until_count_reached(&self, count: u64) {
        loop {
            let changed = self.count_changed.notified();
            if self.count() >= count {
                return;
            }
            changed.await;
        }
    }
}

/// Routes the events of each type to the handler of the same name.
pub(crate) fn route_types_to_handlers_of_same_name<'a>(
    handlers: impl IntoIterator<Item = &'a HandlerDef>,
) -> anyhow::Result<Routes> {
    let mut routes = Routes::new();
    for def in handlers {
        routes.bind(EventType::new(def.name.as_str())?, HandlerBinding::new_queued(def.name.clone()));
    }
    Ok(routes)
}

/// Returns an in-process handler that calls this function.
pub(crate) fn new_in_process_handler<F, Fut>(name: &str, run: F) -> anyhow::Result<HandlerSpec>
where
    F: Fn(Delivery) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerOutcome> + Send + 'static,
{
    Ok(HandlerSpec {
        def: HandlerDef::new(HandlerName::new(name)?),
        attempt_timeout: Duration::from_secs(60),
        runner: Some(Arc::new(InProcessHandler::new(run))),
    })
}

/// Waits until the store has no unfinished task.
pub(crate) async fn wait_until_no_unfinished_tasks(store: &dyn Store) -> anyhow::Result<()> {
    while !store.list_queues(None).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Starts an engine on this store with these handlers.
pub(crate) async fn start_engine_with_handlers(
    store: Arc<dyn Store>,
    settings: Settings,
    handlers: Vec<HandlerSpec>,
) -> anyhow::Result<Engine> {
    let routes = route_types_to_handlers_of_same_name(handlers.iter().map(|spec| &spec.def))?;
    let setup = Setup { handlers, routes, ..Setup::default() };
    Ok(Engine::start(store, settings, setup).await?)
}

/// Starts an engine on this store whose only handler calls `run` and succeeds.
pub(crate) async fn start_engine_with_one_handler<F>(
    store: Arc<dyn Store>,
    settings: Settings,
    run: F,
) -> anyhow::Result<Engine>
where
    F: Fn(&Delivery) + Send + Sync + 'static,
{
    let handler = new_in_process_handler(HANDLER_NAME, move |delivery| {
        run(&delivery);
        async { HandlerOutcome::succeeded() }
    })?;
    start_engine_with_handlers(store, settings, vec![handler]).await
}
