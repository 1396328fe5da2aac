//! Bounded runs: nodes that stop after a number of attempts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use pointsman_core::NewEvent;
use pointsman_core::store::Registry;
use pointsman_engine::{BoundedRun, BoundedRunError, HandlerOutcome};
use pointsman_store_sqlite::SqliteStore;

fn two_handler_engine_builder(calls: &CallLog) -> TestEngineBuilder {
    TestEngineBuilder::default()
        .slots(4)
        .handler("one", recording_handler(calls))
        .handler("other", recording_handler(calls))
        .route("a", "one")
        .route("b", "other")
}

fn bounded_engine_builder(calls: &CallLog, handlers: &[&str], max_attempts: u64) -> TestEngineBuilder {
    let mut builder = two_handler_engine_builder(calls);
    builder.settings.bounded_run = Some(bounded_run(handlers, max_attempts));
    builder
}

fn bounded_run(handlers: &[&str], max_attempts: u64) -> BoundedRun {
    BoundedRun { handlers: handlers.iter().map(|h| handler_name(h)).collect(), max_attempts }
}

/// Registers the handlers with a node that runs nothing, and emits these events.
async fn register_and_emit(store: &SqliteStore, mut builder: TestEngineBuilder, events: Vec<NewEvent>) {
    builder.settings.enabled_services.worker = false;
    builder.settings.enabled_services.rescuer = false;
    let engine = builder.start(store).await;
    if !events.is_empty() {
        emit(&engine, events).await;
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bounded_run_starts_no_more_attempts_than_its_limit() {
    let (store, calls) = (in_memory_store(), CallLog::default());
    register_and_emit(&store, two_handler_engine_builder(&calls), vec![]).await;
    let engine = bounded_engine_builder(&calls, &[], 25).start(&store).await;
    // Some tasks wait already, and some are claimed as they are created.
    for round in 0..20 {
        let events = (0..5).map(|number| keyed_event("a", &format!("k{round}-{number}"))).collect();
        emit(&engine, events).await;
    }
    within_timeout("the end of the bounded run", engine.wait_for_bounded_run_end()).await;
    assert_eq!(calls.entries().len(), 25);
    engine.stop(TEST_TIMEOUT).await;
    assert_eq!(calls.entries().len(), 25);
    let queues = store.list_queues(None).await.unwrap();
    let remaining: u64 =
        queues.iter().map(|queue| queue.ready_count + queue.scheduled_count + queue.running_count).sum();
    assert_eq!(remaining, 75);
}

#[tokio::test]
async fn a_bounded_run_runs_only_its_named_handlers() {
    let (store, calls) = (in_memory_store(), CallLog::default());
    register_and_emit(&store, two_handler_engine_builder(&calls), vec![]).await;
    let engine = bounded_engine_builder(&calls, &["other"], 3).start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, (0..4).map(|number| keyed_event("a", &format!("k{number}"))).collect()).await;
    emit(&engine, (0..3).map(|number| keyed_event("b", &format!("k{number}"))).collect()).await;
    watcher.wait_for_ended_tasks(3).await;
    within_timeout("the end of the bounded run", engine.wait_for_bounded_run_end()).await;
    assert_eq!(calls.entries(), ["other"; 3]);
    let nodes = store.list_nodes().await.unwrap();
    assert_eq!(nodes[0].capabilities.handlers, [handler_name("other")].into());
    engine.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_retry_counts_as_another_attempt_of_a_bounded_run() {
    let (store, calls) = (in_memory_store(), CallLog::default());
    let recorded_calls = calls.clone();
    let failing_engine = || {
        let recorded_calls = recorded_calls.clone();
        let failing = move |_| {
            recorded_calls.record("ran");
            async { HandlerOutcome::failed("again") }
        };
        TestEngineBuilder::default().handler("h", failing).route("a", "h")
    };
    register_and_emit(&store, failing_engine(), vec![keyed_event("a", "x")]).await;
    let mut builder = failing_engine();
    builder.settings.bounded_run = Some(bounded_run(&[], 2));
    let engine = builder.start(&store).await;
    within_timeout("the end of the bounded run", engine.wait_for_bounded_run_end()).await;
    assert_eq!(calls.entries().len(), 2);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_bounded_run_does_not_change_the_registration() {
    let (store, calls) = (in_memory_store(), CallLog::default());
    // The task of `old` stays until a permanent node marks it missing.
    let old = TestEngineBuilder::default().handler("old", recording_handler(&calls)).route("c", "old");
    register_and_emit(&store, old, vec![keyed_event("c", "w")]).await;
    register_and_emit(
        &store,
        two_handler_engine_builder(&calls),
        vec![keyed_event("a", "x"), keyed_event("b", "y")],
    )
    .await;
    let before = store.read_merged_registration().await.unwrap();
    // The bounded run knows one of the handlers, and no routes.
    let mut bounded_builder = TestEngineBuilder::default().handler("other", recording_handler(&calls));
    bounded_builder.settings.bounded_run = Some(bounded_run(&[], 1));
    bounded_builder.settings.sweep_interval = Duration::from_millis(10);
    let engine = bounded_builder.start(&store).await;
    within_timeout("the end of the bounded run", engine.wait_for_bounded_run_end()).await;
    emit(&engine, vec![keyed_event("a", "z")]).await;
    engine.stop(TEST_TIMEOUT).await;
    assert_eq!(calls.entries(), ["other"]);
    let after = store.read_merged_registration().await.unwrap();
    assert_eq!((after.handlers, after.routes), (before.handlers, before.routes));
    let queues = store.list_queues(None).await.unwrap();
    assert_eq!(queues.iter().map(|queue| queue.missing_count).sum::<u64>(), 0);
    let queue_of_one = queues.iter().find(|queue| queue.handler == handler_name("one")).unwrap();
    assert_eq!(queue_of_one.ready_count, 2, "tasks that the bounded run cannot run wait for other nodes");
}

#[tokio::test]
async fn a_bounded_run_is_refused_if_its_handlers_differ_from_the_registered_ones() {
    let (store, calls) = (in_memory_store(), CallLog::default());
    let all_handlers = bounded_run(&[], 1);
    let own_setup = two_handler_engine_builder(&calls).setup;
    assert_eq!(
        all_handlers.check_registered_handlers(&store, &own_setup).await.unwrap(),
        Err(BoundedRunError::NoHandlersRegistered)
    );
    let registered = TestEngineBuilder::default()
        .handler_with_changed_spec("one", |spec| spec.def.retry.max_retries = 9, recording_handler(&calls))
        .route("a", "one");
    register_and_emit(&store, registered, vec![keyed_event("a", "x")]).await;
    assert_eq!(
        all_handlers.check_registered_handlers(&store, &own_setup).await.unwrap(),
        Err(BoundedRunError::HandlerDiffers(handler_name("one")))
    );
    let other = bounded_run(&["other"], 1);
    assert_eq!(
        other.check_registered_handlers(&store, &own_setup).await.unwrap(),
        Err(BoundedRunError::HandlerNotRegistered(handler_name("other")))
    );
    let engine = bounded_engine_builder(&calls, &[], 1).start(&store).await;
    assert!(store.list_nodes().await.unwrap()[0].capabilities.handlers.is_empty());
    engine.stop(TEST_TIMEOUT).await;
    assert!(calls.entries().is_empty());
    register_and_emit(&store, two_handler_engine_builder(&calls), vec![]).await;
    assert_eq!(all_handlers.check_registered_handlers(&store, &own_setup).await.unwrap(), Ok(()));
}
