//! A node that stops: running attempts may end, other tasks are released, and no retry is counted.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::TaskStatus;
use pointsman_core::store::{EmitBatch, StoreError, Tasks};
use pointsman_core::task::{AttemptOutcome, TaskState};
use pointsman_engine::{Delivery, EmitError, HandlerOutcome};
use tokio::sync::Notify;

#[tokio::test]
async fn a_drain_lets_running_attempts_finish() {
    let finish_signal = Arc::new(Notify::new());
    let handler = {
        let finish_signal = finish_signal.clone();
        move |_: Delivery| {
            let finish_signal = finish_signal.clone();
            async move {
                finish_signal.notified().await;
                HandlerOutcome::succeeded()
            }
        }
    };
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().handler("h", handler).route("a", "h").start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    let receipt = emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;
    finish_signal.notify_one();
    engine.stop(TEST_TIMEOUT).await;
    let (task, _) = store.read_task(&receipt.events[0].tasks[0]).await.unwrap().unwrap();
    assert_eq!(task.lifecycle.state, TaskState::Done);
}

#[tokio::test]
async fn unfinished_tasks_are_released_without_a_retry() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .slots(2)
        .handler("h", |d: Delivery| async move {
            d.cancel_token.cancelled().await;
            HandlerOutcome::failed("stopped on request")
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let receipt = emit(&engine, (0..3).map(|n| keyed_event("a", &format!("k{n}"))).collect()).await;
    watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;
    watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;
    engine.stop(Duration::ZERO).await;
    for (index, sequenced) in receipt.events.iter().enumerate() {
        let (task, _) = store.read_task(&sequenced.tasks[0]).await.unwrap().unwrap();
        assert!(matches!(task.lifecycle.state.status(), TaskStatus::New | TaskStatus::Scheduled));
        assert_eq!((task.lifecycle.retries, task.lifecycle.crashes), (0, 0));
        let outcomes: Vec<_> = task.attempts.iter().map(|a| a.outcome).collect();
        let expected: &[_] = if index < 2 { &[AttemptOutcome::Released] } else { &[] };
        assert_eq!(outcomes, expected);
    }
    let refused = engine.emit(EmitBatch { events: vec![keyed_event("a", "x")], idempotency_key: None }).await;
    assert!(matches!(refused, Err(EmitError::Store(StoreError::Closed))));

    // The next node runs the released tasks.
    let next_engine = TestEngineBuilder::default()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .start(&store)
        .await;
    for sequenced in &receipt.events {
        within_timeout("the task to be done", async {
            while store.read_task(&sequenced.tasks[0]).await.unwrap().unwrap().0.lifecycle.state
                != TaskState::Done
            {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    next_engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn stopping_twice_is_harmless() {
    let engine = TestEngineBuilder::default().start(&in_memory_store()).await;
    engine.stop(TEST_TIMEOUT).await;
    engine.stop(TEST_TIMEOUT).await;
}
