//! Runs attempts without a worker, from a delivery built here, and collects their log lines.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pointsman_core::store::{AttemptResult, ClaimedTask};
use pointsman_core::task::{CollectionRun, LogLine, TaskIdNamespace, TaskSubject};
use pointsman_core::{
    Context, Event, EventId, EventType, HandlerName, Json, ObjectKey, SourceCollection, TaskId, TaskSeq,
    Tenant,
};
use pointsman_engine::runner::LogSink;
use pointsman_engine::{Delivery, HandlerOutcome, Runner};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A task for an event of the tenant `shop` that has a preceding event.
pub(crate) fn claimed_task_with_all_values() -> ClaimedTask {
    let event_type = EventType::new("record.published").unwrap();
    ClaimedTask {
        seq: TaskSeq(9),
        id: TaskId::new("index", event_type.as_str(), TaskIdNamespace(1).uuid_of_seq(TaskSeq(9))),
        handler: HandlerName::new("index").unwrap(),
        subject: TaskSubject::Event(Arc::new(Event {
            id: EventId::new(1_478_257_655_827_001).unwrap(),
            prev: EventId::new(1_478_257_655_000_000),
            event_type,
            key: Some(ObjectKey::new("record: 100% \"ü\"").unwrap()),
            sub_object: None,
            value: Json::parse(r#"{ "title": "Hello", "n": 1.50 }"#).unwrap(),
            context: Context::from([("traceparent".into(), "00-1-2-01".into())]),
            tenant: Tenant::new("shop").unwrap(),
            cause: None,
        })),
        planned_at: None,
        attempt: 2,
        retries: 1,
        fence: 77,
        pull_worker_lease_until: None,
        prev_sent_event_id: EventId::new(5),
        out_of_order: true,
    }
}

/// The task of [`claimed_task_with_all_values`] without any optional value.
pub(crate) fn claimed_task_without_optional_values() -> ClaimedTask {
    let task_with_all_values = claimed_task_with_all_values();
    let event = Event {
        prev: None,
        key: None,
        context: Context::new(),
        tenant: Tenant::default(),
        ..event_of_task(&task_with_all_values)
    };
    ClaimedTask {
        subject: TaskSubject::Event(Arc::new(event)),
        prev_sent_event_id: None,
        out_of_order: false,
        ..task_with_all_values
    }
}

/// The event of a task.
pub(crate) fn event_of_task(task: &ClaimedTask) -> Event {
    Event::clone(task.subject.event().unwrap())
}

/// A task of a source, planned by a schedule.
pub(crate) fn collection_run_task() -> ClaimedTask {
    let pair: SourceCollection = "shop/orders".parse().unwrap();
    ClaimedTask {
        id: TaskId::new("shop", "orders", TaskIdNamespace(1).uuid_of_seq(TaskSeq(9))),
        handler: pair.source.clone(),
        subject: TaskSubject::CollectionRun(CollectionRun {
            source_collection: pair,
            tenant: Tenant::new("north").unwrap(),
        }),
        planned_at: Some("2026-01-31T12:00:00Z".parse().unwrap()),
        pull_worker_lease_until: None,
        prev_sent_event_id: None,
        out_of_order: false,
        ..claimed_task_with_all_values()
    }
}

/// Runs one attempt, and returns its outcome and its log lines.
pub(crate) async fn run_attempt(runner: &dyn Runner, task: ClaimedTask) -> (HandlerOutcome, Vec<LogLine>) {
    let (delivery, mut lines, _cancel) = new_delivery(task);
    let collect = async {
        let mut all_lines = Vec::new();
        while let Some(line) = lines.recv().await {
            all_lines.push(line);
        }
        all_lines
    };
    tokio::join!(runner.run(delivery), collect)
}

/// A delivery, the receiver of its log lines, and the token that cancels it.
pub(crate) fn new_delivery(task: ClaimedTask) -> (Delivery, mpsc::Receiver<LogLine>, CancellationToken) {
    let (sender, lines) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    (
        Delivery { task, log_sink: LogSink::new(sender, Default::default()), cancel_token: cancel.clone() },
        lines,
        cancel,
    )
}

/// Returns the error of a failed attempt, and whether the failure is permanent; panics if it did not fail.
pub(crate) fn expect_failure(outcome: &HandlerOutcome) -> (&str, bool) {
    assert!(outcome.emitted_events.is_empty(), "a failure emits nothing");
    match &outcome.result {
        AttemptResult::Failed { error, permanent, .. } => (error, *permanent),
        other => panic!("{other:?}"),
    }
}
