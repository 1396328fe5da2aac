//! Services that panic: each is restarted and loses nothing, and one that panics again and again makes the node fail.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use pointsman_core::fire::FireAction;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{EmitBatch, Registry, Store};
use pointsman_core::task::LogLevel;
use pointsman_core::{EventId, ScheduleName, TaskId, TaskStatus, cron};
use pointsman_engine::{Delivery, Engine, HandlerOutcome, PullRequest, ScheduleSpec};
use pointsman_store_conformance::DispatchingStore;
use pointsman_store_sqlite::SqliteStore;

/// A store whose `method` panics for its first callers that are services; calls of the test itself do not panic.
fn store_with_panics(store: &SqliteStore, method: &'static str, panics: usize) -> Arc<dyn Store> {
    let remaining = AtomicUsize::new(panics);
    DispatchingStore::with_hook_before_calls(Arc::new(store.clone()), move |called| {
        let is_service = tokio::task::try_id().is_some();
        if called == method
            && is_service
            && remaining.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        {
            panic!("a panic in {method}");
        }
    })
}

/// Starts a node on which every service has work: two slots, handlers of each kind, and a schedule.
async fn start_busy_node(store: Arc<dyn Store>) -> Engine {
    let logging = async |delivery: Delivery| {
        delivery.log_sink.write_line(now(), LogLevel::Info, "a line".into()).await;
        HandlerOutcome::succeeded()
    };
    let waiting = async |delivery: Delivery| {
        delivery.cancel_token.cancelled().await;
        HandlerOutcome::failed("cancelled")
    };
    let tick = ScheduleSpec::new(
        ScheduleName::new("tick").unwrap(),
        cron::Schedule::parse_utc("every 1s").unwrap(),
        FireAction::EmitEvent(Box::new(keyed_event("ticked", "clock"))),
    );
    let mut node = TestEngineBuilder::default()
        .slots(2)
        .handler("logging", logging)
        .handler("waiting", waiting)
        .pulled_handler("pulled")
        .route("logged", "logging")
        .route("waited", "waiting")
        .route("fetched", "pulled")
        .schedule(tick);
    node.settings.sweep_interval = Duration::from_millis(100);
    Engine::start(store, node.settings, node.setup).await.unwrap()
}

/// Emits an event; repeats it while the sequencer is being restarted.
async fn emit_with_retries(engine: &Engine, type_name: &str) -> TaskId {
    let events = vec![keyed_event(type_name, type_name)];
    loop {
        match engine.emit(EmitBatch { events: events.clone(), idempotency_key: None }).await {
            Ok(receipt) => return receipt.events[0].tasks[0].clone(),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn wait_for_status(store: &SqliteStore, task: &TaskId, status: TaskStatus) {
    let has_status = || async { read_task(store, task).await.lifecycle.state.status() == status };
    wait_until(&format!("{task} to be {status:?}"), has_status).await;
}

/// Gives every service some work, and checks that the work was done.
async fn exercise_all_services(engine: &Engine, store: &SqliteStore) {
    // Sequencer, worker, log writer.
    let logged = emit_with_retries(engine, "logged").await;
    wait_for_status(store, &logged, TaskStatus::Done).await;
    assert_eq!(read_log(store, &logged).await, ["a line"]);
    // Scheduler: more tasks are ready than there are slots. Attempt checks: running tasks are cancelled.
    let mut waited = Vec::new();
    for key in ["1", "2", "3"] {
        let events = vec![keyed_event("waited", key)];
        waited.push(emit(engine, events).await.events.remove(0).tasks.remove(0));
    }
    wait_until("a task to be scheduled ahead", || async {
        read_task(store, &waited[2]).await.lifecycle.state.status() == TaskStatus::Scheduled
    })
    .await;
    for task in &waited {
        engine.cancel_task(task).await.unwrap().unwrap();
    }
    wait_until("all slots to be free", || async { engine.metrics_text().await.contains("slots_busy 0") })
        .await;
    // Long-poll broker.
    let fetched = emit_with_retries(engine, "fetched").await;
    let pull = || PullRequest {
        handlers: [handler_name("pulled")].into(),
        max_tasks: 1,
        max_wait: TEST_TIMEOUT,
        lease_duration: TEST_TIMEOUT,
        tenant: None,
    };
    let task = loop {
        if let Some(task) = within_timeout("a pulled task", engine.pull_tasks(pull())).await.unwrap().pop() {
            break task;
        }
    };
    assert_eq!(task.id, fetched);
    engine.end_leased_task(&task.id, task.fence, HandlerOutcome::succeeded()).await.unwrap().unwrap();
    // Clock and observer: a follower sees the schedule fire.
    let (filter, mut after) = (EventFilter::default(), EventId::ZERO);
    within_timeout("the schedule to fire", async {
        loop {
            let page = engine.observer().read_page(&filter, after, None, 1000).await.unwrap();
            if page.events.iter().any(|event| event.event_type.as_str() == "ticked") {
                break;
            }
            after = page.last_scanned_event_id;
            engine.observer().wait_for_matching_event(&filter, &mut after).await;
        }
    })
    .await;
}

/// A service, and a method of the store that this service calls.
const STORE_METHOD_OF_EACH_SERVICE: [(&str, &str); 11] = [
    ("sequencer", "append"),
    ("worker", "finish_attempts"),
    ("log writer", "append_log_lines"),
    ("scheduler", "schedule_tasks_ahead"),
    ("long-poll broker", "claim_tasks"),
    ("clock", "execute_fire_requests"),
    ("clock monitor", "read_store_server_clock"),
    ("observer", "read_events"),
    ("rescuer", "record_heartbeat"),
    ("attempt checks", "find_lost_attempts"),
    ("pruner", "prune_events_tasks_and_objects"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_service_is_restarted_after_a_panic_and_continues() {
    for (service, method) in STORE_METHOD_OF_EACH_SERVICE {
        let store = in_memory_store();
        // The worker calls this method too, so several panics are needed until one of them hits the broker.
        let panics = if method == "claim_tasks" { 3 } else { 1 };
        let engine = start_busy_node(store_with_panics(&store, method, panics)).await;
        exercise_all_services(&engine, &store).await;
        let failures = || async { engine.metrics().encode().contains("service_failures_total{") };
        wait_until(&format!("a panic of the {service}"), failures).await;
        exercise_all_services(&engine, &store).await;
        assert_eq!(engine.service_failure(), None);
        assert_eq!(store.list_nodes().await.unwrap().iter().filter(|node| !node.has_left_or_died).count(), 1);
        engine.stop(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_worker_keeps_panicking_fails_and_gives_its_tasks_back() {
    let store = in_memory_store();
    let engine = start_busy_node(store_with_panics(&store, "finish_attempts", 6)).await;
    let waited = emit_with_retries(&engine, "waited").await;
    wait_for_status(&store, &waited, TaskStatus::Locked).await;
    let logged = emit_with_retries(&engine, "logged").await;
    let failure = within_timeout("the node to fail", engine.wait_for_service_failure()).await;
    assert_eq!((failure.service, engine.service_failure()), ("worker", Some(failure.clone())));
    assert_eq!(failure.reason, "it panicked: a panic in finish_attempts");
    engine.stop(Duration::from_millis(10)).await;
    // The last run of the worker stored the end that it had kept.
    assert_eq!(read_task(&store, &logged).await.lifecycle.state.status(), TaskStatus::Done);
    let released = read_task(&store, &waited).await;
    assert_eq!((released.lifecycle.state.status(), released.lifecycle.crashes), (TaskStatus::New, 0));
}
