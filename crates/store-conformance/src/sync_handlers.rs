//! An event's synchronous tasks run in route order, before its queued ones.

use pointsman_core::store::{AttemptResult, ClaimedTask, EmittedEventReceipt};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("record", &["check!", "enrich!", "index", "notify"])
}

fn sorted_handler_names(tasks: &[ClaimedTask]) -> Vec<String> {
    let mut names: Vec<_> = tasks.iter().map(|task| task.handler.to_string()).collect();
    names.sort();
    names
}

async fn fixture_with_one_event(harness: &dyn Harness) -> (StoreFixture<'_>, EmittedEventReceipt) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let sequenced = fixture.emit(new_event("record")).await;
    (fixture, sequenced)
}

pub async fn synchronous_tasks_run_in_route_order_before_queued_ones(harness: &dyn Harness) {
    let (fixture, _) = fixture_with_one_event(harness).await;
    for name in ["check", "enrich"] {
        let claimed = fixture.claim(10).await;
        assert_eq!(sorted_handler_names(&claimed), [name]);
        assert!(fixture.claim(10).await.is_empty(), "one at a time");
        fixture.succeed(&claimed[0]).await;
    }
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["index", "notify"], "side by side");
}

/// Once the first attempt of a synchronous task has succeeded, failed or snoozed, the next tasks of the event run, even
/// if the synchronous task runs again later.
pub async fn a_success_failure_or_snooze_opens_the_sync_gate(harness: &dyn Harness) {
    for result in [
        success(),
        retryable_failure(),
        permanent_failure(),
        AttemptResult::Snoozed { until: START_TIME.plus(secs(300)) },
        AttemptResult::Failed {
            error: "busy".into(),
            return_code: 1,
            retry_at: Some(START_TIME.plus(secs(300))),
            permanent: false,
        },
    ] {
        let (fixture, sequenced) = fixture_with_one_event(harness).await;
        for name in ["check", "enrich"] {
            let claimed = fixture.claim(10).await;
            assert_eq!(sorted_handler_names(&claimed), [name], "{result:?}");
            fixture.finish_with_result(&claimed[0], result.clone()).await;
        }
        assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["index", "notify"], "{result:?}");
        let first = fixture.read_task(&sequenced.tasks[0]).await;
        assert_eq!(first.attempts.len(), 1, "{result:?}");
    }
}

pub async fn a_released_attempt_does_not_open_the_sync_gate(harness: &dyn Harness) {
    let (fixture, _) = fixture_with_one_event(harness).await;
    let first = fixture.claim_one().await;
    fixture.release_task(&first).await;
    let again = fixture.claim(10).await;
    assert_eq!(sorted_handler_names(&again), ["check"], "the same again, and nothing else");
    fixture.succeed(&again[0]).await;
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["enrich"]);
}

pub async fn a_failed_synchronous_task_is_retried_while_later_tasks_run(harness: &dyn Harness) {
    let (mut fixture, _) = fixture_with_one_event(harness).await;
    fixture.fail(&fixture.claim_one().await).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    let claimed = fixture.claim(10).await;
    assert_eq!(sorted_handler_names(&claimed), ["check", "enrich"]);
    assert_eq!(
        claimed.iter().find(|task| task.handler == handler_name("check")).map(|task| task.attempt),
        Some(2)
    );
}

pub async fn cancelling_a_synchronous_task_opens_the_sync_gate(harness: &dyn Harness) {
    let (fixture, sequenced) = fixture_with_one_event(harness).await;
    fixture.cancel_task(&sequenced.tasks[1]).await.expect("it waits");
    fixture.cancel_task(&sequenced.tasks[0]).await.expect("it is ready");
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["index", "notify"]);
}

/// Removing the second synchronous task does not let later tasks run before the first.
pub async fn cancelling_the_second_synchronous_task_does_not_bypass_the_first(harness: &dyn Harness) {
    let (fixture, sequenced) = fixture_with_one_event(harness).await;
    let first = fixture.claim_one().await;
    fixture.cancel_task(&sequenced.tasks[1]).await.expect("it waits");
    assert!(fixture.claim(10).await.is_empty());
    fixture.succeed(&first).await;
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["index", "notify"]);
}

pub async fn undefining_a_synchronous_handler_opens_the_sync_gate(harness: &dyn Harness) {
    let (mut fixture, _) = fixture_with_one_event(harness).await;
    assert_eq!(fixture.undefine_handler_and_rescue("check").await, 1);
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["enrich"]);
}

pub async fn a_crashed_synchronous_task_opens_the_sync_gate(harness: &dyn Harness) {
    let (mut fixture, _) = fixture_with_one_event(harness).await;
    fixture.claim_one().await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.rescue_tasks().await;
    fixture.node_id = expect_ok(fixture.store.join_node("another", fixture.now).await);
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["check", "enrich"]);
}

/// When the first synchronous task ends a second time, the tasks after the second synchronous task still wait for it.
pub async fn a_synchronous_task_opens_the_sync_gate_only_once(harness: &dyn Harness) {
    for how in ["cancel", "lose", "fail again", "crash"] {
        let (mut fixture, sequenced) = fixture_with_one_event(harness).await;
        fixture.fail(&fixture.claim_one().await).await;
        match how {
            "cancel" => fixture.cancel_task(&sequenced.tasks[0]).await.expect("it waits to be retried"),
            "lose" => assert_eq!(fixture.undefine_handler_and_rescue("check").await, 1),
            _ => {
                fixture.advance_clock(RETRY_DELAY_SECS);
                let again = fixture.claim_one_for_handler("check").await;
                if how == "crash" {
                    fixture.advance_clock(LEASE_SECS + 1);
                    fixture.rescue_tasks().await;
                    fixture.node_id = expect_ok(fixture.store.join_node("another", fixture.now).await);
                } else {
                    fixture.fail(&again).await;
                }
            }
        }
        let next = fixture.claim_for_handlers(&["enrich", "index", "notify"], 10).await;
        assert_eq!(sorted_handler_names(&next), ["enrich"], "{how}");
        fixture.succeed(&next[0]).await;
        assert_eq!(
            sorted_handler_names(&fixture.claim_for_handlers(&["index", "notify"], 10).await),
            ["index", "notify"],
            "{how}"
        );
    }
}

/// A task that runs out of order does not follow its lane, but still follows the order of its event's tasks.
pub async fn an_out_of_order_task_waits_at_the_sync_gate(harness: &dyn Harness) {
    let (mut fixture, sequenced) = fixture_with_one_event(harness).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.register(base_registration()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 1);
    fixture.cancel_task(&sequenced.tasks[3]).await.expect("it waits");
    fixture.retry_task(&sequenced.tasks[3]).await.expect("it was cancelled");
    for name in ["check", "enrich"] {
        let claimed = fixture.claim(10).await;
        assert_eq!(sorted_handler_names(&claimed), [name]);
        fixture.succeed(&claimed[0]).await;
    }
    let retried = fixture.claim(10).await;
    assert_eq!(sorted_handler_names(&retried), ["index", "notify"]);
    assert!(retried.iter().all(|task| task.out_of_order));
}

/// A synchronous task that is cancelled before it has run and is then retried runs out of order, and no task of its
/// event waits for it.
pub async fn a_retried_synchronous_task_does_not_hold_back_later_tasks(harness: &dyn Harness) {
    let (fixture, sequenced) = fixture_with_one_event(harness).await;
    fixture.cancel_task(&sequenced.tasks[1]).await.expect("it waits");
    fixture.retry_task(&sequenced.tasks[1]).await.expect("it was cancelled");
    let first = fixture.claim(10).await;
    assert_eq!(sorted_handler_names(&first), ["check"]);
    fixture.succeed(&first[0]).await;
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["enrich", "index", "notify"]);
}

/// Two events of one object: the gate belongs to the event, the lane to the handler.
pub async fn sync_gates_and_lanes_both_apply(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["check!", "index"]))
            .await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let first = fixture.claim(10).await;
    assert_eq!(
        (sorted_handler_names(&first), event_ids_of_tasks(&first)),
        (vec!["check".into()], vec![events[0].id])
    );
    fixture.succeed(&first[0]).await;
    let next = fixture.claim(10).await;
    assert_eq!(sorted_handler_names(&next), ["check", "index"]);
    let check = next.iter().find(|task| task.handler == handler_name("check")).expect("claimed");
    assert_eq!(check.event().id, events[1].id);
    fixture.succeed(check).await;
    assert!(fixture.claim(10).await.is_empty(), "the second event's index waits for the first's");
    fixture.succeed(next.iter().find(|task| task.handler == handler_name("index")).expect("claimed")).await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [events[1].id]);
}

pub async fn a_sync_gate_does_not_block_other_events(harness: &dyn Harness) {
    let registration = base_registration().route("note", &["index"]);
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let note = fixture.emit(new_event("note").with_key("b")).await;
    assert_eq!(event_ids_of_tasks(&fixture.claim_for_handlers(&["index"], 10).await), [note.id]);
}

pub async fn sync_gate_state_survives_a_restart(harness: &dyn Harness) {
    let (fixture, _) = fixture_with_one_event(harness).await;
    fixture.succeed(&fixture.claim_one().await).await;
    let fixture = fixture.reopen().await;
    let claimed = fixture.claim(10).await;
    assert_eq!(sorted_handler_names(&claimed), ["enrich"]);
    fixture.succeed(&claimed[0]).await;
    let fixture = fixture.reopen().await;
    assert_eq!(sorted_handler_names(&fixture.claim(10).await), ["index", "notify"]);
}
