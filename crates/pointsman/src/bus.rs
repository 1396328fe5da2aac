//! The bus: emits events and watches the journal. Its other operations are in `tasks`, `redrives`, `orders`, `schedules`
//! and `rules`.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{EmitBatch, StoreError};
use pointsman_core::{EventId, Timestamp};
use pointsman_engine::{Engine, ServiceFailure};

use crate::builder::BusBuilder;
use crate::bus_store::BusStore;
use crate::emit::{EmitError, EmitOptions, EmittedEvent};
use crate::event::to_new_event;
use crate::shared_state::{BusResources, StateMap};
use crate::watch::JournalWatch;
use crate::{Event, UnitOfWork, attempt_scope};

/// How long [`Bus::stop`] waits for running attempts.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// A durable event bus inside a program. Cheap to clone.
///
/// Everything that the bus has acknowledged survives the program: a bus that is started again on the same store
/// continues where the last one was killed.
#[derive(Clone)]
pub struct Bus {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn BusStore>,
    /// The name in whose name rules are set and redrives are started.
    pub(crate) program_name: Arc<str>,
    resources: Arc<BusResources>,
}

impl Bus {
    /// Builds a bus on a store: `sqlite:app.db`, `sqlite::memory:` for one that ends with the program,
    /// `postgres://user@host/database` or `redis://host:6379` for one that other processes may share.
    pub fn builder(store_url: &str) -> BusBuilder {
        BusBuilder::new(store_url)
    }

    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn BusStore>,
        program_name: &str,
        resources: Arc<BusResources>,
    ) -> Self {
        Self { engine, store, program_name: program_name.into(), resources }
    }

    pub(crate) fn states(&self) -> &StateMap {
        &self.resources.states
    }

    /// The current time according to the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// Emits an event. When this returns, the event and its tasks are durable; handlers run in the background.
    pub async fn emit<E: Event>(&self, event: E) -> Result<EmittedEvent, EmitError> {
        self.emit_with(event, EmitOptions::new()).await
    }

    /// Like [`emit`](Self::emit), with options.
    pub async fn emit_with<E: Event>(
        &self,
        event: E,
        options: EmitOptions,
    ) -> Result<EmittedEvent, EmitError> {
        let event = to_new_event(&event, &options, attempt_scope::current_cause(), self.engine.now())?;
        let idempotency = options.build_idempotency_key(&event)?;
        let receipt =
            self.engine.emit(EmitBatch { events: vec![event], idempotency_key: idempotency }).await?;
        let emitted = EmittedEvent::from_receipt(receipt).pop();
        let no_receipt = || StoreError::damaged("the store returned no receipt for a journaled event");
        emitted.ok_or_else(|| EmitError::EmitFailed(no_receipt().into()))
    }

    /// Emits several events, all or nothing.
    pub async fn emit_all<E: Event>(
        &self,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Vec<EmittedEvent>, EmitError> {
        let (options, cause, now) = (EmitOptions::new(), attempt_scope::current_cause(), self.engine.now());
        let events = events
            .into_iter()
            .map(|event| to_new_event(&event, &options, cause, now))
            .collect::<Result<Vec<_>, _>>()?;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let receipt = self.engine.emit(EmitBatch { events, idempotency_key: None }).await?;
        Ok(EmittedEvent::from_receipt(receipt))
    }

    /// Begins a unit of work, which commits in a transaction of the store.
    pub fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::new(self.clone())
    }

    /// Watches all events from now on.
    pub async fn watch(&self) -> Result<JournalWatch, StoreError> {
        let head = self.engine.observer().read_journal_range().await?.newest_event_id;
        Ok(self.watch_after(head, EventFilter::default()))
    }

    /// Watches the events after `after` that match: first past ones, then new ones.
    pub fn watch_after(&self, after: EventId, filter: EventFilter) -> JournalWatch {
        JournalWatch::new(self.engine.clone(), after, filter)
    }

    /// The metrics of this program's engine in the Prometheus text format.
    pub async fn metrics_text(&self) -> String {
        self.engine.metrics_text().await
    }

    /// Waits until a service of the engine has failed more often than it is restarted. Then [`stop`](Self::stop) the
    /// bus and end the program, so that other nodes take over its tasks, or the next start does.
    pub async fn wait_for_service_failure(&self) -> ServiceFailure {
        self.engine.wait_for_service_failure().await
    }

    /// Waits up to 30 seconds for running attempts, releases the rest without costing a retry, and closes the store.
    pub async fn stop(self) {
        self.stop_within(DRAIN_TIMEOUT).await;
    }

    /// Like [`stop`](Self::stop), but waits for running attempts up to `drain_timeout`.
    pub async fn stop_within(self, drain_timeout: Duration) {
        self.engine.stop(drain_timeout).await;
        self.resources.clear_bus();
        let store = self.store;
        // Closing waits for the last commit, which must not block the runtime. A runtime that is shutting down may
        // skip the closing, which loses nothing that was acknowledged.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bus")
    }
}
