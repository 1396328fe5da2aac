//! How attempts end: retries, snoozes, timeouts, panics, storms.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::*;
use pointsman_core::event::MAX_CAUSE_DEPTH;
use pointsman_core::store::{AttemptResult, Tasks};
use pointsman_core::task::{AttemptOutcome, ErrorReason, LogLevel, LogLine};
use pointsman_core::{NewEvent, TaskStatus};
use pointsman_engine::{Delivery, HandlerOutcome};

#[tokio::test]
async fn a_failing_task_is_retried_until_its_retries_are_used_up() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler(
            "h",
            |d: Delivery| async move { HandlerOutcome::failed(format!("fault {}", d.task.attempt)) },
        )
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let retry = watcher.wait_for_change(|c| c.attempt == 1 && c.status == TaskStatus::New).await;
    assert!(retry.due_at.is_some() && retry.error.as_deref() == Some("fault 1"));
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!(
        (ended.status, ended.attempt, ended.error.as_deref()),
        (TaskStatus::Error, 3, Some("fault 3"))
    );
    let (task, _) = store.read_task(&ended.id).await.unwrap().unwrap();
    assert_eq!(task.attempts.len(), 3);
    assert_eq!(task.lifecycle.retries, 2);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |_| async {
            let result = AttemptResult::Failed {
                error: "a permanent failure".into(),
                return_code: 1,
                retry_at: None,
                permanent: true,
            };
            HandlerOutcome { result, ..HandlerOutcome::succeeded() }
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.status, ended.attempt), (TaskStatus::Error, 1));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_snooze_costs_no_retry_and_runs_again_when_its_time_has_come() {
    let store = in_memory_store();
    let ran_early = Arc::new(AtomicBool::new(false));
    let until = now().plus(Duration::from_millis(200));
    let handler = {
        let ran_early = ran_early.clone();
        move |d: Delivery| {
            let ran_early = ran_early.clone();
            async move {
                match d.task.attempt {
                    1 => snoozed_outcome(until),
                    _ => {
                        ran_early.fetch_or(now() < until, Ordering::SeqCst);
                        HandlerOutcome::succeeded()
                    }
                }
            }
        }
    };
    let engine = TestEngineBuilder::default().handler("h", handler).route("a", "h").start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.status, ended.attempt), (TaskStatus::Done, 2));
    assert!(!ran_early.load(Ordering::SeqCst));
    let (task, _) = store.read_task(&ended.id).await.unwrap().unwrap();
    assert_eq!(task.lifecycle.retries, 0);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_delayed_event_is_not_handled_before_its_time() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let due = now().plus(Duration::from_millis(200));
    emit(
        &engine,
        vec![NewEvent { due: Some(due), ..keyed_event("a", "delayed") }, keyed_event("a", "undelayed")],
    )
    .await;
    let ended = watcher.wait_for_ended_tasks(2).await;
    assert_eq!(ended[0].key.as_ref().unwrap().as_str(), "undelayed");
    assert!(ended[1].changed_at >= due);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_cancelled_and_fails() {
    let store = in_memory_store();
    let cancelled = Arc::new(AtomicBool::new(false));
    let handler = {
        let cancelled = cancelled.clone();
        move |d: Delivery| {
            let cancelled = cancelled.clone();
            async move {
                d.cancel_token.cancelled().await;
                cancelled.store(true, Ordering::SeqCst);
                HandlerOutcome::succeeded()
            }
        }
    };
    let engine = TestEngineBuilder::default()
        .handler_with_changed_spec(
            "h",
            |spec| {
                spec.attempt_timeout = Duration::from_millis(30);
                spec.def.retry.max_retries = 0;
            },
            handler,
        )
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.status, ended.error.as_deref()), (TaskStatus::Error, Some("timed out after 30ms")));
    assert!(cancelled.load(Ordering::SeqCst));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_handler_that_ignores_its_cancellation_is_dropped() {
    struct SetFlagOnDrop(Arc<AtomicBool>);
    impl Drop for SetFlagOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let store = in_memory_store();
    let is_cleaned_up = Arc::new(AtomicBool::new(false));
    let handler = {
        let is_cleaned_up = is_cleaned_up.clone();
        move |_: Delivery| {
            let cleanup = SetFlagOnDrop(is_cleaned_up.clone());
            async move {
                let _cleanup = cleanup;
                std::future::pending().await
            }
        }
    };
    let engine = TestEngineBuilder::default()
        .handler_with_changed_spec(
            "h",
            |spec| {
                spec.attempt_timeout = Duration::from_millis(10);
                spec.def.retry.max_retries = 0;
            },
            handler,
        )
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    assert_eq!(watcher.wait_for_ended_tasks(1).await[0].status, TaskStatus::Error);
    assert!(is_cleaned_up.load(Ordering::SeqCst));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_panic_fails_the_attempt_with_its_message() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |d: Delivery| async move {
            assert!(d.task.attempt > 1, "the first attempt panics");
            HandlerOutcome::succeeded()
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let failed = watcher.wait_for_change(|c| c.error.is_some()).await;
    assert_eq!(failed.error.as_deref(), Some("the handler panicked: the first attempt panics"));
    assert_eq!(watcher.wait_for_ended_tasks(1).await[0].status, TaskStatus::Done);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn only_a_successful_attempt_emits_and_its_events_name_their_cause() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |d: Delivery| async move {
            let emits = vec![keyed_event("b", "y"), keyed_event("b", "z")];
            let result = match d.task.attempt {
                1 => AttemptResult::Failed {
                    error: "the first attempt fails".into(),
                    return_code: 1,
                    retry_at: None,
                    permanent: false,
                },
                _ => AttemptResult::Succeeded { result: None },
            };
            HandlerOutcome { result, emitted_events: emits, ..HandlerOutcome::succeeded() }
        })
        .handler("next", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .route("b", "next")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for_ended_tasks(3).await;
    let events = list_emitted_events(&engine).await;
    // The failed attempt emitted nothing, the successful one emitted both events.
    assert_eq!(events.iter().map(|e| e.event_type.as_str()).collect::<Vec<_>>(), ["a", "b", "b"]);
    for emitted in &events[1..] {
        let cause = emitted.cause.unwrap();
        assert_eq!((cause.event, cause.depth), (Some(events[0].id), 1));
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn an_event_storm_is_stopped_at_the_maximum_cause_depth() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("re-emitter", |_| async {
            HandlerOutcome { emitted_events: vec![keyed_event("a", "x")], ..HandlerOutcome::succeeded() }
        })
        .route("a", "re-emitter")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_change(|c| c.status == TaskStatus::Error).await;
    assert!(ended.error.unwrap().contains("event storm"));
    assert_eq!(ended.attempt, 1);
    let events = list_emitted_events(&engine).await;
    assert_eq!(events.len(), usize::from(MAX_CAUSE_DEPTH) + 1);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_handler_may_not_emit_engine_events() {
    for reserved_type in ["OrderStarted", "Torn", "task"] {
        let store = in_memory_store();
        let engine = TestEngineBuilder::default()
            .handler("h", move |_| async move {
                HandlerOutcome {
                    emitted_events: vec![keyed_event("b", "x"), keyed_event(reserved_type, "x")],
                    ..HandlerOutcome::succeeded()
                }
            })
            .route("a", "h")
            .start(&store)
            .await;
        let mut watcher = TaskWatcher::new(&engine);
        emit(&engine, vec![keyed_event("a", "x")]).await;
        assert_eq!(watcher.wait_for_ended_tasks(1).await[0].status, TaskStatus::Error, "{reserved_type}");
        assert_eq!(list_emitted_events(&engine).await.len(), 1, "{reserved_type}");
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn log_lines_are_kept_in_order_up_to_the_limit() {
    const LOGGED_LINE_COUNT: usize = 10_500;
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |d: Delivery| async move {
            for n in 0..LOGGED_LINE_COUNT {
                d.log_sink.write_line(now(), LogLevel::Info, format!("line {n}")).await;
            }
            let last = LogLine { time: now(), level: LogLevel::Info, message: "with the end".into() };
            HandlerOutcome { log_lines: vec![last], ..HandlerOutcome::succeeded() }
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    let page = store.read_logs(&ended.id, 0, 20_000).await.unwrap().unwrap();
    assert_eq!(page.lines.len(), 10_001);
    for (n, stored) in page.lines[..10_000].iter().enumerate() {
        assert_eq!(stored.line.message, format!("line {n}"));
    }
    assert!(page.lines[10_000].line.message.contains("output is cut here"));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn log_lines_of_attempts_do_not_mix_and_failed_attempts_keep_theirs() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |d: Delivery| async move {
            for n in 0..50 {
                d.log_sink.write_line(now(), LogLevel::Info, format!("{} {n}", d.task.attempt)).await;
            }
            if d.task.attempt == 1 {
                HandlerOutcome::failed("the first attempt fails")
            } else {
                HandlerOutcome::succeeded()
            }
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, (0..20).map(|n| keyed_event("a", &format!("k{n}"))).collect()).await;
    for ended in watcher.wait_for_ended_tasks(20).await {
        let page = store.read_logs(&ended.id, 0, 1000).await.unwrap().unwrap();
        let lines: Vec<_> = page.lines.iter().map(|l| l.line.message.clone()).collect();
        let expected: Vec<_> = (1..=2).flat_map(|a| (0..50).map(move |n| format!("{a} {n}"))).collect();
        assert_eq!(lines, expected);
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_cancelled_task_ends_its_attempt() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |d: Delivery| async move {
            d.cancel_token.cancelled().await;
            HandlerOutcome::succeeded()
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let running = watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;
    engine.cancel_task(&running.id).await.unwrap().unwrap();
    let result = watcher.wait_for_change(|c| c.status == TaskStatus::Error).await;
    assert_eq!(result.error_reason, Some(ErrorReason::Canceled));
    assert!(engine.metrics_text().await.contains("tasks_ended_total{handler=\"h\",status=\"error\"} 1"));
    within_timeout("the slot to be free", async {
        while !engine.metrics_text().await.contains("pointsman_slots_busy 0") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (task, _) = store.read_task(&running.id).await.unwrap().unwrap();
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Error);
    assert_eq!(task.attempts.last().unwrap().outcome, AttemptOutcome::Canceled);
    engine.stop(TEST_TIMEOUT).await;
}
