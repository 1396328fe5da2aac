//! Circuit breakers: no task of a handler is started while its target is busy or its circuit is open.

use pointsman_core::TaskStatus;
use pointsman_core::limit::{BREAKER_FAILURE_THRESHOLD, LimiterAndBreakerState, TargetHealth};
use pointsman_core::store::{AttemptResult, FinishedAttempt};
use pointsman_core::task::TaskCommandError;

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("record", &["hook"])
        .route("note", &["notify"])
        .use_default_retry_policy("hook")
}

/// A fixture with `count` tasks for the handler `hook`, spread over three tenants.
async fn fixture_with_tasks_of_handler_hook(harness: &dyn Harness, count: usize) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for n in 0..count {
        fixture.emit(new_event("record").for_tenant(["default", "shop", "depot"][n % 3])).await;
    }
    fixture
}

/// Finishes one attempt and reports that its target is busy for this many seconds.
async fn finish_attempt_with_busy_target(fixture: &StoreFixture<'_>, seconds: u64) {
    let task = fixture.claim_one_for_handler("hook").await;
    let until = fixture.seconds_from_now(seconds);
    let finished = fixture
        .finish_with_target_health(&task, AttemptResult::Snoozed { until }, TargetHealth::Busy { until })
        .await;
    assert_eq!((finished.status, finished.next_attempt_due_at), (TaskStatus::New, Some(until)));
    assert_eq!(fixture.read_task(&task.id).await.lifecycle.retries, 0, "it uses no retry");
}

/// Finishes several attempts one by one with a report that the target fails; their tasks are snoozed for an hour.
async fn finish_attempts_with_failing_target(fixture: &StoreFixture<'_>, times: u32) {
    for _ in 0..times {
        let task = fixture.claim_one_for_handler("hook").await;
        fixture
            .finish_with_target_health(
                &task,
                AttemptResult::Snoozed { until: fixture.seconds_from_now(3600) },
                TargetHealth::Failing,
            )
            .await;
    }
}

pub async fn a_busy_target_gets_no_attempts_until_its_retry_time(harness: &dyn Harness) {
    let mut fixture = fixture_with_tasks_of_handler_hook(harness, 6).await;
    finish_attempt_with_busy_target(&fixture, 60).await;
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!(
        (claims.tasks.len(), claims.has_more, claims.next_task_due_at),
        (0, false, Some(fixture.seconds_from_now(60)))
    );
    let batches = vec![new_emit_batch([new_event("record")])];
    let (_, claims) =
        expect_ok(fixture.store.append(batches, Some(fixture.claim_request(9)), fixture.now).await);
    assert!(claims.tasks.is_empty(), "new tasks do not start either");
    fixture.advance_clock(59);
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(1);
    assert_eq!(fixture.claim(10).await.len(), 7);
}

pub async fn a_shorter_busy_time_does_not_shorten_a_longer_one(harness: &dyn Harness) {
    let mut fixture = fixture_with_tasks_of_handler_hook(harness, 6).await;
    let first = fixture.claim_one().await;
    finish_attempt_with_busy_target(&fixture, 60).await;
    let until = fixture.seconds_from_now(10);
    fixture
        .finish_with_target_health(&first, AttemptResult::Snoozed { until }, TargetHealth::Busy { until })
        .await;
    fixture.advance_clock(10);
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(
        fixture.claim_with_remaining_work(10).await.next_task_due_at,
        Some(fixture.seconds_from_now(50))
    );
    fixture.advance_clock(50);
    assert_eq!(fixture.claim(10).await.len(), 6);
}

pub async fn prefetched_tasks_wait_for_a_busy_target(harness: &dyn Harness) {
    let mut fixture = fixture_with_tasks_of_handler_hook(harness, 6).await;
    let task = fixture.claim_one().await;
    fixture.schedule_tasks(4).await;
    let until = fixture.seconds_from_now(60);
    fixture
        .finish_with_target_health(&task, AttemptResult::Snoozed { until }, TargetHealth::Busy { until })
        .await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(60);
    assert_eq!(fixture.claim(10).await.len(), 6);
}

/// Running attempts may finish, and a success reports that the target has recovered.
pub async fn a_success_ends_the_busy_time(harness: &dyn Harness) {
    let fixture = fixture_with_tasks_of_handler_hook(harness, 6).await;
    let running = fixture.claim_one().await;
    finish_attempt_with_busy_target(&fixture, 60).await;
    fixture.finish_with_target_health(&running, success(), TargetHealth::Healthy).await;
    assert_eq!(fixture.claim(10).await.len(), 4);
}

pub async fn a_busy_target_does_not_delay_other_handlers(harness: &dyn Harness) {
    let fixture = fixture_with_tasks_of_handler_hook(harness, 100).await;
    fixture.emit_copies(5, new_event("note").with_priority(1)).await;
    finish_attempt_with_busy_target(&fixture, 60).await;
    fixture.schedule_tasks(8).await;
    let claimed = fixture.claim(5).await;
    assert_eq!(claimed.len(), 5);
    assert!(claimed.iter().all(|task| task.handler == handler_name("notify")));
}

pub async fn a_failing_target_opens_the_circuit_and_is_probed_by_one_task(harness: &dyn Harness) {
    let mut fixture = fixture_with_tasks_of_handler_hook(harness, 40).await;
    finish_attempts_with_failing_target(&fixture, BREAKER_FAILURE_THRESHOLD - 1).await;
    let claimed = fixture.claim(3).await;
    assert_eq!(claimed.len(), 3, "not yet");
    for task in &claimed {
        fixture.release_task(task).await;
    }
    let mut limiter_state = LimiterAndBreakerState {
        consecutive_failures: BREAKER_FAILURE_THRESHOLD - 1,
        ..LimiterAndBreakerState::default()
    };
    let mut waits = Vec::new();
    for _ in 0..3 {
        finish_attempts_with_failing_target(&fixture, 1).await;
        limiter_state.record_target_health(
            TargetHealth::Failing,
            &fixture.registration.expect_handler_def("hook").retry,
            fixture.now,
        );
        let claims = fixture.claim_with_remaining_work(10).await;
        assert_eq!(
            (claims.tasks.len(), claims.next_task_due_at),
            (0, Some(limiter_state.breaker_open_until))
        );
        waits.push(limiter_state.breaker_open_until.duration_since(fixture.now));
        fixture.now = limiter_state.breaker_open_until;
    }
    assert_strictly_ascending(&waits);
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((claims.tasks.len(), claims.has_more), (1, false), "one at a time");
    assert!(fixture.claim(10).await.is_empty());
    fixture.finish_with_target_health(&claims.tasks[0], success(), TargetHealth::Healthy).await;
    assert_eq!(fixture.claim(10).await.len(), 10, "until it has recovered");
}

pub async fn one_success_resets_the_failure_count(harness: &dyn Harness) {
    let fixture = fixture_with_tasks_of_handler_hook(harness, 40).await;
    finish_attempts_with_failing_target(&fixture, BREAKER_FAILURE_THRESHOLD - 1).await;
    let task = fixture.claim_one().await;
    fixture.finish_with_target_health(&task, success(), TargetHealth::Healthy).await;
    finish_attempts_with_failing_target(&fixture, BREAKER_FAILURE_THRESHOLD - 1).await;
    assert_eq!(fixture.claim(10).await.len(), 10);
}

/// An attempt without a target report does not affect the circuit.
pub async fn attempts_without_a_target_report_do_not_change_the_circuit(harness: &dyn Harness) {
    let fixture = fixture_with_tasks_of_handler_hook(harness, 40).await;
    finish_attempts_with_failing_target(&fixture, BREAKER_FAILURE_THRESHOLD - 1).await;
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.fail(&fixture.claim_one().await).await;
    assert_eq!(fixture.claim(1).await.len(), 1, "a failure without a report does not count");
    finish_attempts_with_failing_target(&fixture, 1).await;
    assert!(fixture.claim(10).await.is_empty());
}

pub async fn stale_attempts_do_not_change_the_circuit(harness: &dyn Harness) {
    let fixture = fixture_with_tasks_of_handler_hook(harness, 6).await;
    let stale_attempt = fixture.claim_one().await;
    fixture.release_task(&stale_attempt).await;
    let until = fixture.seconds_from_now(3600);
    for target in [TargetHealth::Busy { until }, TargetHealth::Failing] {
        for _ in 0..BREAKER_FAILURE_THRESHOLD {
            let attempt = FinishedAttempt {
                target_health: Some(target),
                ..finished_attempt(&stale_attempt, AttemptResult::Snoozed { until })
            };
            assert_eq!(
                fixture.finish_attempt(attempt).await.map(drop),
                Err(TaskCommandError::WrongState(TaskStatus::New))
            );
        }
    }
    assert_eq!(fixture.claim(10).await.len(), 6);
}

pub async fn circuit_state_survives_a_restart(harness: &dyn Harness) {
    let fixture = fixture_with_tasks_of_handler_hook(harness, 40).await;
    finish_attempts_with_failing_target(&fixture, BREAKER_FAILURE_THRESHOLD).await;
    let published = fixture.claim_with_remaining_work(10).await.next_task_due_at;
    let mut fixture = fixture.reopen().await;
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, published));
    fixture.now = published.expect("the wait has an end");
    assert_eq!(fixture.claim(10).await.len(), 1, "one task probes the target");
}

/// A changed configuration does not close the circuit.
pub async fn circuit_state_survives_a_registration(harness: &dyn Harness) {
    let mut fixture = fixture_with_tasks_of_handler_hook(harness, 40).await;
    finish_attempts_with_failing_target(&fixture, BREAKER_FAILURE_THRESHOLD).await;
    let published = fixture.claim_with_remaining_work(10).await.next_task_due_at;
    fixture.register(base_registration().route("record.other", &["hook"])).await;
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, published));
}

pub async fn a_busy_target_blocks_claims_of_pull_workers(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration().pulled_by_workers("hook")).await;
    fixture.emit_copies(3, new_event("record")).await;
    let task = fixture.claim_one_as_pull_worker("hook").await;
    let until = fixture.seconds_from_now(60);
    fixture
        .finish_with_target_health(&task, AttemptResult::Snoozed { until }, TargetHealth::Busy { until })
        .await;
    let claims = expect_ok(
        fixture.store.claim_tasks(fixture.pull_worker_claim_request(&["hook"], 10), fixture.now).await,
    );
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, Some(until)));
    fixture.advance_clock(60);
    assert_eq!(fixture.claim_as_pull_worker(&["hook"], 10).await.len(), 3);
}

pub async fn a_busy_time_set_while_the_clock_ran_ahead_does_not_block_the_handler(harness: &dyn Harness) {
    let mut fixture = fixture_with_tasks_of_handler_hook(harness, 4).await;
    let correct_time = fixture.now;
    fixture.advance_clock(86_400);
    finish_attempt_with_busy_target(&fixture, 60).await;
    fixture.now = correct_time;
    assert_eq!(fixture.claim(1).await.len(), 1);
}
