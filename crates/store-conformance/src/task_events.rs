//! Which attempts are published as engine events: all of a handler's, those that fail, or none.
//!
//! The start of an attempt is TaskStarted, its end is TaskEnded with the return code, and a task that will not run
//! again is TaskClosed. If only failures are observed, starts are not published, since a failure is not known at the
//! start.

use pointsman_core::handler::AttemptEventPolicy;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{AttemptResult, ClaimedTask};

use crate::Harness;
use crate::fixture::*;

const TASK_STARTED_SUMMARY: &str = "TaskStarted";
const TASK_SUCCEEDED_SUMMARY: &str = "TaskEnded returnCode:0";
const TASK_FAILED_SUMMARY: &str = "TaskEnded returnCode:7";
const TASK_CLOSED_SUMMARY: &str = "TaskClosed";

fn registration_with_observe_policy(observe: AttemptEventPolicy) -> RegistrationBuilder {
    RegistrationBuilder::single_handler()
        .collection("shop/orders", 100)
        .chain("/x/y", "a=step>done done")
        .observe_attempts("index", observe)
        .observe_attempts("shop", observe)
        .observe_attempts("step", observe)
}

fn failure_with_code_7(permanent: bool) -> AttemptResult {
    AttemptResult::Failed { error: "it broke".into(), return_code: 7, retry_at: None, permanent }
}

/// Returns the summaries of all published task events.
async fn read_task_event_summaries(fixture: &StoreFixture<'_>) -> Vec<String> {
    let filter = EventFilter { event_types: vec![event_type("TaskEvent")], ..EventFilter::default() };
    let events =
        fixture.read_events_after(fixture.read_journal_range().await.last_expired_event_id, &filter).await;
    events.iter().map(|event| summarize_event(event)).collect()
}

/// Creates a task of each kind, runs the same scenario with it, and asserts the published events.
async fn assert_events_for_every_task_kind(
    harness: &dyn Harness,
    observe: AttemptEventPolicy,
    want: &[&str],
    scenario: impl AsyncFn(&mut StoreFixture<'_>, ClaimedTask),
) {
    for task_kind in ["event", "run", "step"] {
        let mut fixture = StoreFixture::new(harness, registration_with_observe_policy(observe)).await;
        match task_kind {
            "event" => drop(fixture.emit(new_event("record").with_key("k")).await),
            "run" => drop(fixture.request_new_collection_run("shop/orders").await),
            _ => drop(fixture.add_order(new_order("/x/y,1")).await),
        }
        let task = fixture.claim_one().await;
        scenario(&mut fixture, task).await;
        assert_eq!(read_task_event_summaries(&fixture).await, want, "{task_kind}, {observe:?}");
    }
}

pub async fn a_success_is_published_if_all_attempts_are_observed(harness: &dyn Harness) {
    for (observe, want) in [
        (AttemptEventPolicy::All, &[TASK_STARTED_SUMMARY, TASK_SUCCEEDED_SUMMARY, TASK_CLOSED_SUMMARY][..]),
        (AttemptEventPolicy::Failures, &[][..]),
        (AttemptEventPolicy::None, &[][..]),
    ] {
        assert_events_for_every_task_kind(harness, observe, want, async |fixture, task| {
            drop(fixture.succeed(&task).await)
        })
        .await;
    }
}

pub async fn a_failure_is_published_with_its_return_code(harness: &dyn Harness) {
    for (observe, want) in [
        (
            AttemptEventPolicy::All,
            &[
                TASK_STARTED_SUMMARY,
                TASK_FAILED_SUMMARY,
                TASK_STARTED_SUMMARY,
                TASK_FAILED_SUMMARY,
                TASK_CLOSED_SUMMARY,
            ][..],
        ),
        (AttemptEventPolicy::Failures, &[TASK_FAILED_SUMMARY, TASK_FAILED_SUMMARY, TASK_CLOSED_SUMMARY][..]),
        (AttemptEventPolicy::None, &[][..]),
    ] {
        assert_events_for_every_task_kind(harness, observe, want, async |fixture, task| {
            fixture.finish_with_result(&task, failure_with_code_7(false)).await;
            fixture.advance_clock(RETRY_DELAY_SECS);
            fixture.finish_with_result(&fixture.claim_one().await, failure_with_code_7(true)).await;
        })
        .await;
    }
}

pub async fn a_failure_that_is_retried_successfully_is_published(harness: &dyn Harness) {
    for (observe, want) in [
        (
            AttemptEventPolicy::All,
            &[
                TASK_STARTED_SUMMARY,
                TASK_FAILED_SUMMARY,
                TASK_STARTED_SUMMARY,
                TASK_SUCCEEDED_SUMMARY,
                TASK_CLOSED_SUMMARY,
            ][..],
        ),
        (AttemptEventPolicy::Failures, &[TASK_FAILED_SUMMARY][..]),
    ] {
        assert_events_for_every_task_kind(harness, observe, want, async |fixture, task| {
            fixture.finish_with_result(&task, failure_with_code_7(false)).await;
            fixture.advance_clock(RETRY_DELAY_SECS);
            fixture.succeed(&fixture.claim_one().await).await;
        })
        .await;
    }
}

/// A snoozed or released attempt has not failed.
pub async fn snoozed_and_released_attempts_are_not_published_as_failures(harness: &dyn Harness) {
    for (observe, want) in [
        (
            AttemptEventPolicy::All,
            &[TASK_STARTED_SUMMARY, TASK_SUCCEEDED_SUMMARY, TASK_STARTED_SUMMARY, TASK_SUCCEEDED_SUMMARY][..],
        ),
        (AttemptEventPolicy::Failures, &[][..]),
    ] {
        assert_events_for_every_task_kind(harness, observe, want, async |fixture, task| {
            fixture.release_task(&task).await;
            fixture.snooze_task(&fixture.claim_one().await, 60).await;
        })
        .await;
    }
}

pub async fn a_crash_is_published_as_a_failure(harness: &dyn Harness) {
    for observe in [AttemptEventPolicy::All, AttemptEventPolicy::Failures] {
        let mut fixture = StoreFixture::new(harness, registration_with_observe_policy(observe)).await;
        fixture.emit(new_event("record")).await;
        fixture.claim_one().await;
        fixture.advance_clock(LEASE_SECS + 1);
        fixture.rescue_tasks().await;
        let published = read_task_event_summaries(&fixture).await;
        let last = published.last().expect("an event is published");
        assert!(last.starts_with("TaskEnded") && last != TASK_SUCCEEDED_SUMMARY, "{published:?}");
    }
}

pub async fn a_cancelled_attempt_is_published_if_all_attempts_are_observed(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, registration_with_observe_policy(AttemptEventPolicy::All)).await;
    fixture.emit(new_event("record")).await;
    let task = fixture.claim_one().await;
    fixture.cancel_task(&task.id).await.expect("it runs");
    let published = read_task_event_summaries(&fixture).await;
    assert_eq!(
        (published.len(), published[0].as_str(), published[2].as_str()),
        (3, TASK_STARTED_SUMMARY, TASK_CLOSED_SUMMARY),
        "{published:?}"
    );
}

/// A start must be published when it happens, not at the end.
pub async fn an_attempt_start_is_published_when_claimed(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, registration_with_observe_policy(AttemptEventPolicy::All)).await;
    fixture.emit(new_event("record")).await;
    fixture.claim_one().await;
    assert_eq!(read_task_event_summaries(&fixture).await, [TASK_STARTED_SUMMARY]);
    let batch = new_emit_batch([new_event("record")]);
    expect_ok(fixture.store.append(vec![batch], Some(fixture.claim_request(5)), fixture.now).await);
    assert_eq!(
        read_task_event_summaries(&fixture).await,
        [TASK_STARTED_SUMMARY; 2],
        "also if the append that creates the task claims it"
    );
}

pub async fn task_events_name_the_task_and_its_handler(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, registration_with_observe_policy(AttemptEventPolicy::All)).await;
    let since = fixture.emit(new_event("record")).await.id;
    fixture.succeed(&fixture.claim_one().await).await;
    let key = r#""key":{"jobPath":"/index","taskId":"index_record"}"#;
    let want = [
        format!(r#"{{{key},"TYPE":"TaskStarted"}}"#),
        format!(r#"{{{key},"TYPE":"TaskEnded","returnCode":0}}"#),
        format!(r#"{{{key},"TYPE":"TaskClosed"}}"#),
    ];
    assert_eq!(fixture.read_engine_event_json_after(since).await, want);
}

/// Steps are published as order events and as task events; these are independent.
pub async fn order_events_are_published_under_every_observe_policy(harness: &dyn Harness) {
    for observe in [AttemptEventPolicy::All, AttemptEventPolicy::Failures, AttemptEventPolicy::None] {
        let fixture = StoreFixture::new(harness, registration_with_observe_policy(observe)).await;
        fixture.add_order(new_order("/x/y,1")).await;
        let since = fixture.read_journal_head().await;
        fixture.run_all_ready_tasks().await;
        let want = [
            "OrderStarted nodeId:a,taskId:step_a",
            "OrderStepStarted nodeId:a,taskId:step_a",
            "OrderStepEnded Success",
            "OrderNodeChanged fromNodeId:a,nodeId:done",
            "OrderFinished nodeId:done",
        ];
        assert_eq!(fixture.summarize_order_events_after("/x/y,1", since).await, want, "{observe:?}");
    }
}

pub async fn published_task_events_follow_a_changed_observe_policy(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, registration_with_observe_policy(AttemptEventPolicy::None)).await;
    fixture.emit_copies(2, new_event("record")).await;
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.register(registration_with_observe_policy(AttemptEventPolicy::All)).await;
    let fixture = fixture.reopen().await;
    fixture.succeed(&fixture.claim_one().await).await;
    assert_eq!(
        read_task_event_summaries(&fixture).await,
        [TASK_STARTED_SUMMARY, TASK_SUCCEEDED_SUMMARY, TASK_CLOSED_SUMMARY]
    );
}

/// A result with a stale fence does not end an attempt.
pub async fn finishing_with_a_stale_fence_publishes_nothing(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, registration_with_observe_policy(AttemptEventPolicy::All)).await;
    fixture.emit(new_event("record")).await;
    let task = fixture.claim_one().await;
    fixture.succeed(&task).await;
    let since = fixture.read_journal_head().await;
    assert!(fixture.finish_attempt(finished_attempt(&task, failure_with_code_7(false))).await.is_err());
    assert_eq!(fixture.read_journal_head().await, since);
}
