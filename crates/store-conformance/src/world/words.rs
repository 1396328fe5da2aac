//! Short words for long types, so that a behaviour reads at a glance.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::event::{Cause, Priority};
use pointsman_core::store::{Claimed, Emission, Ended, Ending, Idempotency, Sequenced};
use pointsman_core::task::{Level, LogLine, Run, StepRun, Subject};
use pointsman_core::{
    CollectionName, Event, EventId, HandlerName, HandlingKey, Json, NewEvent, ObjectKey, Pair, Place,
    ScheduleName, Tenant, Timestamp,
};

use super::chain_path;

pub fn kind(text: &str) -> HandlingKey {
    HandlingKey::new(text).expect("a well-formed type")
}

pub fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).expect("a well-formed key")
}

pub fn tenant(text: &str) -> Tenant {
    Tenant::new(text).expect("a well-formed tenant")
}

pub fn handler(text: &str) -> HandlerName {
    HandlerName::new(text).expect("a well-formed name")
}

pub fn collection(text: &str) -> CollectionName {
    CollectionName::new(text).expect("a well-formed collection")
}

pub fn schedule(text: &str) -> ScheduleName {
    ScheduleName::new(text).expect("a well-formed schedule")
}

/// `source/collection`
pub fn pair(text: &str) -> Pair {
    text.parse().expect("a well-formed pair")
}

/// What a rule speaks of: `handler`, `source/collection`, `@schedule` or `/chain`.
pub fn place(text: &str) -> Place {
    match text.strip_prefix('@') {
        Some(name) => Place::Schedule(schedule(name)),
        None if text.starts_with('/') => Place::Chain(chain_path(text)),
        None if text.contains('/') => Place::Collection(pair(text)),
        None => Place::Handler(handler(text)),
    }
}

pub fn json(text: &str) -> Json {
    Json::parse(text).expect("well-formed JSON")
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An event of this type with nothing else to it.
pub fn event(text: &str) -> NewEvent {
    NewEvent::of(kind(text))
}

/// What an event to emit may have, said in one breath.
pub trait Draft: Sized {
    fn key(self, text: &str) -> Self;
    fn sub(self, text: &str) -> Self;
    fn tenant(self, text: &str) -> Self;
    fn value(self, text: &str) -> Self;
    fn priority(self, number: i64) -> Self;
    fn due(self, at: Timestamp) -> Self;
    fn caused_by(self, task: &Claimed) -> Self;
}

impl Draft for NewEvent {
    fn key(self, text: &str) -> Self {
        Self { key: Some(key(text)), ..self }
    }

    fn sub(self, text: &str) -> Self {
        Self { sub: Some(key(text)), ..self }
    }

    fn tenant(self, text: &str) -> Self {
        Self { tenant: tenant(text), ..self }
    }

    fn value(self, text: &str) -> Self {
        Self { value: json(text), ..self }
    }

    fn priority(self, number: i64) -> Self {
        Self { priority: Priority::try_from(number).expect("a priority"), ..self }
    }

    fn due(self, at: Timestamp) -> Self {
        Self { due: Some(at), ..self }
    }

    fn caused_by(self, task: &Claimed) -> Self {
        let (event, depth) = (task.subject.cause(), task.subject.depth() + 1);
        Self { cause: Some(Cause { event, task: task.seq, depth }), ..self }
    }
}

/// What a task was claimed for.
pub trait Delivery {
    fn event(&self) -> &Arc<Event>;
    fn run(&self) -> &Run;
    fn step(&self) -> &StepRun;
}

impl Delivery for Claimed {
    fn event(&self) -> &Arc<Event> {
        self.subject.event().unwrap_or_else(|| panic!("{} should be an event's", self.id))
    }

    fn run(&self) -> &Run {
        match &self.subject {
            Subject::Run(run) => run,
            Subject::Event(_) | Subject::Step(_) => panic!("{} should be a source's", self.id),
        }
    }

    fn step(&self) -> &StepRun {
        match &self.subject {
            Subject::Step(step) => step,
            Subject::Event(_) | Subject::Run(_) => panic!("{} should be an order's", self.id),
        }
    }
}

/// Events that stand or fall together.
pub fn emission(events: impl Into<Vec<NewEvent>>) -> Emission {
    Emission { events: events.into(), idempotency: None }
}

/// An emission under an idempotency key; `content` stands for what its digest is made of.
pub fn keyed(of: &str, name: &str, content: u8, events: impl Into<Vec<NewEvent>>) -> Emission {
    Emission { events: events.into(), idempotency: Some(idempotency_key(of, name, content)) }
}

/// An idempotency key of a tenant, used with some content.
pub fn idempotency_key(of: &str, name: &str, content: u8) -> Idempotency {
    Idempotency { tenant: tenant(of), key: name.into(), digest: [content; 32] }
}

pub fn succeeded() -> Ended {
    Ended::Succeeded { result: None }
}

/// A failure that may be tried again.
pub fn failed() -> Ended {
    Ended::Failed { error: "it broke".into(), code: 1, after: None, last: false }
}

pub fn failed_for_good() -> Ended {
    Ended::Failed { error: "it broke for good".into(), code: 1, after: None, last: true }
}

/// The end of a claimed attempt, without effects.
pub fn ending(task: &Claimed, ended: Ended) -> Ending {
    Ending { task: task.seq, fence: task.fence, ended, target: None, emits: vec![], logs: vec![] }
}

pub fn line(time: Timestamp, message: &str) -> LogLine {
    LogLine { time, level: Level::Info, message: message.into() }
}

/// The events that these tasks were claimed for.
pub fn events_of(tasks: &[Claimed]) -> Vec<EventId> {
    tasks.iter().map(|task| task.event().id).collect()
}

/// The pairs that these tasks were claimed for, as `source/collection`.
pub fn pairs_of(tasks: &[Claimed]) -> Vec<String> {
    tasks.iter().map(|task| task.run().pair.to_string()).collect()
}

pub fn ids_of(events: &[Sequenced]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// Asserts that these grow from one to the next.
pub fn assert_ascending<T: PartialOrd + std::fmt::Debug>(items: &[T]) {
    for pair in items.windows(2) {
        assert!(pair[0] < pair[1], "not strictly ascending: {pair:?}");
    }
}
