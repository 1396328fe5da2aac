//! A node that stops: what runs may end, the rest is given back, and nothing costs a retry.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::Status;
use pointsman_core::store::{Emission, StoreError, Tasks};
use pointsman_core::task::{AttemptEnd, State};
use pointsman_engine::{AttemptOutcome, Delivery, EmitError};
use tokio::sync::Notify;

#[tokio::test]
async fn a_drain_lets_attempts_finish() {
    let go = Arc::new(Notify::new());
    let handler = {
        let go = go.clone();
        move |_: Delivery| {
            let go = go.clone();
            async move {
                go.notified().await;
                AttemptOutcome::done()
            }
        }
    };
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().handler("h", handler).route("a", "h").start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    let receipt = emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for(|c| c.status == Status::Locked).await;
    go.notify_one();
    engine.stop(TEST_TIMEOUT).await;
    let (task, _) = store.task(&receipt.events[0].tasks[0]).await.unwrap().unwrap();
    assert_eq!(task.life.state, State::Done);
}

#[tokio::test]
async fn unfinished_tasks_are_released_without_a_retry() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .slots(2)
        .handler("h", |d: Delivery| async move {
            d.cancel.cancelled().await;
            AttemptOutcome::failed("was told to stop")
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let receipt = emit(&engine, (0..3).map(|n| keyed_event("a", &format!("k{n}"))).collect()).await;
    watcher.wait_for(|c| c.status == Status::Locked).await;
    watcher.wait_for(|c| c.status == Status::Locked).await;
    engine.stop(Duration::ZERO).await;
    for (index, sequenced) in receipt.events.iter().enumerate() {
        let (task, _) = store.task(&sequenced.tasks[0]).await.unwrap().unwrap();
        assert!(matches!(task.life.state.status(), Status::New | Status::Scheduled));
        assert_eq!((task.life.retries, task.life.crashes), (0, 0));
        let ends: Vec<_> = task.attempts.iter().map(|a| a.end).collect();
        let expected: &[_] = if index < 2 { &[AttemptEnd::Released] } else { &[] };
        assert_eq!(ends, expected);
    }
    let refused = engine.emit(Emission { events: vec![keyed_event("a", "x")], idempotency: None }).await;
    assert!(matches!(refused, Err(EmitError::Store(StoreError::Closed))));

    // The next node takes up what was left.
    let next = TestEngineBuilder::default()
        .handler("h", |_| async { AttemptOutcome::done() })
        .route("a", "h")
        .start(&store)
        .await;
    for sequenced in &receipt.events {
        within_timeout("the task to be done", async {
            while store.task(&sequenced.tasks[0]).await.unwrap().unwrap().0.life.state != State::Done {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    next.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn stopping_twice_is_harmless() {
    let engine = TestEngineBuilder::default().start(&in_memory_store()).await;
    engine.stop(TEST_TIMEOUT).await;
    engine.stop(TEST_TIMEOUT).await;
}
