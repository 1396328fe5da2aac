//! Nodes that die, nodes that were wrongly declared dead, and removed handlers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::TaskStatus;
use pointsman_core::store::{ClaimRequest, Claimant, Registry, RescueOptions, TaskQueue, Tasks};
use pointsman_core::task::{AttemptOutcome, TaskState};
use pointsman_engine::{Delivery, HandlerOutcome, Setup};

/// A node that runs no tasks, so that emitted tasks stay unclaimed.
fn builder_without_worker() -> TestEngineBuilder {
    let mut builder =
        TestEngineBuilder::default().handler("h", |_| async { HandlerOutcome::succeeded() }).route("a", "h");
    builder.settings.enabled_services.worker = false;
    builder.settings.enabled_services.rescuer = false;
    builder
}

fn set_short_node_lease(mut builder: TestEngineBuilder) -> TestEngineBuilder {
    builder.settings.sweep_interval = Duration::from_millis(20);
    builder.settings.node_lease_duration = Duration::from_millis(200);
    builder
}

#[tokio::test]
async fn tasks_of_a_dead_node_run_again_without_a_counted_retry() {
    let store = in_memory_store();
    let producer = builder_without_worker().start(&store).await;
    let receipt = emit(&producer, vec![keyed_event("a", "x")]).await;
    // A node that claims tasks and then sends no heartbeat.
    let dead_node_id = store.join_node("dead", now()).await.unwrap();
    let handlers = Arc::new([handler_name("h")].into());
    let claims = store
        .claim_tasks(ClaimRequest { claimant: Claimant::Node(dead_node_id), handlers, max_tasks: 1 }, now())
        .await
        .unwrap();
    assert_eq!(claims.tasks.len(), 1);

    let engine = set_short_node_lease(
        TestEngineBuilder::default().handler("h", |_| async { HandlerOutcome::succeeded() }).route("a", "h"),
    )
    .start(&store)
    .await;
    let id = &receipt.events[0].tasks[0];
    within_timeout("the task to be done", async {
        while store.read_task(id).await.unwrap().unwrap().0.lifecycle.state != TaskState::Done {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (task, _) = store.read_task(id).await.unwrap().unwrap();
    let outcomes: Vec<_> = task.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Crashed, AttemptOutcome::Succeeded]);
    assert_eq!((task.lifecycle.retries, task.lifecycle.crashes), (0, 1));
    engine.stop(TEST_TIMEOUT).await;
    producer.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_node_declared_dead_cancels_its_attempts_and_rejoins() {
    let store = in_memory_store();
    let calls = CallLog::default();
    let handler = {
        let calls = calls.clone();
        move |d: Delivery| {
            let calls = calls.clone();
            async move {
                if d.task.attempt == 1 {
                    d.cancel_token.cancelled().await;
                    calls.record("cancelled");
                }
                HandlerOutcome::succeeded()
            }
        }
    };
    let mut builder = TestEngineBuilder::default().handler("h", handler).route("a", "h");
    builder.settings.sweep_interval = Duration::from_millis(20);
    builder.settings.enabled_services.rescuer = false;
    let engine = builder.start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;
    // Another node whose clock is far ahead declares this node dead.
    store
        .rescue_tasks(
            RescueOptions::full_sweep(Duration::from_secs(1)),
            now().plus(Duration::from_secs(3600)),
        )
        .await
        .unwrap();
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.status, ended.attempt), (TaskStatus::Done, 2));
    within_timeout("the cancellation of the first attempt", async {
        while calls.entries().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (task, _) = store.read_task(&ended.id).await.unwrap().unwrap();
    let outcomes: Vec<_> = task.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Crashed, AttemptOutcome::Succeeded]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn tasks_of_a_removed_handler_are_marked_missing_and_can_be_adopted() {
    let store = in_memory_store();
    let producer = builder_without_worker().start(&store).await;
    let receipt = emit(&producer, vec![keyed_event("a", "x")]).await;
    let id = receipt.events[0].tasks[0].clone();
    producer.stop(TEST_TIMEOUT).await;

    let engine = set_short_node_lease(TestEngineBuilder::default()).start(&store).await;
    let status = || async { store.read_task(&id).await.unwrap().unwrap().0.lifecycle.state.status() };
    within_timeout("the task to be marked missing", async {
        while status().await != TaskStatus::Missing {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;

    let setup_with_handler = TestEngineBuilder::default()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .setup;
    engine.reconfigure(setup_with_handler).await.unwrap();
    let mut watcher = TaskWatcher::new(&engine);
    assert_eq!(engine.adopt_missing_tasks(&handler_name("h")).await.unwrap(), 1);
    assert_eq!(watcher.wait_for_ended_tasks(1).await[0].id, id);
    engine.reconfigure(Setup::default()).await.unwrap();
    engine.stop(TEST_TIMEOUT).await;
}
