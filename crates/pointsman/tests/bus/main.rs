//! The crate as a program uses it: on a real store, in a folder of its own.

#![allow(clippy::unwrap_used)]

mod answers;
mod builder;
mod derive;
mod effects;
mod emit;
mod extract;
mod postgres;
mod sharing;
mod steps;
mod unit_of_work;

use std::future::Future;
use std::time::Duration;

use pointsman::prelude::*;
use pointsman::{Emitted, Task};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What most tests emit.
#[derive(Clone, Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(type = "record.published", key = "record:{id}")]
struct Published {
    id: u64,
    title: String,
}

impl Published {
    fn new(id: u64) -> Self {
        Self { id, title: format!("number {id}") }
    }
}

#[derive(Clone, Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(type = "record.indexed", key = "record:{id}")]
struct Indexed {
    id: u64,
}

/// The derive macro refuses this type, and so must everything that emits.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NamedLikeAFrame {}

impl Event for NamedLikeAFrame {
    const TYPE: &'static str = "task";
}

/// A folder with a store in it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("bus.db").display())
    }
}

/// Waits for something that is sure to come, but not for ever.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it never came")
}

/// Where handlers tell the test what they saw.
struct Probe<T>(UnboundedSender<T>);

impl<T> Clone for Probe<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Probe<T> {
    fn new() -> (Self, UnboundedReceiver<T>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    fn saw(&self, what: T) {
        let _ = self.0.send(what);
    }
}

async fn saw<T>(receiver: &mut UnboundedReceiver<T>) -> T {
    within(receiver.recv()).await.expect("nobody is left to tell")
}

/// Emits an event that has one handler, and waits for its task to end.
async fn run_one(bus: &Bus, event: impl Event) -> Task {
    let emitted = bus.emit(event).await.unwrap();
    only_task(bus, &emitted).await
}

async fn only_task(bus: &Bus, emitted: &Emitted) -> Task {
    let mut tasks = within(bus.ended(emitted)).await.unwrap();
    assert_eq!(tasks.len(), 1);
    tasks.remove(0)
}

/// All that was emitted, oldest first, without what the engine tells of itself.
async fn journal(bus: &Bus) -> Vec<Raw> {
    let head = bus.engine().store().extent().await.unwrap().head;
    let mut watch = bus.watch_after(pointsman::EventId::ZERO, pointsman::Filter::default());
    let mut events = Vec::new();
    while events.last().map_or(pointsman::EventId::ZERO, |event: &Raw| event.id) < head {
        events.push(within(watch.next()).await.unwrap());
    }
    events.retain(|event| !event.is_engine());
    events
}
