//! The pipeline from an emit to the end of its tasks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use pointsman_core::store::{AttemptResult, Registration, Registry, TaskFilter, Tasks};
use pointsman_core::task::AttemptOutcome;
use pointsman_core::{Json, TaskStatus};
use pointsman_engine::{Delivery, HandlerOutcome, Setup};
use tokio::sync::Semaphore;

#[tokio::test]
async fn handlers_of_parent_types_get_an_event_first() {
    let calls = CallLog::default();
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .slots(1)
        .handler("index", recording_handler(&calls))
        .handler("audit", recording_handler(&calls))
        .handler("notify", recording_handler(&calls))
        .route("record.published", "index")
        .route("record.published", "notify")
        .route("record", "audit")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let receipt = emit(&engine, vec![keyed_event("record.published", "record:1")]).await;
    assert_eq!(receipt.events[0].tasks.len(), 3);
    watcher.wait_for_ended_tasks(3).await;
    // With one slot, the tasks of one event run in the order in which they were created, although their queues differ.
    assert_eq!(calls.entries(), ["audit", "index", "notify"]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn synchronous_handlers_end_before_queued_ones_begin() {
    let calls = CallLog::default();
    let recording_begin_and_end = |handler: &'static str| {
        let calls = calls.clone();
        move |_: Delivery| {
            let calls = calls.clone();
            async move {
                calls.record(format!("{handler} begins"));
                tokio::task::yield_now().await;
                calls.record(format!("{handler} ends"));
                HandlerOutcome::succeeded()
            }
        }
    };
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("queued", recording_begin_and_end("queued"))
        .handler("first", recording_begin_and_end("first"))
        .handler("second", recording_begin_and_end("second"))
        .route("a", "queued")
        .route_sync("a.b", "first")
        .route_sync("a.b", "second")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a.b", "x")]).await;
    watcher.wait_for_ended_tasks(3).await;
    let expected =
        ["first begins", "first ends", "second begins", "second ends", "queued begins", "queued ends"];
    assert_eq!(calls.entries(), expected);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_failing_synchronous_handler_is_retried_and_queued_handlers_run() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("sync", |d: Delivery| async move {
            if d.task.attempt < 3 { HandlerOutcome::failed("not yet") } else { HandlerOutcome::succeeded() }
        })
        .handler("queued", |_| async { HandlerOutcome::succeeded() })
        .route_sync("a", "sync")
        .route("a", "queued")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_ended_tasks(2).await;
    assert!(ended.iter().all(|change| change.status == TaskStatus::Done));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn watchers_see_a_task_become_new_locked_and_done() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let receipt = emit(&engine, vec![keyed_event("a", "x")]).await;
    let changes = [watcher.next_change().await, watcher.next_change().await, watcher.next_change().await];
    assert_eq!(changes.each_ref().map(|c| c.status), [TaskStatus::New, TaskStatus::Locked, TaskStatus::Done]);
    assert_eq!(changes.each_ref().map(|c| c.attempt), [0, 1, 1]);
    for change in &changes {
        assert_eq!(change.id, receipt.events[0].tasks[0]);
        assert_eq!((change.handler.as_str(), change.event_id), ("h", Some(receipt.events[0].id)));
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn results_and_attempt_ends_are_stored() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |_| async {
            let result = Some(Json::parse(r#"{"n":1}"#).unwrap());
            HandlerOutcome { result: AttemptResult::Succeeded { result }, ..HandlerOutcome::succeeded() }
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_ended_tasks(1).await;
    let (task, _) = engine.store().read_task(&ended[0].id).await.unwrap().unwrap();
    assert_eq!(task.result.unwrap().as_str(), r#"{"n":1}"#);
    assert_eq!(task.attempts.len(), 1);
    assert_eq!(task.attempts[0].outcome, AttemptOutcome::Succeeded);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn no_more_attempts_run_than_there_are_slots() {
    let (running, max_running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let finish_permits = Arc::new(Semaphore::new(0));
    let handler = {
        let (running, max_running, finish_permits) =
            (running.clone(), max_running.clone(), finish_permits.clone());
        move |_: Delivery| {
            let (running, max_running, finish_permits) =
                (running.clone(), max_running.clone(), finish_permits.clone());
            async move {
                max_running.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                finish_permits.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
                HandlerOutcome::succeeded()
            }
        }
    };
    let store = in_memory_store();
    let engine =
        TestEngineBuilder::default().slots(4).handler("h", handler).route("a", "h").start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, (0..40).map(|n| keyed_event("a", &format!("k{n}"))).collect()).await;
    for _ in 0..4 {
        watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;
    }
    assert_eq!(engine.metrics_text().await.lines().filter(|l| *l == "pointsman_slots_busy 4").count(), 1);
    finish_permits.add_permits(40);
    watcher.wait_for_ended_tasks(40).await;
    assert_eq!(max_running.load(Ordering::SeqCst), 4);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn tasks_wait_for_a_node_that_has_their_handler() {
    let calls = CallLog::default();
    let store = in_memory_store();
    let both_handlers = || {
        TestEngineBuilder::default()
            .handler("on_this_node", recording_handler(&calls))
            .handler("on_no_node", recording_handler(&calls))
            .route("a", "on_no_node")
            .route("a", "on_this_node")
    };
    let engine =
        TestEngineBuilder::default().handler("on_this_node", recording_handler(&calls)).start(&store).await;
    let Setup { handlers, routes, .. } = both_handlers().setup;
    let handlers = handlers.into_iter().map(|spec| spec.def).collect();
    store
        .register_definitions(Registration { handlers, routes, ..Registration::default() }, now())
        .await
        .unwrap();

    let mut watcher = TaskWatcher::new(&engine);
    for _ in 0..3 {
        emit(&engine, vec![keyed_event("a", "x")]).await;
        assert_eq!(watcher.wait_for_ended_tasks(1).await[0].handler, handler_name("on_this_node"));
    }
    let waiting_filter = TaskFilter { handler: Some(handler_name("on_no_node")), ..TaskFilter::default() };
    let page = store.list_tasks(waiting_filter, None, 10).await.unwrap();
    assert_eq!(page.tasks.len(), 3);
    assert!(page.tasks.iter().all(|task| task.lifecycle.attempt == 0));
    assert_eq!(calls.entries(), ["on_this_node"; 3]);

    engine.reconfigure(both_handlers().setup).await.unwrap();
    watcher.wait_for_ended_tasks(3).await;
    assert_eq!(calls.entries()[3..], ["on_no_node"; 3]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn handlers_can_be_replaced_while_running() {
    let calls = CallLog::default();
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("old", recording_handler(&calls))
        .route("a", "old")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for_ended_tasks(1).await;
    let new_setup =
        TestEngineBuilder::default().handler("new", recording_handler(&calls)).route("a", "new").setup;
    engine.reconfigure(new_setup).await.unwrap();
    assert_eq!(engine.current_setup().handlers.len(), 1);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for_ended_tasks(1).await;
    assert_eq!(calls.entries(), ["old", "new"]);
    engine.stop(TEST_TIMEOUT).await;
}
