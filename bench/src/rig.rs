//! What the measurements share: events, and engines with handlers of this process.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pointsman_core::route::Binding;
use pointsman_core::store::{Emission, Store};
use pointsman_core::{HandlerDef, HandlerName, HandlingKey, Json, NewEvent, ObjectKey, Routes};
use pointsman_engine::handlers::in_process::InProcess;
use pointsman_engine::{Delivery, Engine, HandlerSpec, Outcome, Settings, Setup};
use tokio::sync::Notify;

/// The type of the events, and the name of the handler that gets them.
pub(crate) const TYPE: &str = "bench.event";
pub(crate) const HANDLER: &str = TYPE;

/// About a hundred bytes, as a small event has them.
pub(crate) fn payload(n: usize) -> String {
    format!(
        r#"{{"n":{n},"title":"A record that somebody has just published","by":"bench","rank":{}}}"#,
        n % 17
    )
}

/// The n-th event. Ten thousand objects take turns.
pub(crate) fn event(n: usize) -> anyhow::Result<NewEvent> {
    let mut event = NewEvent::of(HandlingKey::new(TYPE)?);
    event.key = Some(ObjectKey::new(format!("object:{}", n % 10_000))?);
    event.value = Json::parse(&payload(n))?;
    Ok(event)
}

pub(crate) fn emission(from: usize, count: usize) -> anyhow::Result<Emission> {
    let events = (from..from + count).map(event).collect::<anyhow::Result<_>>()?;
    Ok(Emission { events, idempotency: None })
}

/// Counts what was handled, and wakes whoever waits for a number.
#[derive(Default)]
pub(crate) struct Handled {
    count: AtomicU64,
    changed: Notify,
}

impl Handled {
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) async fn reached(&self, count: u64) {
        loop {
            let changed = self.changed.notified();
            if self.count() >= count {
                return;
            }
            changed.await;
        }
    }
}

/// Every handler gets the events of the type that is called as it is.
pub(crate) fn routes<'a>(handlers: impl IntoIterator<Item = &'a HandlerDef>) -> anyhow::Result<Routes> {
    let mut routes = Routes::new();
    for def in handlers {
        routes.bind(HandlingKey::new(def.name.as_str())?, Binding::queued(def.name.clone()));
    }
    Ok(routes)
}

/// A handler that is a function of this process.
pub(crate) fn handler<F, Fut>(name: &str, run: F) -> anyhow::Result<HandlerSpec>
where
    F: Fn(Delivery) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    Ok(HandlerSpec {
        def: HandlerDef::new(HandlerName::new(name)?),
        timeout: Duration::from_secs(60),
        runner: Some(Arc::new(InProcess::new(run))),
    })
}

/// Waits until no task is left.
pub(crate) async fn all_ended(store: &dyn Store) -> anyhow::Result<()> {
    while !store.queues(None).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// An engine on this store with these handlers.
pub(crate) async fn engine_with(
    store: Arc<dyn Store>,
    settings: Settings,
    handlers: Vec<HandlerSpec>,
) -> anyhow::Result<Engine> {
    let routes = routes(handlers.iter().map(|spec| &spec.def))?;
    let setup = Setup { handlers, routes, ..Setup::default() };
    Ok(Engine::start(store, settings, setup).await?)
}

/// An engine on this store whose one handler is `run`.
pub(crate) async fn engine<F>(store: Arc<dyn Store>, settings: Settings, run: F) -> anyhow::Result<Engine>
where
    F: Fn(&Delivery) + Send + Sync + 'static,
{
    let handler = handler(HANDLER, move |delivery| {
        run(&delivery);
        async { Outcome::done() }
    })?;
    engine_with(store, settings, vec![handler]).await
}
