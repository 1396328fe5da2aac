//! Many failed tasks, run again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::*;
use pointsman_core::store::{TaskFilter, Tasks};
use pointsman_core::task::EndReason;
use pointsman_core::{Json, NewEvent, Place, Rule, RuleKind, Status, TaskId};
use pointsman_engine::{
    AttemptOutcome, Delivery, Engine, Redrive, RedriveRefused, RedriveRequest, RedriveState,
};
use pointsman_store_sqlite::SqliteStore;

const TASKS: usize = 1200;
/// What no mending helps.
const ALWAYS_FAILING_VALUE: &str = "-1";

fn of_value(value: &str) -> NewEvent {
    NewEvent { value: Json::parse(value).unwrap(), ..event("a", "object") }
}

fn paused() -> Rule {
    let place = Place::Handler(name("h"));
    let (by, reason) = ("ops".into(), String::new());
    Rule { kind: RuleKind::Pause, place, tenant: None, by, reason, since: now() }
}

/// A handler that fails until it is mended, and notes which objects it then handled.
struct FailingHandler {
    store: SqliteStore,
    engine: Engine,
    mended: Arc<AtomicBool>,
    handled: CallLog,
    /// The failed tasks, the oldest first.
    failed: Vec<TaskId>,
}

impl FailingHandler {
    async fn with_failures(count: usize) -> Self {
        let (store, mended, handled) = (store(), Arc::new(AtomicBool::new(false)), CallLog::default());
        let handler = {
            let (mended, handled) = (mended.clone(), handled.clone());
            move |d: Delivery| {
                let called = d.task.subject.event().unwrap().value.as_str().to_owned();
                let outcome = match mended.load(Ordering::SeqCst) && called != ALWAYS_FAILING_VALUE {
                    true => AttemptOutcome::done(),
                    false => AttemptOutcome::failed("broken"),
                };
                if mended.load(Ordering::SeqCst) {
                    handled.note(called);
                }
                std::future::ready(outcome)
            }
        };
        let engine = TestEngineBuilder::default()
            .slots(1)
            .handler_with("h", |spec| spec.def.retry.max = 0, handler)
            .route("a", "h")
            .start(&store)
            .await;
        let mut shop = Self { store, engine, mended, handled, failed: vec![] };
        shop.fail((0..count).map(|number| number.to_string())).await;
        shop
    }

    /// Emits events with these values, all of one object, so that they are handled one after the other.
    async fn fail(&mut self, values: impl Iterator<Item = String>) {
        let receipt = emit(&self.engine, values.map(|value| of_value(&value)).collect()).await;
        let tasks: Vec<_> = receipt.events.into_iter().flat_map(|event| event.tasks).collect();
        let last = tasks.last().unwrap().clone();
        until("the failures", || async {
            task(&self.store, &last).await.life.state.status() == Status::Error
        })
        .await;
        self.failed.extend(tasks);
    }

    fn mend(&self) {
        self.mended.store(true, Ordering::SeqCst);
    }

    fn redrive(&self, change: impl FnOnce(&mut RedriveRequest)) -> String {
        let filter = TaskFilter { handler: Some(name("h")), ..TaskFilter::default() };
        let mut request = RedriveRequest { filter, rate: None, canary: None, by: "ops".into() };
        change(&mut request);
        self.engine.start_redrive(request).unwrap()
    }

    async fn ended(&self, id: &str) -> Redrive {
        until("the job to end", || async { self.engine.find_redrive(id).unwrap().state.has_ended() }).await;
        self.engine.find_redrive(id).unwrap()
    }

    async fn standing(&self, status: Status) -> usize {
        let filter = TaskFilter { statuses: vec![status], ..TaskFilter::default() };
        let (mut count, mut before) = (0, None);
        loop {
            let page = self.store.tasks(filter.clone(), before, 500).await.unwrap();
            count += page.tasks.len();
            before = page.next;
            if before.is_none() {
                return count;
            }
        }
    }
}

#[tokio::test]
async fn all_that_failed_run_again_the_oldest_first_but_for_the_cancelled() {
    let shop = FailingHandler::with_failures(TASKS).await;
    // One that a person has ended is not for others to begin again.
    let held = paused();
    shop.engine.set_rule(held.clone()).await.unwrap();
    let cancelled = emit(&shop.engine, vec![event("a", "other")]).await.events[0].tasks[0].clone();
    shop.engine.cancel_task(&cancelled).await.unwrap().unwrap();
    shop.engine.lift_rule(held.kind, &held.place, None).await.unwrap();

    let (count, sample) = shop.engine.count_failed_tasks(TaskFilter::default(), u64::MAX).await.unwrap();
    assert_eq!((count, &sample[0].id), (TASKS as u64, &shop.failed[TASKS - 1]));
    let (some, _) = shop.engine.count_failed_tasks(TaskFilter::default(), 7).await.unwrap();
    assert_eq!(some, 7);

    shop.mend();
    let job = shop.ended(&shop.redrive(|_| {})).await;
    assert_eq!(job.state, RedriveState::Done);
    assert_eq!((job.matched, job.retried, job.refused), (TASKS as u64, TASKS as u64, 0));
    until("all to be done", || async { shop.standing(Status::Done).await == TASKS }).await;
    assert_eq!(shop.standing(Status::Error).await, 1);
    let handled = shop.handled.read();
    let expected: Vec<_> = (0..TASKS).map(|number| number.to_string()).collect();
    assert_eq!(handled, expected);
    let filter = TaskFilter { reasons: vec![EndReason::Canceled], ..TaskFilter::default() };
    let job = shop.ended(&shop.redrive(|request| request.filter = filter)).await;
    assert_eq!((job.state, job.matched, job.retried), (RedriveState::Done, 1, 1), "unless it is asked for");
    shop.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_canary_that_fails_again_stops_the_rest() {
    let mut shop = FailingHandler::with_failures(1).await;
    shop.fail([ALWAYS_FAILING_VALUE.to_owned()].into_iter().chain((1..50).map(|number| number.to_string())))
        .await;
    shop.mend();
    let job = shop.ended(&shop.redrive(|request| request.canary = Some(2))).await;
    let RedriveState::Stopped(why) = job.state else { panic!("{job:?}") };
    assert!(why.contains(shop.failed[1].as_str()) && why.contains("broken"), "{why}");
    assert_eq!((job.matched, job.retried), (51, 2));
    assert_eq!(shop.standing(Status::Error).await, 50, "the one that was well, and nobody else, is done");
    shop.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_canary_that_is_well_lets_the_rest_follow() {
    let shop = FailingHandler::with_failures(20).await;
    shop.mend();
    let job = shop.ended(&shop.redrive(|request| request.canary = Some(3))).await;
    assert_eq!((job.state, job.retried), (RedriveState::Done, 20));
    assert_eq!(shop.engine.list_redrives().len(), 1);
    until("all to be done", || async { shop.standing(Status::Done).await == 20 }).await;
    shop.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_paced_redrive_can_be_stopped() {
    let shop = FailingHandler::with_failures(50).await;
    shop.mend();
    let id = shop.redrive(|request| request.rate = Some("1/h".parse().unwrap()));
    until("the first", || async { shop.engine.find_redrive(&id).unwrap().retried == 1 }).await;
    assert!(shop.engine.stop_redrive(&id));
    let job = shop.ended(&id).await;
    assert!(matches!(job.state, RedriveState::Stopped(_)));
    assert_eq!((job.matched, job.retried), (50, 1));
    assert!(!shop.engine.stop_redrive(&id) && !shop.engine.stop_redrive("none"));

    // A node that stops ends what it redrives.
    let id = shop.redrive(|request| request.rate = Some("1/h".parse().unwrap()));
    shop.engine.stop(Duration::ZERO).await;
    assert!(shop.engine.find_redrive(&id).unwrap().state.has_ended());
}

#[tokio::test]
async fn those_who_watch_are_told_of_what_runs_again() {
    let shop = FailingHandler::with_failures(20).await;
    shop.engine.set_rule(paused()).await.unwrap();
    let mut watcher = TaskWatcher::of(&shop.engine);
    shop.ended(&shop.redrive(|_| {})).await;
    for id in &shop.failed {
        let change = watcher.next().await;
        assert_eq!((&change.id, change.status), (id, Status::New), "the oldest first");
    }
    shop.engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn few_redrives_go_on_at_a_time_and_no_two_about_the_same() {
    let shop = FailingHandler::with_failures(3).await;
    let request = |handler: Option<&str>, key: &str| {
        let key = Some(pointsman_core::ObjectKey::new(key).unwrap());
        let filter = TaskFilter { handler: handler.map(name), key, ..TaskFilter::default() };
        let (rate, canary) = (Some("1/h".parse().unwrap()), Some(2));
        RedriveRequest { filter, rate, canary, by: "ops".into() }
    };
    let first = shop.engine.start_redrive(request(Some("h"), "object")).unwrap();
    let same = shop.engine.start_redrive(request(Some("h"), "object"));
    assert_eq!(same, Err(RedriveRefused::AlreadyRunning(first.clone())));
    let job = shop.engine.find_redrive(&first).unwrap();
    assert_eq!((job.filter.handler, job.canary), (Some(name("h")), Some(2)));
    assert!(job.rate.is_some());
    // Each finds something, and waits for its next turn.
    shop.engine.start_redrive(request(None, "object")).unwrap();
    let wide = |reasons| {
        let mut wide = request(None, "object");
        wide.filter = TaskFilter { reasons, ..TaskFilter::default() };
        wide
    };
    shop.engine.start_redrive(wide(vec![])).unwrap();
    shop.engine.start_redrive(wide(vec![EndReason::Failed])).unwrap();
    let reasons = vec![EndReason::Failed, EndReason::Canceled];
    assert_eq!(shop.engine.start_redrive(wide(reasons.clone())), Err(RedriveRefused::TooMany));
    assert!(shop.engine.stop_redrive(&first));
    shop.ended(&first).await;
    shop.engine.start_redrive(wide(reasons)).unwrap();
    shop.engine.stop(Duration::ZERO).await;
}
