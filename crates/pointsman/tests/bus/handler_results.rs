use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pointsman::{Backoff, RetryPolicy, Task};
use pointsman_core::task::{AttemptOutcome, ErrorReason};
use serde::Serialize;

use super::*;

/// A retry policy without delays, because only the number of attempts matters here.
fn retries_without_delay(max: u32) -> RetryPolicy {
    RetryPolicy {
        max_retries: max,
        backoff: Backoff::Fixed,
        delay: Duration::ZERO,
        max_delay: Duration::ZERO,
    }
}

/// Emits one event to a handler with three retries, and returns its finished task.
async fn run_handler_until_task_finished<Args: 'static>(handler: impl pointsman::Handler<Args>) -> Task {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", handler)
        .retry_policy(retries_without_delay(3))
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    let task = emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    bus.stop().await;
    task
}

fn attempt_outcomes(task: &Task) -> Vec<AttemptOutcome> {
    task.attempts.iter().map(|attempt| attempt.outcome).collect()
}

#[tokio::test]
async fn handler_that_returns_unit_succeeds() {
    let task = run_handler_until_task_finished(|| async {}).await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    assert_eq!(task.result, None);
}

#[tokio::test]
async fn returned_value_is_the_result_of_the_task() {
    #[derive(Serialize)]
    struct IndexResult {
        words: usize,
    }
    let task = run_handler_until_task_finished(|event: RecordPublished| async move {
        Ok::<_, HandlerError>(IndexResult { words: event.title.split(' ').count() })
    })
    .await;
    assert_eq!(task.result.unwrap().as_str(), r#"{"words":2}"#);
}

#[tokio::test]
async fn failure_is_retried_until_retries_are_used_up() {
    let task = run_handler_until_task_finished(|| async { Err::<(), _>("the index is down") }).await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Error);
    assert_eq!(task.lifecycle.state.error_reason(), Some(ErrorReason::Failed));
    assert_eq!(task.error.as_deref(), Some("the index is down"));
    assert_eq!(attempt_outcomes(&task), [AttemptOutcome::Failed; 4]);
}

#[tokio::test]
async fn a_retried_task_may_succeed() {
    let task = run_handler_until_task_finished(|ctx: Ctx| async move {
        match ctx.attempt() {
            1 | 2 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    assert_eq!(
        attempt_outcomes(&task),
        [AttemptOutcome::Failed, AttemptOutcome::Failed, AttemptOutcome::Succeeded]
    );
}

#[tokio::test]
async fn permanent_failure_is_not_retried() {
    let task = run_handler_until_task_finished(|| async {
        Err::<(), _>(HandlerError::permanent("a permanent failure"))
    })
    .await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Error);
    assert_eq!(attempt_outcomes(&task), [AttemptOutcome::Failed]);
}

#[tokio::test]
async fn snooze_costs_no_retry() {
    let task = run_handler_until_task_finished(|ctx: Ctx| async move {
        if ctx.attempt() <= 5 { Err(Snooze::after(Duration::from_millis(1))) } else { Ok(()) }
    })
    .await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    assert_eq!(task.lifecycle.retries, 0);
    assert_eq!(attempt_outcomes(&task)[..5], [AttemptOutcome::Snoozed; 5]);
}

#[tokio::test]
async fn panic_fails_the_attempt_and_is_retried() {
    let runs = Arc::new(AtomicU32::new(0));
    let task = run_handler_until_task_finished(move || {
        let runs = runs.clone();
        async move {
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                panic!("a panic in the handler");
            }
        }
    })
    .await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    assert!(task.attempts[0].error.as_deref().unwrap().contains("a panic in the handler"));
}

#[tokio::test]
async fn attempt_that_times_out_is_cancelled_and_fails() {
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<()>::new();
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .handler("slow", |ctx: Ctx, State(probe): State<HandlerProbe<()>>| async move {
            ctx.cancelled().await;
            probe.send(());
            std::future::pending::<()>().await;
        })
        .retries(0)
        .attempt_timeout(Duration::from_millis(50))
        .on::<RecordPublished>("slow")
        .start()
        .await
        .unwrap();
    let task = emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    receive_probed_value(&mut received).await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Error);
    assert!(task.error.unwrap().contains("timed out"));
    bus.stop().await;
}
