//! The bus: emits events, watches the journal, and waits for tasks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{EmitBatch, StoreError};
use pointsman_core::task::{LogLine, Task};
use pointsman_core::{EventId, TaskId, TaskStatus, Timestamp};
use pointsman_engine::Engine;
use tokio::time::timeout;

use crate::builder::BusBuilder;
use crate::bus_store::BusStore;
use crate::emit::{EmitError, EmitOptions, EmittedEvent};
use crate::event::to_new_event;
use crate::shared_state::{BusResources, StateMap};
use crate::watch::JournalWatch;
use crate::{Event, UnitOfWork, attempt_scope};

/// How long [`Bus::stop`] waits for running attempts.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval at which [`Bus::wait_for_tasks`] reads the tasks again, in case it missed a notification.
const TASK_RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The number of log lines that are read at a time.
const LOG_LINES_PER_PAGE: usize = 1000;

/// A durable event bus inside a program. Cheap to clone.
///
/// Everything it has acknowledged survives the program: a bus that is started again on the same file continues
/// where the last one was killed.
#[derive(Clone)]
pub struct Bus {
    engine: Engine,
    store: BusStore,
    resources: Arc<BusResources>,
}

impl Bus {
    /// Builds a bus on a store: `sqlite:app.db`, `sqlite::memory:` for one that ends with the program,
    /// `postgres://user@host/database` or `redis://host:6379` for one that other processes may share.
    pub fn builder(store_url: &str) -> BusBuilder {
        BusBuilder::new(store_url)
    }

    pub(crate) fn new(engine: Engine, store: BusStore, resources: Arc<BusResources>) -> Self {
        Self { engine, store, resources }
    }

    pub(crate) fn states(&self) -> &StateMap {
        &self.resources.states
    }

    /// The current time according to the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn store(&self) -> &BusStore {
        &self.store
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

    /// Waits until all tasks of an event have finished, and returns them. Retries and snoozes are waited for too.
    pub async fn wait_for_tasks(&self, emitted: &EmittedEvent) -> Result<Vec<Task>, StoreError> {
        // Subscribe first, so that no change is missed between the read and the wait.
        let mut changes = self.engine.subscribe_task_changes();
        let ids: HashSet<&TaskId> = emitted.tasks.iter().collect();
        loop {
            let mut tasks = Vec::new();
            for id in &emitted.tasks {
                tasks.extend(self.read_task(id).await?);
            }
            if tasks.iter().all(|task| has_task_finished(task.lifecycle.state.status())) {
                return Ok(tasks);
            }
            let wait_for_a_finished_task = async {
                while let Ok(change) = changes.recv().await {
                    if ids.contains(&change.id) && has_task_finished(change.status) {
                        break;
                    }
                }
            };
            // A receiver that lagged, or whose engine has stopped, reads the tasks again after the interval.
            let _ = timeout(TASK_RECHECK_INTERVAL, wait_for_a_finished_task).await;
        }
    }

    /// Reads a task with its attempts.
    pub async fn read_task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.engine.store().read_task(id).await?.map(|(task, _)| task))
    }

    /// Reads a task's log so far; empty if there is no such task.
    pub async fn read_task_logs(&self, id: &TaskId) -> Result<Vec<LogLine>, StoreError> {
        let mut lines = Vec::new();
        let mut from = 0;
        while let Some(page) = self.engine.store().read_logs(id, from, LOG_LINES_PER_PAGE).await? {
            let Some(last) = page.lines.last() else { break };
            from = last.number + 1;
            lines.extend(page.lines.into_iter().map(|stored| stored.line));
        }
        Ok(lines)
    }

    /// The engine of the bus, for operations that the bus has no method for.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Waits up to 30 seconds for running attempts, releases the rest without costing a retry, and closes the store.
    pub async fn stop(self) {
        self.engine.stop(DRAIN_TIMEOUT).await;
        self.resources.clear_bus();
        let store = self.store.to_dyn_store();
        // Closing waits for the last commit, which must not block the runtime. A runtime that is shutting down may
        // skip the closing, which loses nothing that was acknowledged.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}

fn has_task_finished(status: TaskStatus) -> bool {
    match status {
        TaskStatus::Done | TaskStatus::Error | TaskStatus::Missing => true,
        TaskStatus::New | TaskStatus::Scheduled | TaskStatus::Locked => false,
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bus")
    }
}
