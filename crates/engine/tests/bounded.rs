//! Runs that end by themselves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use pointsman_core::NewEvent;
use pointsman_core::store::Registry;
use pointsman_engine::{AttemptOutcome, BoundedRun, BoundedRunError};
use pointsman_store_sqlite::SqliteStore;

fn house(diary: &CallLog) -> TestEngineBuilder {
    TestEngineBuilder::default()
        .slots(4)
        .handler("one", noting(diary))
        .handler("other", noting(diary))
        .route("a", "one")
        .route("b", "other")
}

fn bounded(diary: &CallLog, handlers: &[&str], max_events: u64) -> TestEngineBuilder {
    let mut house = house(diary);
    house.settings.bounded_run = Some(bound(handlers, max_events));
    house
}

fn bound(handlers: &[&str], max_events: u64) -> BoundedRun {
    BoundedRun { handlers: handlers.iter().map(|h| name(h)).collect(), max_events }
}

/// A node that runs nothing has told the store of the handlers, and these events wait.
async fn serve_before(store: &SqliteStore, mut house: TestEngineBuilder, events: Vec<NewEvent>) {
    house.settings.services.worker = false;
    house.settings.services.rescuer = false;
    let engine = house.start(store).await;
    if !events.is_empty() {
        emit(&engine, events).await;
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_attempts_begin_than_were_asked_for() {
    let (store, diary) = (store(), CallLog::default());
    serve_before(&store, house(&diary), vec![]).await;
    let engine = bounded(&diary, &[], 25).start(&store).await;
    // Some are there before, and some are claimed as they are made.
    for round in 0..20 {
        let events = (0..5).map(|number| event("a", &format!("k{round}-{number}"))).collect();
        emit(&engine, events).await;
    }
    soon("the bound", engine.wait_for_attempt_limit()).await;
    assert_eq!(diary.read().len(), 25);
    engine.stop(TEST_TIMEOUT).await;
    assert_eq!(diary.read().len(), 25);
    let queues = store.queues(None).await.unwrap();
    let left: u64 = queues.iter().map(|queue| queue.ready + queue.scheduled + queue.running).sum();
    assert_eq!(left, 75);
}

#[tokio::test]
async fn only_the_named_handlers_are_run() {
    let (store, diary) = (store(), CallLog::default());
    serve_before(&store, house(&diary), vec![]).await;
    let engine = bounded(&diary, &["other"], 3).start(&store).await;
    let mut watcher = TaskWatcher::of(&engine);
    emit(&engine, (0..4).map(|number| event("a", &format!("k{number}"))).collect()).await;
    emit(&engine, (0..3).map(|number| event("b", &format!("k{number}"))).collect()).await;
    watcher.ended(3).await;
    soon("the bound", engine.wait_for_attempt_limit()).await;
    assert_eq!(diary.read(), ["other"; 3]);
    let nodes = store.nodes().await.unwrap();
    assert_eq!(nodes[0].abilities.handlers, [name("other")].into());
    engine.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_failure_that_is_tried_again_counts_twice() {
    let (store, diary) = (store(), CallLog::default());
    let noted = diary.clone();
    let house = || {
        let noted = noted.clone();
        let failing = move |_| {
            noted.note("ran");
            async { AttemptOutcome::failed("again") }
        };
        TestEngineBuilder::default().handler("h", failing).route("a", "h")
    };
    serve_before(&store, house(), vec![event("a", "x")]).await;
    let mut house = house();
    house.settings.bounded_run = Some(bound(&[], 2));
    let engine = house.start(&store).await;
    soon("the bound", engine.wait_for_attempt_limit()).await;
    assert_eq!(diary.read().len(), 2);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_guest_changes_nothing_for_the_others() {
    let (store, diary) = (store(), CallLog::default());
    // The one for `old` waits for a server to say what becomes of it.
    let old = TestEngineBuilder::default().handler("old", noting(&diary)).route("c", "old");
    serve_before(&store, old, vec![event("c", "w")]).await;
    serve_before(&store, house(&diary), vec![event("a", "x"), event("b", "y")]).await;
    let before = store.registration().await.unwrap();
    // It knows one of the handlers, and no routes at all.
    let mut guest = TestEngineBuilder::default().handler("other", noting(&diary));
    guest.settings.bounded_run = Some(bound(&[], 1));
    guest.settings.sweep_interval = Duration::from_millis(10);
    let engine = guest.start(&store).await;
    soon("the bound", engine.wait_for_attempt_limit()).await;
    emit(&engine, vec![event("a", "z")]).await;
    engine.stop(TEST_TIMEOUT).await;
    assert_eq!(diary.read(), ["other"]);
    let after = store.registration().await.unwrap();
    assert_eq!((after.handlers, after.routes), (before.handlers, before.routes));
    let queues = store.queues(None).await.unwrap();
    assert_eq!(queues.iter().map(|queue| queue.missing).sum::<u64>(), 0);
    let one = queues.iter().find(|queue| queue.handler == name("one")).unwrap();
    assert_eq!(one.ready, 2, "what the guest does not know waits for those who do");
}

#[tokio::test]
async fn a_guest_that_knows_better_is_told_so_and_runs_nothing() {
    let (store, diary) = (store(), CallLog::default());
    let everything = bound(&[], 1);
    let mine = house(&diary).setup;
    assert_eq!(
        everything.check_registered_handlers(&store, &mine).await.unwrap(),
        Err(BoundedRunError::NoHandlersRegistered)
    );
    let known = TestEngineBuilder::default()
        .handler_with("one", |spec| spec.def.retry.max = 9, noting(&diary))
        .route("a", "one");
    serve_before(&store, known, vec![event("a", "x")]).await;
    assert_eq!(
        everything.check_registered_handlers(&store, &mine).await.unwrap(),
        Err(BoundedRunError::HandlerDiffers(name("one")))
    );
    let other = bound(&["other"], 1);
    assert_eq!(
        other.check_registered_handlers(&store, &mine).await.unwrap(),
        Err(BoundedRunError::HandlerNotRegistered(name("other")))
    );
    let engine = bounded(&diary, &[], 1).start(&store).await;
    assert!(store.nodes().await.unwrap()[0].abilities.handlers.is_empty());
    engine.stop(TEST_TIMEOUT).await;
    assert!(diary.read().is_empty());
    serve_before(&store, house(&diary), vec![]).await;
    assert_eq!(everything.check_registered_handlers(&store, &mine).await.unwrap(), Ok(()));
}
