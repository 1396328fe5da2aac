//! Redrives: many failed tasks are retried.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::*;
use pointsman_core::store::{TaskFilter, Tasks};
use pointsman_core::task::ErrorReason;
use pointsman_core::{Json, NewEvent, Rule, RuleKind, RuleScope, TaskId, TaskStatus};
use pointsman_engine::{
    Delivery, Engine, HandlerOutcome, RedriveError, RedriveRequest, RedriveState, RedriveStatus,
};
use pointsman_store_sqlite::SqliteStore;

const TASK_COUNT: usize = 1200;
/// An event with this value fails even after the repair.
const ALWAYS_FAILING_VALUE: &str = "-1";

fn event_with_value(value: &str) -> NewEvent {
    NewEvent { value: Json::parse(value).unwrap(), ..keyed_event("a", "object") }
}

fn pause_rule() -> Rule {
    let scope = RuleScope::Handler(handler_name("h"));
    let (by, reason) = ("ops".into(), String::new());
    Rule { kind: RuleKind::Pause, scope, tenant: None, set_by: by, reason, since: now() }
}

/// A handler that fails until it is repaired, and then records the values it handled.
struct FailingHandlerFixture {
    store: SqliteStore,
    engine: Engine,
    is_repaired: Arc<AtomicBool>,
    handled_values: CallLog,
    /// The failed tasks, the oldest first.
    failed_tasks: Vec<TaskId>,
}

impl FailingHandlerFixture {
    async fn with_failures(count: usize) -> Self {
        let (store, is_repaired, handled) =
            (in_memory_store(), Arc::new(AtomicBool::new(false)), CallLog::default());
        let handler = {
            let (is_repaired, handled) = (is_repaired.clone(), handled.clone());
            move |d: Delivery| {
                let value = d.task.subject.event().unwrap().value.as_str().to_owned();
                let outcome = match is_repaired.load(Ordering::SeqCst) && value != ALWAYS_FAILING_VALUE {
                    true => HandlerOutcome::succeeded(),
                    false => HandlerOutcome::failed("broken"),
                };
                if is_repaired.load(Ordering::SeqCst) {
                    handled.record(value);
                }
                std::future::ready(outcome)
            }
        };
        let engine = TestEngineBuilder::default()
            .slots(1)
            .handler_with_changed_spec("h", |spec| spec.def.retry.max_retries = 0, handler)
            .route("a", "h")
            .start(&store)
            .await;
        let mut fixture = Self { store, engine, is_repaired, handled_values: handled, failed_tasks: vec![] };
        fixture.add_failures((0..count).map(|number| number.to_string())).await;
        fixture
    }

    /// Emits events with these values, all of one object, so that they are handled one after the other.
    async fn add_failures(&mut self, values: impl Iterator<Item = String>) {
        let receipt = emit(&self.engine, values.map(|value| event_with_value(&value)).collect()).await;
        let tasks: Vec<_> = receipt.events.into_iter().flat_map(|event| event.tasks).collect();
        let last = tasks.last().unwrap().clone();
        wait_until("the failures", || async {
            read_task(&self.store, &last).await.lifecycle.state.status() == TaskStatus::Error
        })
        .await;
        self.failed_tasks.extend(tasks);
    }

    fn repair_handler(&self) {
        self.is_repaired.store(true, Ordering::SeqCst);
    }

    fn start_redrive(&self, change: impl FnOnce(&mut RedriveRequest)) -> String {
        let filter = TaskFilter { handler: Some(handler_name("h")), ..TaskFilter::default() };
        let mut request =
            RedriveRequest { filter, rate: None, canary_count: None, requested_by: "ops".into() };
        change(&mut request);
        self.engine.start_redrive(request).unwrap()
    }

    async fn wait_until_redrive_ended(&self, id: &str) -> RedriveStatus {
        wait_until("the job to end", || async { self.engine.find_redrive(id).unwrap().state.has_ended() })
            .await;
        self.engine.find_redrive(id).unwrap()
    }

    async fn count_tasks_with_status(&self, status: TaskStatus) -> usize {
        let filter = TaskFilter { statuses: vec![status], ..TaskFilter::default() };
        let (mut count, mut before) = (0, None);
        loop {
            let page = self.store.list_tasks(filter.clone(), before, 500).await.unwrap();
            count += page.tasks.len();
            before = page.next_cursor;
            if before.is_none() {
                return count;
            }
        }
    }
}

#[tokio::test]
async fn failed_tasks_are_retried_oldest_first_without_cancelled_ones() {
    let fixture = FailingHandlerFixture::with_failures(TASK_COUNT).await;
    // A task that was cancelled by a user is not retried.
    let pause = pause_rule();
    fixture.engine.set_rule(pause.clone()).await.unwrap();
    let cancelled = emit(&fixture.engine, vec![keyed_event("a", "other")]).await.events[0].tasks[0].clone();
    fixture.engine.cancel_task(&cancelled).await.unwrap().unwrap();
    fixture.engine.lift_rule(pause.kind, &pause.scope, None).await.unwrap();

    let (count, sample) =
        fixture.engine.count_and_sample_failed_tasks(TaskFilter::default(), u64::MAX).await.unwrap();
    assert_eq!((count, &sample[0].id), (TASK_COUNT as u64, &fixture.failed_tasks[TASK_COUNT - 1]));
    let (limited_count, _) =
        fixture.engine.count_and_sample_failed_tasks(TaskFilter::default(), 7).await.unwrap();
    assert_eq!(limited_count, 7);

    fixture.repair_handler();
    let job = fixture.wait_until_redrive_ended(&fixture.start_redrive(|_| {})).await;
    assert_eq!(job.state, RedriveState::Done);
    assert_eq!(
        (job.matched_count, job.retried_count, job.refused_count),
        (TASK_COUNT as u64, TASK_COUNT as u64, 0)
    );
    wait_until("all to be done", || async {
        fixture.count_tasks_with_status(TaskStatus::Done).await == TASK_COUNT
    })
    .await;
    assert_eq!(fixture.count_tasks_with_status(TaskStatus::Error).await, 1);
    let handled = fixture.handled_values.entries();
    let expected: Vec<_> = (0..TASK_COUNT).map(|number| number.to_string()).collect();
    assert_eq!(handled, expected);
    let filter = TaskFilter { error_reasons: vec![ErrorReason::Canceled], ..TaskFilter::default() };
    let job =
        fixture.wait_until_redrive_ended(&fixture.start_redrive(|request| request.filter = filter)).await;
    assert_eq!(
        (job.state, job.matched_count, job.retried_count),
        (RedriveState::Done, 1, 1),
        "unless it is requested"
    );
    fixture.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_canary_that_fails_again_stops_the_redrive() {
    let mut fixture = FailingHandlerFixture::with_failures(1).await;
    fixture
        .add_failures(
            [ALWAYS_FAILING_VALUE.to_owned()].into_iter().chain((1..50).map(|number| number.to_string())),
        )
        .await;
    fixture.repair_handler();
    let job = fixture
        .wait_until_redrive_ended(&fixture.start_redrive(|request| request.canary_count = Some(2)))
        .await;
    let RedriveState::Stopped(reason) = job.state else { panic!("{job:?}") };
    assert!(reason.contains(fixture.failed_tasks[1].as_str()) && reason.contains("broken"), "{reason}");
    assert_eq!((job.matched_count, job.retried_count), (51, 2));
    assert_eq!(
        fixture.count_tasks_with_status(TaskStatus::Error).await,
        50,
        "only the canary that succeeded is done"
    );
    fixture.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn after_successful_canaries_the_other_tasks_are_retried() {
    let fixture = FailingHandlerFixture::with_failures(20).await;
    fixture.repair_handler();
    let job = fixture
        .wait_until_redrive_ended(&fixture.start_redrive(|request| request.canary_count = Some(3)))
        .await;
    assert_eq!((job.state, job.retried_count), (RedriveState::Done, 20));
    assert_eq!(fixture.engine.list_redrives().len(), 1);
    wait_until("all to be done", || async { fixture.count_tasks_with_status(TaskStatus::Done).await == 20 })
        .await;
    fixture.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_rate_limited_redrive_can_be_stopped() {
    let fixture = FailingHandlerFixture::with_failures(50).await;
    fixture.repair_handler();
    let id = fixture.start_redrive(|request| request.rate = Some("1/h".parse().unwrap()));
    wait_until("the first", || async { fixture.engine.find_redrive(&id).unwrap().retried_count == 1 }).await;
    assert!(fixture.engine.stop_redrive(&id));
    let job = fixture.wait_until_redrive_ended(&id).await;
    assert!(matches!(job.state, RedriveState::Stopped(_)));
    assert_eq!((job.matched_count, job.retried_count), (50, 1));
    assert!(!fixture.engine.stop_redrive(&id) && !fixture.engine.stop_redrive("none"));

    // A node that stops ends its redrives.
    let id = fixture.start_redrive(|request| request.rate = Some("1/h".parse().unwrap()));
    fixture.engine.stop(Duration::ZERO).await;
    assert!(fixture.engine.find_redrive(&id).unwrap().state.has_ended());
}

#[tokio::test]
async fn watchers_are_notified_of_retried_tasks() {
    let fixture = FailingHandlerFixture::with_failures(20).await;
    fixture.engine.set_rule(pause_rule()).await.unwrap();
    let mut watcher = TaskWatcher::new(&fixture.engine);
    fixture.wait_until_redrive_ended(&fixture.start_redrive(|_| {})).await;
    for id in &fixture.failed_tasks {
        let change = watcher.next_change().await;
        assert_eq!((&change.id, change.status), (id, TaskStatus::New), "the oldest first");
    }
    fixture.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn concurrent_redrives_are_limited_and_duplicates_refused() {
    let fixture = FailingHandlerFixture::with_failures(3).await;
    let request = |handler: Option<&str>, key: &str| {
        let key = Some(pointsman_core::ObjectKey::new(key).unwrap());
        let filter = TaskFilter { handler: handler.map(handler_name), key, ..TaskFilter::default() };
        let (rate, canary_count) = (Some("1/h".parse().unwrap()), Some(2));
        RedriveRequest { filter, rate, canary_count, requested_by: "ops".into() }
    };
    let first = fixture.engine.start_redrive(request(Some("h"), "object")).unwrap();
    let same_filter = fixture.engine.start_redrive(request(Some("h"), "object"));
    assert_eq!(same_filter, Err(RedriveError::AlreadyRunning(first.clone())));
    let job = fixture.engine.find_redrive(&first).unwrap();
    assert_eq!((job.filter.handler, job.canary_count), (Some(handler_name("h")), Some(2)));
    assert!(job.rate.is_some());
    // Each of these redrives finds tasks, and waits for its next batch.
    fixture.engine.start_redrive(request(None, "object")).unwrap();
    let request_with_reasons = |reasons| {
        let mut request = request(None, "object");
        request.filter = TaskFilter { error_reasons: reasons, ..TaskFilter::default() };
        request
    };
    fixture.engine.start_redrive(request_with_reasons(vec![])).unwrap();
    fixture.engine.start_redrive(request_with_reasons(vec![ErrorReason::Failed])).unwrap();
    let reasons = vec![ErrorReason::Failed, ErrorReason::Canceled];
    assert_eq!(
        fixture.engine.start_redrive(request_with_reasons(reasons.clone())),
        Err(RedriveError::TooManyRunning)
    );
    assert!(fixture.engine.stop_redrive(&first));
    fixture.wait_until_redrive_ended(&first).await;
    fixture.engine.start_redrive(request_with_reasons(reasons)).unwrap();
    fixture.engine.stop(Duration::ZERO).await;
}
