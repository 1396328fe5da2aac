//! Rules, reconfigurations and adoptions while the node runs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use pointsman_core::store::Registry;
use pointsman_core::{NewEvent, Rule, RuleKind, RuleScope, TaskStatus};
use pointsman_engine::{Delivery, HandlerOutcome, Setup};

/// Pauses a busy handler many times: no attempt starts between the acknowledgement and the lifting of the rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_attempt_starts_after_a_pause_was_acknowledged() {
    let store = in_memory_store();
    let (paused, starts_while_paused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (paused, starts_while_paused) = (paused.clone(), starts_while_paused.clone());
        move |_: Delivery| {
            starts_while_paused.fetch_add(usize::from(paused.load(Ordering::SeqCst)), Ordering::SeqCst);
            async { HandlerOutcome::succeeded() }
        }
    };
    let engine =
        TestEngineBuilder::default().handler("index", handler).route("record", "index").start(&store).await;
    let pause = || Rule {
        kind: RuleKind::Pause,
        scope: RuleScope::Handler(handler_name("index")),
        tenant: None,
        set_by: "ops".into(),
        reason: String::new(),
        since: now(),
    };
    for _ in 0..100 {
        let producers: Vec<_> = (0..8)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    for _ in 0..5 {
                        emit(&engine, vec![NewEvent::new(event_type("record")); 5]).await;
                    }
                })
            })
            .collect();
        engine.set_rule(pause()).await.unwrap();
        paused.store(true, Ordering::SeqCst);
        for producer in producers {
            producer.await.unwrap();
        }
        paused.store(false, Ordering::SeqCst);
        assert!(
            engine
                .lift_rule(RuleKind::Pause, &RuleScope::Handler(handler_name("index")), None)
                .await
                .unwrap()
        );
    }
    assert_eq!(starts_while_paused.load(Ordering::SeqCst), 0);
    let wait_until_all_ran = async {
        while store
            .list_queues(None)
            .await
            .unwrap()
            .iter()
            .any(|queue| queue.ready_count + queue.running_count > 0)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within_timeout("the backlog to run", wait_until_all_ran).await;
    engine.stop(Duration::from_secs(20)).await;
}

/// After two concurrent reconfigurations the store and the node have the handlers of the same one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_reconfigurations_leave_node_and_store_consistent() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    for _ in 0..500 {
        let reconfigurations = ["a", "b"].map(|handler| {
            let setup = TestEngineBuilder::default()
                .handler(handler, |_| async { HandlerOutcome::succeeded() })
                .setup;
            let engine = engine.clone();
            tokio::spawn(async move { engine.reconfigure(setup).await.unwrap() })
        });
        for reconfiguration in reconfigurations {
            reconfiguration.await.unwrap();
        }
        let stored = store.read_merged_registration().await.unwrap().handlers.remove(0);
        assert_eq!(engine.current_setup().handlers[0].def, stored);
    }
    engine.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn watchers_are_notified_of_adopted_tasks() {
    let store = in_memory_store();
    let setup = || {
        TestEngineBuilder::default()
            .handler("h", |_| async { HandlerOutcome::succeeded() })
            .route("a", "h")
            .setup
    };
    let mut builder = TestEngineBuilder { setup: setup(), ..TestEngineBuilder::default() };
    builder.settings.sweep_interval = Duration::from_millis(10);
    let engine = builder.start(&store).await;
    let scope = RuleScope::Handler(handler_name("h"));
    let (by, reason) = ("ops".to_owned(), String::new());
    engine
        .set_rule(Rule { kind: RuleKind::Pause, scope, tenant: None, set_by: by, reason, since: now() })
        .await
        .unwrap();
    let receipt = emit(&engine, vec![keyed_event("a", "x"), keyed_event("a", "y")]).await;
    engine.reconfigure(Setup::default()).await.unwrap();
    let tasks: Vec<_> = receipt.events.into_iter().flat_map(|event| event.tasks).collect();
    for id in &tasks {
        wait_until("a missing task", || async {
            read_task(&store, id).await.lifecycle.state.status() == TaskStatus::Missing
        })
        .await;
    }
    engine.reconfigure(setup()).await.unwrap();
    let mut watcher = TaskWatcher::new(&engine);
    assert_eq!(engine.adopt_missing_tasks(&handler_name("h")).await.unwrap(), 2);
    for id in &tasks {
        let change = watcher.next_change().await;
        assert_eq!((&change.id, change.status), (id, TaskStatus::New));
    }
    engine.stop(TEST_TIMEOUT).await;
}
