//! The bus: emitting, watching, waiting.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::Filter;
use pointsman_core::store::{Emission, StoreError};
use pointsman_core::task::{LogLine, Task};
use pointsman_core::{EventId, Status, TaskId, Timestamp};
use pointsman_engine::Engine;
use tokio::time::timeout;

use crate::builder::Builder;
use crate::emit::{Emit, EmitError, Emitted};
use crate::event::describe;
use crate::opened::Opened;
use crate::state::{Shared, States};
use crate::watch::Watch;
use crate::{Event, UnitOfWork, scope};

/// How long [`Bus::stop`] lets running attempts go on.
const DRAIN: Duration = Duration::from_secs(30);
/// A change that was missed is noticed this much later.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How many log lines are read at once.
const LOG_PAGE: usize = 1000;

/// A durable event bus inside a program. Cheap to clone.
///
/// Whatever it has acknowledged survives the program: a bus that is started again on the same file goes on
/// where the last one was killed.
#[derive(Clone)]
pub struct Bus {
    engine: Engine,
    opened: Opened,
    shared: Arc<Shared>,
}

impl Bus {
    /// Describes a bus on a store: `sqlite:app.db`, `sqlite::memory:` for one that dies with the program,
    /// `postgres://user@host/database` or `redis://host:6379` for one that other processes may share.
    pub fn builder(store: &str) -> Builder {
        Builder::new(store)
    }

    pub(crate) fn new(engine: Engine, opened: Opened, shared: Arc<Shared>) -> Self {
        Self { engine, opened, shared }
    }

    pub(crate) fn states(&self) -> &States {
        &self.shared.states
    }

    /// What time it is, by the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Journals an event. When this answers, the event and its tasks are on disk; handlers run on their own.
    pub async fn emit<E: Event>(&self, event: E) -> Result<Emitted, EmitError> {
        self.emit_with(event, Emit::new()).await
    }

    /// The same, with more to say.
    pub async fn emit_with<E: Event>(&self, event: E, how: Emit) -> Result<Emitted, EmitError> {
        let event = describe(&event, &how, scope::cause(), self.engine.now())?;
        let idempotency = how.idempotency(&event)?;
        let receipt = self.engine.emit(Emission { events: vec![event], idempotency }).await?;
        let answer = Emitted::all(receipt).pop();
        let fault = || StoreError::Damaged("an event was journaled without an answer".into());
        answer.ok_or_else(|| EmitError::NotJournaled(fault().into()))
    }

    /// Journals several events, all or nothing.
    pub async fn emit_all<E: Event>(
        &self,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Vec<Emitted>, EmitError> {
        let (how, cause, now) = (Emit::new(), scope::cause(), self.engine.now());
        let events = events
            .into_iter()
            .map(|event| describe(&event, &how, cause, now))
            .collect::<Result<Vec<_>, _>>()?;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let receipt = self.engine.emit(Emission { events, idempotency: None }).await?;
        Ok(Emitted::all(receipt))
    }

    /// Begins a unit of work on the store's own transaction.
    pub fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::new(self.clone())
    }

    /// Every event from now on.
    pub async fn watch(&self) -> Result<Watch, StoreError> {
        let head = self.engine.observer().extent().await?.head;
        Ok(self.watch_after(head, Filter::default()))
    }

    /// The events after `after` that match, and on into the future.
    pub fn watch_after(&self, after: EventId, filter: Filter) -> Watch {
        Watch::new(self.engine.clone(), after, filter)
    }

    /// Waits until all tasks of an event have come to their end, and returns them as they stand then. Retries
    /// and snoozes are waited for too.
    pub async fn ended(&self, emitted: &Emitted) -> Result<Vec<Task>, StoreError> {
        // Listening comes first, so that no change falls between the look and the wait.
        let mut changes = self.engine.changes();
        let ids: HashSet<&TaskId> = emitted.tasks.iter().collect();
        loop {
            let mut tasks = Vec::new();
            for id in &emitted.tasks {
                tasks.extend(self.task(id).await?);
            }
            if tasks.iter().all(|task| has_ended(task.life.state.status())) {
                return Ok(tasks);
            }
            let ours = async {
                while let Ok(change) = changes.recv().await {
                    if ids.contains(&change.id) && has_ended(change.status) {
                        break;
                    }
                }
            };
            // A receiver that fell behind, or whose engine has gone, looks again after a while.
            let _ = timeout(LOOK_AGAIN, ours).await;
        }
    }

    /// A task, with its attempts.
    pub async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.engine.store().task(id).await?.map(|(task, _)| task))
    }

    /// A task's log so far; empty if there is no such task.
    pub async fn logs(&self, id: &TaskId) -> Result<Vec<LogLine>, StoreError> {
        let mut lines = Vec::new();
        let mut from = 0;
        while let Some(page) = self.engine.store().logs(id, from, LOG_PAGE).await? {
            let Some(last) = page.lines.last() else { break };
            from = last.number + 1;
            lines.extend(page.lines.into_iter().map(|stored| stored.line));
        }
        Ok(lines)
    }

    /// The engine below, for what this crate has no words for.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Lets running attempts end, for up to half a minute, gives the rest back at no cost, and closes the
    /// store.
    pub async fn stop(self) {
        self.engine.stop(DRAIN).await;
        self.shared.stopped();
        let store = self.opened.store();
        // Closing waits for the last commit, and the runtime has better to do. A runtime that is ending itself
        // leaves it undone, which is no worse than a kill.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}

fn has_ended(status: Status) -> bool {
    match status {
        Status::Done | Status::Error | Status::Missing => true,
        Status::New | Status::Scheduled | Status::Locked => false,
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bus")
    }
}
