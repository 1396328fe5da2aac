//! A failed step is retried, or the order follows `on_error`, or it is suspended.

use pointsman_core::TaskStatus;
use pointsman_core::store::{AttemptResult, ClaimedTask};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

fn failure_with_code(code: i64) -> AttemptResult {
    AttemptResult::Failed { error: "it broke".into(), return_code: code, retry_at: None, permanent: false }
}

/// The summary of the event of an attempt after which the step will run again.
const STEP_WILL_RUN_AGAIN_SUMMARY: &str = "OrderStepEnded Keep";
/// The summary of the event of a suspended order.
const ORDER_SUSPENDED_SUMMARY: &str = "OrderSuspended";

/// Fails the step until it is not retried; returns the number of attempts.
async fn fail_until_not_retried(fixture: &mut StoreFixture<'_>, seconds: u64) -> u32 {
    for runs in 1..100 {
        let task = fixture.claim_one().await;
        assert_eq!(task.attempt, runs);
        if fixture.finish_with_result(&task, failure_with_code(3)).await.status == TaskStatus::Error {
            return runs;
        }
        fixture.advance_clock(seconds);
    }
    panic!("the step is retried forever");
}

pub async fn a_failed_step_is_retried_after_its_delay(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 2, 30)).await;
    fixture.add_order(new_order("/x/y,1").with_value("1")).await;
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    let finished = fixture.finish_with_result(&task, failure_with_code(3)).await;
    assert_eq!(
        (finished.status, finished.next_attempt_due_at),
        (TaskStatus::New, Some(fixture.seconds_from_now(30)))
    );
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        [STEP_WILL_RUN_AGAIN_SUMMARY, "OrderSetBack nodeId:a"]
    );
    let view = fixture.read_order("/x/y,1").await;
    assert_eq!((view.retry_at, view.order.node.as_str()), (Some(fixture.seconds_from_now(30)), "a"));
    assert_eq!(view.task.map(|(id, ..)| id), Some(task.id.clone()), "the order keeps its task");
    assert!(!view.order.suspended && !view.order.step_running);
    fixture.advance_clock(29);
    fixture.assert_nothing_claimable("a second too early").await;
    let mut fixture = fixture.reopen().await;
    fixture.advance_clock(1);
    let again = fixture.claim_one().await;
    assert_eq!((&again.id, again.attempt, again.step_run().value.as_str()), (&task.id, 2, "1"));
    assert_eq!(fixture.read_order("/x/y,1").await.retry_at, None, "it is running");
    let since = fixture.read_journal_head().await;
    fixture.succeed(&again).await;
    assert_eq!(fixture.summarize_engine_events_after(since).await[0], "OrderStepEnded Success");
}

/// The start and the end of each attempt are published, and only the last end is an error.
pub async fn only_the_last_failure_of_a_step_is_published_as_error(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 1, 30)).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let since = fixture.read_journal_head().await;
    assert_eq!(fail_until_not_retried(&mut fixture, 30).await, 2);
    let want = [
        "OrderStarted nodeId:a,taskId:first_a",
        "OrderStepStarted nodeId:a,taskId:first_a",
        STEP_WILL_RUN_AGAIN_SUMMARY,
        "OrderSetBack nodeId:a",
        "OrderStepStarted nodeId:a,taskId:first_a",
        "OrderStepEnded Error,returnCode:3",
        ORDER_SUSPENDED_SUMMARY,
    ];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
}

pub async fn a_chain_nodes_retry_policy_replaces_the_handlers(harness: &dyn Harness) {
    for max in [0, 1, 5] {
        let mut fixture =
            StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", max, 1)).await;
        fixture.add_order(new_order("/x/y,1")).await;
        assert_eq!(fail_until_not_retried(&mut fixture, 1).await, max + 1);
    }
}

/// The policy applies only to steps at its chain node; events of the same handler follow the handler's retry policy.
pub async fn a_chain_nodes_retry_policy_applies_to_that_node_only(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["first"])
        .chain("/x/y", "a=first>b b=first>done done")
        .step_retry_policy("/x/y", "a", 0, 1);
    let mut fixture = StoreFixture::new(harness, registration).await;
    fixture.add_order(new_order("/x/y,1").starting_at_chain_node("b")).await;
    assert_eq!(fail_until_not_retried(&mut fixture, RETRY_DELAY_SECS).await, 3, "the other node");
    fixture.emit(new_event("record")).await;
    assert_eq!(fail_until_not_retried(&mut fixture, RETRY_DELAY_SECS).await, 3, "an event");
    fixture.add_order(new_order("/x/y,2")).await;
    assert_eq!(fail_until_not_retried(&mut fixture, RETRY_DELAY_SECS).await, 1);
}

pub async fn a_chain_nodes_retry_policy_changes_with_the_registration(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 0, 1)).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let task = fixture.claim_one().await;
    fixture.register(base_registration().step_retry_policy("/x/y", "a", 3, 50)).await;
    let finished = fixture.fail(&task).await;
    assert_eq!(
        (finished.status, finished.next_attempt_due_at),
        (TaskStatus::New, Some(fixture.seconds_from_now(50)))
    );
}

pub async fn without_a_chain_node_retry_policy_the_handlers_applies(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    assert_eq!(
        fixture.fail(&task).await.next_attempt_due_at,
        Some(fixture.seconds_from_now(RETRY_DELAY_SECS))
    );
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        [STEP_WILL_RUN_AGAIN_SUMMARY, "OrderSetBack nodeId:a"]
    );
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.fail(&fixture.claim_one().await).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(fixture.fail(&fixture.claim_one().await).await.status, TaskStatus::Error);
}

pub async fn a_handler_can_refuse_further_retries_of_a_step(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 5, 1)).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    assert_eq!(fixture.fail_permanently(&task).await.status, TaskStatus::Error);
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderStepEnded Error,returnCode:1", ORDER_SUSPENDED_SUMMARY]
    );
}

pub async fn a_failed_attempt_can_request_its_retry_time(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 5, 1)).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let retry_at = fixture.seconds_from_now(500);
    let result = AttemptResult::Failed {
        error: "busy".into(),
        return_code: 429,
        retry_at: Some(retry_at),
        permanent: false,
    };
    assert_eq!(
        fixture.finish_with_result(&fixture.claim_one().await, result).await.next_attempt_due_at,
        Some(retry_at)
    );
    assert_eq!(fixture.read_order("/x/y,1").await.retry_at, Some(retry_at));
}

pub async fn a_failed_order_without_on_error_is_suspended(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").with_value("1")).await;
    let task = fixture.claim_one().await;
    fixture.fail_permanently(&task).await;
    let view = fixture.read_order("/x/y,1").await;
    assert!(view.order.suspended && !view.order.step_running && !view.is_at_removed_node);
    assert_eq!((view.order.node.as_str(), view.task, view.retry_at), ("a", None, None));
    fixture.assert_nothing_claimable("it is suspended").await;
    let since = fixture.read_journal_head().await;
    fixture.resume_order("/x/y,1").await;
    assert_eq!(fixture.summarize_engine_events_after(since).await, ["OrderResumed"]);
    let again = fixture.claim_one().await;
    assert_ne!(again.id, task.id, "an ended step starts again as a new task");
    assert_eq!((again.attempt, again.step_run().value.as_str()), (1, "1"));
    fixture.succeed(&again).await;
    assert_eq!(fixture.read_order("/x/y,1").await.order.node, chain_node_id("b"));
}

pub async fn a_failed_order_with_on_error_follows_it(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, base_registration().chain("/x/z", "a=first>b!b b=second>done done")).await;
    fixture.add_order(new_order("/x/y,1").starting_at_chain_node("b")).await;
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    let result =
        AttemptResult::Failed { error: "no".into(), return_code: 42, retry_at: None, permanent: true };
    fixture.finish_with_result(&task, result).await;
    let want = [
        "OrderStepEnded Error,returnCode:42",
        "OrderNodeChanged fromNodeId:b,nodeId:failed",
        "OrderFinished nodeId:failed",
        "FileBasedRemoved",
    ];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
    assert!(fixture.find_order("/x/y,1").await.is_none());
    fixture.add_order(new_order("/x/z,1")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/z,1 b"], "on_error may lead to another step");
}

/// A halting handler does not block an order: it is suspended, and continues when it is resumed.
pub async fn a_halting_handler_does_not_block_other_orders(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().halt_on_error("first")).await;
    fixture.add_order(new_order("/x/y,1")).await;
    fixture.add_order(new_order("/x/y,2")).await;
    let failed = fixture.claim_one().await;
    fixture.fail_permanently(&failed).await;
    assert!(fixture.read_order(&failed.step_run().order_key.to_string()).await.order.suspended);
    assert_eq!(fixture.claim(10).await.len(), 1, "the other order continues");
    fixture.resume_order(&failed.step_run().order_key.to_string()).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

async fn assert_step_stays_at_its_node(
    fixture: &mut StoreFixture<'_>,
    how: &str,
    end: impl AsyncFn(&mut StoreFixture<'_>, &ClaimedTask),
) {
    let key = "/x/y,1";
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    end(fixture, &task).await;
    assert_eq!(
        fixture.summarize_order_events_after(key, since).await,
        [STEP_WILL_RUN_AGAIN_SUMMARY],
        "{how}"
    );
    let view = fixture.read_order(key).await;
    assert_eq!((view.retry_at, view.order.step_running, view.order.suspended), (None, false, false), "{how}");
    assert_eq!(view.task.map(|(id, status, _)| (id, status)), Some((task.id, TaskStatus::New)), "{how}");
}

/// A step that runs again without having failed stays at its chain node and uses no retry.
pub async fn released_snoozed_and_crashed_steps_stay_at_their_chain_node(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 0, 1)).await;
    fixture.add_order(new_order("/x/y,1")).await;
    assert_step_stays_at_its_node(&mut fixture, "released", async |fixture, task| {
        drop(fixture.release_task(task).await)
    })
    .await;
    assert_step_stays_at_its_node(&mut fixture, "its node died", async |fixture, _| {
        fixture.advance_clock(LEASE_SECS + 1);
        fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
        assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status.len(), 1);
    })
    .await;
    assert_step_stays_at_its_node(&mut fixture, "snoozed", async |fixture, task| {
        drop(fixture.snooze_task(task, 60).await)
    })
    .await;
    fixture.assert_nothing_claimable("it snoozes").await;
    fixture.advance_clock(60);
    let task = fixture.claim_one().await;
    assert_eq!((task.attempt, task.retries), (4, 0));
    fixture.succeed(&task).await;
    assert_eq!(fixture.read_order("/x/y,1").await.order.node, chain_node_id("b"));
}

pub async fn a_step_fails_after_three_crashes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let since = fixture.read_journal_head().await;
    for _ in 0..3 {
        fixture.claim_one().await;
        fixture.advance_clock(LEASE_SECS + 1);
        fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
        fixture.rescue_tasks().await;
    }
    let published = fixture.summarize_engine_events_after(since).await;
    let kept = published.iter().filter(|word| *word == STEP_WILL_RUN_AGAIN_SUMMARY).count();
    assert_eq!(kept, 2, "{published:?}");
    assert!(published[published.len() - 2].starts_with("OrderStepEnded Error"), "{published:?}");
    assert_eq!(published[published.len() - 1], ORDER_SUSPENDED_SUMMARY);
    assert!(fixture.read_order("/x/y,1").await.order.suspended);
}

/// A result with a stale fence changes neither the task nor the order, and is not published.
pub async fn finishing_with_a_stale_fence_changes_no_order(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").with_value("1")).await;
    let stale_attempt = fixture.claim_one().await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
    fixture.rescue_tasks().await;
    let task = fixture.claim_one().await;
    let (before, since) = (fixture.read_order("/x/y,1").await, fixture.read_journal_head().await);
    for result in [
        AttemptResult::Succeeded { result: Some(parse_json("9")) },
        retryable_failure(),
        permanent_failure(),
        AttemptResult::Released,
    ] {
        assert!(fixture.finish_attempt(finished_attempt(&stale_attempt, result)).await.is_err());
    }
    assert_eq!(fixture.read_order("/x/y,1").await, before);
    assert_eq!(fixture.read_journal_head().await, since, "nothing is published");
    fixture.succeed(&task).await;
    assert!(
        fixture.finish_attempt(finished_attempt(&task, success())).await.is_err(),
        "an attempt ends once"
    );
    let view = fixture.read_order("/x/y,1").await;
    assert_eq!((view.order.node.as_str(), view.order.value.as_str()), ("b", "1"));
}
