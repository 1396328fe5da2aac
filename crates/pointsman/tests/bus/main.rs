//! The library as a program uses it: on a real store, in a temporary folder.

#![allow(clippy::unwrap_used)]

mod attempt_effects;
mod builder;
mod derive;
mod emit;
mod extract;
mod handler_results;
mod http_handler;
mod orders;
mod postgres;
mod redrives;
mod rules;
mod schedules;
mod shared_stores;
mod steps;
mod tasks;
mod unit_of_work;

use std::future::Future;
use std::time::Duration;

use pointsman::prelude::*;
use pointsman::{EmittedEvent, Task, TaskFilter};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The event that most tests emit.
#[derive(Clone, Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(type = "record.published", key = "record:{id}")]
struct RecordPublished {
    id: u64,
    title: String,
}

impl RecordPublished {
    fn new(id: u64) -> Self {
        Self { id, title: format!("number {id}") }
    }
}

#[derive(Clone, Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(type = "record.indexed", key = "record:{id}")]
struct RecordIndexed {
    id: u64,
}

/// An event with a reserved type. The derive macro rejects it, and so must every emit.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ReservedTypeEvent {}

impl Event for ReservedTypeEvent {
    const TYPE: &'static str = "task";
}

/// A temporary folder with a SQLite store.
struct SqliteStoreFolder(TempDir);

impl SqliteStoreFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("bus.db").display())
    }
}

/// Waits for a future that is sure to complete, for at most a minute.
async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("timed out after a minute")
}

/// Sends values from handlers to the test.
struct HandlerProbe<T>(UnboundedSender<T>);

impl<T> Clone for HandlerProbe<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> HandlerProbe<T> {
    fn new() -> (Self, UnboundedReceiver<T>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    fn send(&self, value: T) {
        let _ = self.0.send(value);
    }
}

/// Waits for the next value that a [`HandlerProbe`] sends.
async fn receive_probed_value<T>(receiver: &mut UnboundedReceiver<T>) -> T {
    with_timeout(receiver.recv()).await.expect("all probes were dropped")
}

/// Emits an event that has one handler, and waits until its task has finished.
async fn emit_and_wait_for_task(bus: &Bus, event: impl Event) -> Task {
    let emitted = bus.emit(event).await.unwrap();
    wait_until_only_task_finished(bus, &emitted).await
}

/// Waits until the only task of an event has finished, and returns it.
async fn wait_until_only_task_finished(bus: &Bus, emitted: &EmittedEvent) -> Task {
    let mut tasks = with_timeout(bus.wait_for_tasks(emitted)).await.unwrap();
    assert_eq!(tasks.len(), 1);
    tasks.remove(0)
}

/// Reads all emitted events, oldest first, without engine events.
async fn read_emitted_events(bus: &Bus) -> Vec<RawEvent> {
    let head = bus.list_tasks(TaskFilter::default(), None, 1).await.unwrap().journal_range.newest_event_id;
    let mut watch = bus.watch_after(pointsman::EventId::ZERO, pointsman::EventFilter::default());
    let mut events = Vec::new();
    while events.last().map_or(pointsman::EventId::ZERO, |event: &RawEvent| event.id) < head {
        events.push(with_timeout(watch.next()).await.unwrap());
    }
    events.retain(|event| !event.is_engine_event());
    events
}
