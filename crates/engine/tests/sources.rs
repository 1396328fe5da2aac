//! Sources: each collection has one task at a time, run by a command.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::{Rule, RuleKind, RuleScope, TaskStatus};
use pointsman_engine::HandlerOutcome;
use pointsman_engine::handlers::in_process::InProcessHandler;

#[tokio::test]
async fn a_source_command_receives_its_run_and_causes_its_emits() {
    let store = in_memory_store();
    let script = r#"cat; echo; echo "$POINTSMAN_SOURCE $POINTSMAN_COLLECTION"
        echo '{"emit":[{"type":"order.found"}],"result":{"rows":3}}' >>"$POINTSMAN_EFFECTS""#;
    let engine = TestEngineBuilder::default().source("shop", &["orders"], script).start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    let mut lines = engine.subscribe_log_writes();
    let run = engine.run_collection(new_collection_run("shop/orders"), None).await.unwrap().unwrap();
    assert!(run.created && run.task.as_str().starts_with("shop_orders_"));
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.handler.as_str(), &*ended.subject_name, ended.event_id), ("shop", "orders", None));
    assert_eq!((ended.id.clone(), ended.status), (run.task.clone(), TaskStatus::Done));
    within_timeout("the notification of new log lines", lines.changed()).await.unwrap();

    let done = read_task(&store, &run.task).await;
    assert_eq!((done.handler.as_str(), &*done.subject_name, done.event_id), ("shop", "orders", None));
    assert_eq!(done.result.unwrap().as_str(), r#"{"rows":3}"#);
    let log = read_log(&store, &run.task).await;
    let expected = format!(
        r#"{{"task_id":"{}","source":"shop","collection":"orders","tenant":"default","planned_at":""}}"#,
        run.task
    );
    assert_eq!(log, [expected.as_str(), "shop orders"]);
    let events = list_emitted_events(&engine).await;
    let cause = events[0].cause.unwrap();
    assert_eq!((cause.event, cause.task, cause.depth), (None, done.seq, 1));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_runs_of_a_collection_share_one_task() {
    let store = in_memory_store();
    let builder = TestEngineBuilder::default().source("shop", &["orders", "stock"], "sleep 600");
    let engine = builder.start(&store).await;
    let concurrent_runs: Vec<_> = (0..100)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                engine.run_collection(new_collection_run("shop/orders"), None).await.unwrap().unwrap()
            })
        })
        .collect();
    let mut runs = Vec::new();
    for concurrent_run in concurrent_runs {
        runs.push(concurrent_run.await.unwrap());
    }
    assert_eq!(runs.iter().filter(|run| run.created).count(), 1);
    assert!(runs.iter().all(|run| run.task == runs[0].task));
    assert_ne!(
        engine.run_collection(new_collection_run("shop/stock"), None).await.unwrap().unwrap().task,
        runs[0].task
    );
    assert!(engine.run_collection(new_collection_run("shop/none"), None).await.unwrap().is_err());
    assert!(engine.run_collection(new_collection_run("none/orders"), None).await.unwrap().is_err());

    // After the task of a collection is cancelled, the collection can be run again.
    wait_until("the task to run", || async {
        read_task(&store, &runs[0].task).await.lifecycle.state.status() == TaskStatus::Locked
    })
    .await;
    engine.cancel_task(&runs[0].task).await.unwrap().unwrap();
    let next = engine.run_collection(new_collection_run("shop/orders"), None).await.unwrap().unwrap();
    assert!(next.created);
    engine.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_paused_collection_keeps_one_task_and_blocks_no_other() {
    let store = in_memory_store();
    let engine =
        TestEngineBuilder::default().source("shop", &["orders", "stock"], "true").start(&store).await;
    let scope = RuleScope::Collection("shop/orders".parse().unwrap());
    let pause = Rule {
        kind: RuleKind::Pause,
        scope: scope.clone(),
        tenant: None,
        set_by: "ops".into(),
        reason: String::new(),
        since: now(),
    };
    engine.set_rule(pause).await.unwrap();
    let mut watcher = TaskWatcher::new(&engine);
    let paused = engine.run_collection(new_collection_run("shop/orders"), None).await.unwrap().unwrap();
    let unpaused = engine.run_collection(new_collection_run("shop/stock"), None).await.unwrap().unwrap();
    assert_eq!(watcher.wait_for_ended_tasks(1).await[0].id, unpaused.task);
    let second_run = engine.run_collection(new_collection_run("shop/orders"), None).await.unwrap().unwrap();
    assert_eq!((second_run.created, &second_run.task), (false, &paused.task));
    assert!(engine.lift_rule(RuleKind::Pause, &scope, None).await.unwrap());
    assert_eq!(watcher.wait_for_ended_tasks(1).await[0].id, paused.task);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn an_in_process_handler_cannot_be_a_source() {
    let store = in_memory_store();
    let function = Arc::new(InProcessHandler::new(|_| async { HandlerOutcome::succeeded() }));
    let builder = TestEngineBuilder::default()
        .handler_with_runner("shop", Some(function), |def| def.source = Some(source_def(&["orders"])));
    let engine = builder.start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    engine.run_collection(new_collection_run("shop/orders"), None).await.unwrap().unwrap();
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.status, ended.attempt), (TaskStatus::Error, 1));
    assert!(ended.error.unwrap().contains("cannot be a source"));
    engine.stop(TEST_TIMEOUT).await;
}
