use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pointsman::{Backoff, RetryPolicy, Task};
use pointsman_core::task::{AttemptEnd, EndReason};
use serde::Serialize;

use super::*;

/// No waits between attempts: only their number matters here.
fn at_once(max: u32) -> RetryPolicy {
    RetryPolicy { max, backoff: Backoff::Fixed, delay: Duration::ZERO, max_delay: Duration::ZERO }
}

/// Runs one event through a handler that may be tried again three times.
async fn ended_by<Args: 'static>(handler: impl pointsman::Handler<Args>) -> Task {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", handler)
        .retry(at_once(3))
        .on::<Published>("h")
        .start()
        .await
        .unwrap();
    let task = run_one(&bus, Published::new(1)).await;
    bus.stop().await;
    task
}

fn ends(task: &Task) -> Vec<AttemptEnd> {
    task.attempts.iter().map(|attempt| attempt.end).collect()
}

#[tokio::test]
async fn nothing_said_is_done() {
    let task = ended_by(|| async {}).await;
    assert_eq!(task.life.state.status(), Status::Done);
    assert_eq!(task.result, None);
}

#[tokio::test]
async fn a_value_is_the_result_of_the_task() {
    #[derive(Serialize)]
    struct Indexed {
        words: usize,
    }
    let task = ended_by(|event: Published| async move {
        Ok::<_, HandlerError>(Indexed { words: event.title.split(' ').count() })
    })
    .await;
    assert_eq!(task.result.unwrap().as_str(), r#"{"words":2}"#);
}

#[tokio::test]
async fn a_failure_is_tried_again_until_retries_are_used_up() {
    let task = ended_by(|| async { Err::<(), _>("the index is down") }).await;
    assert_eq!(task.life.state.status(), Status::Error);
    assert_eq!(task.life.state.reason(), Some(EndReason::Failed));
    assert_eq!(task.error.as_deref(), Some("the index is down"));
    assert_eq!(ends(&task), [AttemptEnd::Failed; 4]);
}

#[tokio::test]
async fn a_failure_may_pass() {
    let task = ended_by(|ctx: Ctx| async move {
        match ctx.attempt() {
            1 | 2 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(task.life.state.status(), Status::Done);
    assert_eq!(ends(&task), [AttemptEnd::Failed, AttemptEnd::Failed, AttemptEnd::Succeeded]);
}

#[tokio::test]
async fn a_permanent_failure_is_not_tried_again() {
    let task = ended_by(|| async { Err::<(), _>(HandlerError::permanent("never")) }).await;
    assert_eq!(task.life.state.status(), Status::Error);
    assert_eq!(ends(&task), [AttemptEnd::Failed]);
}

#[tokio::test]
async fn a_snooze_costs_no_retry() {
    let task = ended_by(|ctx: Ctx| async move {
        if ctx.attempt() <= 5 { Err(Snooze::after(Duration::from_millis(1))) } else { Ok(()) }
    })
    .await;
    assert_eq!(task.life.state.status(), Status::Done);
    assert_eq!(task.life.retries, 0);
    assert_eq!(ends(&task)[..5], [AttemptEnd::Snoozed; 5]);
}

#[tokio::test]
async fn a_panic_is_a_failure_like_any_other() {
    let runs = Arc::new(AtomicU32::new(0));
    let task = ended_by(move || {
        let runs = runs.clone();
        async move {
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                panic!("out of cheese");
            }
        }
    })
    .await;
    assert_eq!(task.life.state.status(), Status::Done);
    assert!(task.attempts[0].error.as_deref().unwrap().contains("out of cheese"));
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_told_and_has_failed() {
    let home = Home::new();
    let (probe, mut seen) = Probe::<()>::new();
    let bus = Bus::builder(&home.url())
        .state(probe)
        .handler("slow", |ctx: Ctx, State(probe): State<Probe<()>>| async move {
            ctx.cancelled().await;
            probe.saw(());
            std::future::pending::<()>().await;
        })
        .retries(0)
        .timeout(Duration::from_millis(50))
        .on::<Published>("slow")
        .start()
        .await
        .unwrap();
    let task = run_one(&bus, Published::new(1)).await;
    saw(&mut seen).await;
    assert_eq!(task.life.state.status(), Status::Error);
    assert!(task.error.unwrap().contains("timed out"));
    bus.stop().await;
}
