//! Runs an attempt without a worker: with a hand-made delivery, and collects its log lines.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pointsman_core::store::{Claimed, Ended};
use pointsman_core::task::{LogLine, Realm, Run, Subject};
use pointsman_core::{
    Context, Event, EventId, HandlerName, HandlingKey, Json, ObjectKey, Pair, TaskId, TaskSeq, Tenant,
};
use pointsman_engine::runner::LogSink;
use pointsman_engine::{AttemptOutcome, Delivery, Runner};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A task for an event of a shop, with a previous one.
pub(crate) fn claimed_task() -> Claimed {
    let kind = HandlingKey::new("record.published").unwrap();
    Claimed {
        seq: TaskSeq(9),
        id: TaskId::new("index", kind.as_str(), Realm(1).uuid(TaskSeq(9))),
        handler: HandlerName::new("index").unwrap(),
        subject: Subject::Event(Arc::new(Event {
            id: EventId::new(1_478_257_655_827_001).unwrap(),
            prev: EventId::new(1_478_257_655_000_000),
            kind,
            key: Some(ObjectKey::new("record: 100% \"ü\"").unwrap()),
            sub: None,
            value: Json::parse(r#"{ "title": "Hello", "n": 1.50 }"#).unwrap(),
            context: Context::from([("traceparent".into(), "00-1-2-01".into())]),
            tenant: Tenant::new("shop").unwrap(),
            cause: None,
        })),
        planned: None,
        attempt: 2,
        retries: 1,
        fence: 77,
        until: None,
        prev_sent: EventId::new(5),
        late: true,
    }
}

/// The same with nothing that can be left out.
pub(crate) fn bare_task() -> Claimed {
    let full = claimed_task();
    let event = Event {
        prev: None,
        key: None,
        context: Context::new(),
        tenant: Tenant::default(),
        ..event_of_task(&full)
    };
    Claimed { subject: Subject::Event(Arc::new(event)), prev_sent: None, late: false, ..full }
}

/// The event of a task.
pub(crate) fn event_of_task(task: &Claimed) -> Event {
    Event::clone(task.subject.event().unwrap())
}

/// A task of a source, planned by a schedule.
pub(crate) fn run_task() -> Claimed {
    let pair: Pair = "shop/orders".parse().unwrap();
    Claimed {
        id: TaskId::new("shop", "orders", Realm(1).uuid(TaskSeq(9))),
        handler: pair.source.clone(),
        subject: Subject::Run(Run { pair, tenant: Tenant::new("north").unwrap() }),
        planned: Some("2026-01-31T12:00:00Z".parse().unwrap()),
        until: None,
        prev_sent: None,
        late: false,
        ..claimed_task()
    }
}

/// Runs one attempt and answers its outcome and what it logged on the way.
pub(crate) async fn run_attempt(runner: &dyn Runner, task: Claimed) -> (AttemptOutcome, Vec<LogLine>) {
    let (delivery, mut lines, _cancel) = new_delivery(task);
    let collect = async {
        let mut all = Vec::new();
        while let Some(line) = lines.recv().await {
            all.push(line);
        }
        all
    };
    tokio::join!(runner.run(delivery), collect)
}

/// A delivery with its ends in hand.
pub(crate) fn new_delivery(task: Claimed) -> (Delivery, mpsc::Receiver<LogLine>, CancellationToken) {
    let (sender, lines) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    (Delivery { task, log: LogSink::new(sender, Default::default()), cancel: cancel.clone() }, lines, cancel)
}

/// The error of a failed attempt, and whether it is the last attempt.
pub(crate) fn failure_of(outcome: &AttemptOutcome) -> (&str, bool) {
    assert!(outcome.emits.is_empty(), "a failure emits nothing");
    match &outcome.ended {
        Ended::Failed { error, last, .. } => (error, *last),
        other => panic!("{other:?}"),
    }
}
