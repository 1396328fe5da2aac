//! Which attempts the journal tells of: all of a handler's, those that fail, or none.
//!
//! An attempt that begins is TaskStarted, one that ends is TaskEnded with what it returned, and a task that will not be
//! run again is TaskClosed. Where only failures are told of, nobody knows at the start which attempt will be one.

use pointsman_core::handler::Observe;
use pointsman_core::journal::Filter;
use pointsman_core::store::{Claimed, Ended};

use crate::Harness;
use crate::fixture::*;

const STARTED: &str = "TaskStarted";
const DONE: &str = "TaskEnded returnCode:0";
const FAILED: &str = "TaskEnded returnCode:7";
const CLOSED: &str = "TaskClosed";

fn plan(observe: Observe) -> RegistrationBuilder {
    RegistrationBuilder::single_handler()
        .collection("shop/orders", 100)
        .chain("/x/y", "a=step>done done")
        .observe_attempts("index", observe)
        .observe_attempts("shop", observe)
        .observe_attempts("step", observe)
}

fn broken(last: bool) -> Ended {
    Ended::Failed { error: "it broke".into(), code: 7, after: None, last }
}

/// What the journal says of tasks, in words.
async fn told(world: &StoreFixture<'_>) -> Vec<String> {
    let filter = Filter { kinds: vec![handling_key("TaskEvent")], ..Filter::default() };
    let events = world.read_events_after(world.journal_extent().await.forgotten, &filter).await;
    events.iter().map(|event| summarize_event(event)).collect()
}

/// Makes a task of each kind in turn and plays the same story with it; asserts what is told each time.
async fn each_kind(
    harness: &dyn Harness,
    observe: Observe,
    want: &[&str],
    story: impl AsyncFn(&mut StoreFixture<'_>, Claimed),
) {
    for what in ["event", "run", "step"] {
        let mut world = StoreFixture::new(harness, plan(observe)).await;
        match what {
            "event" => drop(world.emit(new_event("record").with_key("k")).await),
            "run" => drop(world.request_new_run("shop/orders").await),
            _ => drop(world.add_order(new_order("/x/y,1")).await),
        }
        let task = world.claim_one().await;
        story(&mut world, task).await;
        assert_eq!(told(&world).await, want, "{what}, {observe:?}");
    }
}

pub async fn a_success_is_published_if_all_attempts_are_observed(harness: &dyn Harness) {
    for (observe, want) in
        [(Observe::All, &[STARTED, DONE, CLOSED][..]), (Observe::Failures, &[][..]), (Observe::None, &[][..])]
    {
        each_kind(harness, observe, want, async |world, task| drop(world.succeed(&task).await)).await;
    }
}

pub async fn a_failure_is_published_with_its_return_code(harness: &dyn Harness) {
    for (observe, want) in [
        (Observe::All, &[STARTED, FAILED, STARTED, FAILED, CLOSED][..]),
        (Observe::Failures, &[FAILED, FAILED, CLOSED][..]),
        (Observe::None, &[][..]),
    ] {
        each_kind(harness, observe, want, async |world, task| {
            world.finish_as(&task, broken(false)).await;
            world.advance_clock(RETRY_DELAY_SECS);
            world.finish_as(&world.claim_one().await, broken(true)).await;
        })
        .await;
    }
}

pub async fn a_failure_that_is_retried_successfully_is_published(harness: &dyn Harness) {
    for (observe, want) in
        [(Observe::All, &[STARTED, FAILED, STARTED, DONE, CLOSED][..]), (Observe::Failures, &[FAILED][..])]
    {
        each_kind(harness, observe, want, async |world, task| {
            world.finish_as(&task, broken(false)).await;
            world.advance_clock(RETRY_DELAY_SECS);
            world.succeed(&world.claim_one().await).await;
        })
        .await;
    }
}

/// What is snoozed or given back has not failed.
pub async fn snoozed_and_released_attempts_are_not_published_as_failures(harness: &dyn Harness) {
    for (observe, want) in [(Observe::All, &[STARTED, DONE, STARTED, DONE][..]), (Observe::Failures, &[][..])]
    {
        each_kind(harness, observe, want, async |world, task| {
            world.release_task(&task).await;
            world.snooze(&world.claim_one().await, 60).await;
        })
        .await;
    }
}

pub async fn a_crash_is_published_as_a_failure(harness: &dyn Harness) {
    for observe in [Observe::All, Observe::Failures] {
        let mut world = StoreFixture::new(harness, plan(observe)).await;
        world.emit(new_event("record")).await;
        world.claim_one().await;
        world.advance_clock(LEASE_SECS + 1);
        world.rescue_tasks().await;
        let told = told(&world).await;
        let last = told.last().expect("something is told");
        assert!(last.starts_with("TaskEnded") && last != DONE, "{told:?}");
    }
}

pub async fn a_cancelled_attempt_is_published_if_all_attempts_are_observed(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(Observe::All)).await;
    world.emit(new_event("record")).await;
    let task = world.claim_one().await;
    world.cancel_task(&task.id).await.expect("it runs");
    let told = told(&world).await;
    assert_eq!((told.len(), told[0].as_str(), told[2].as_str()), (3, STARTED, CLOSED), "{told:?}");
}

/// A start that is told late would be no start.
pub async fn an_attempt_start_is_published_when_claimed(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(Observe::All)).await;
    world.emit(new_event("record")).await;
    world.claim_one().await;
    assert_eq!(told(&world).await, [STARTED]);
    let emission = emission([new_event("record")]);
    expect_ok(world.store.append(vec![emission], Some(world.claim_request(5)), world.now).await);
    assert_eq!(told(&world).await, [STARTED; 2], "also of one that is born running");
}

pub async fn task_events_name_the_task_and_its_handler(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(Observe::All)).await;
    let since = world.emit(new_event("record")).await.id;
    world.succeed(&world.claim_one().await).await;
    let key = r#""key":{"jobPath":"/index","taskId":"index_record"}"#;
    let want = [
        format!(r#"{{{key},"TYPE":"TaskStarted"}}"#),
        format!(r#"{{{key},"TYPE":"TaskEnded","returnCode":0}}"#),
        format!(r#"{{{key},"TYPE":"TaskClosed"}}"#),
    ];
    assert_eq!(world.engine_event_json_after(since).await, want);
}

/// Steps are told of as orders and as tasks; the one does not depend on the other.
pub async fn order_events_are_published_whatever_the_handlers_observe(harness: &dyn Harness) {
    for observe in [Observe::All, Observe::Failures, Observe::None] {
        let world = StoreFixture::new(harness, plan(observe)).await;
        world.add_order(new_order("/x/y,1")).await;
        let since = world.journal_head().await;
        world.run_all_ready().await;
        let want = [
            "OrderStarted nodeId:a,taskId:step_a",
            "OrderStepStarted nodeId:a,taskId:step_a",
            "OrderStepEnded Success",
            "OrderNodeChanged fromNodeId:a,nodeId:done",
            "OrderFinished nodeId:done",
        ];
        assert_eq!(world.order_event_summaries_after("/x/y,1", since).await, want, "{observe:?}");
    }
}

pub async fn published_task_events_follow_the_registration(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan(Observe::None)).await;
    world.emit_many(2, new_event("record")).await;
    world.succeed(&world.claim_one().await).await;
    world.register(plan(Observe::All)).await;
    let world = world.reopen().await;
    world.succeed(&world.claim_one().await).await;
    assert_eq!(told(&world).await, [STARTED, DONE, CLOSED]);
}

/// A stale end is none.
pub async fn a_stale_ending_is_not_published(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(Observe::All)).await;
    world.emit(new_event("record")).await;
    let task = world.claim_one().await;
    world.succeed(&task).await;
    let since = world.journal_head().await;
    assert!(world.finish_attempt(attempt_ending(&task, broken(false))).await.is_err());
    assert_eq!(world.journal_head().await, since);
}
