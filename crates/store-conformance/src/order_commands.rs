//! Operator commands to an order: suspend, resume, remove, change.

use pointsman_core::TaskStatus;
use pointsman_core::store::{OrderCommand, OrderError, TaskFilter};
use pointsman_core::task::ErrorReason;

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

const ORDER_KEY: &str = "/x/y,1";

/// A fixture with one order that waits at its first node.
async fn fixture_with_waiting_order(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order(ORDER_KEY).with_value("1")).await;
    fixture
}

fn step_running_refusal() -> Result<(), OrderError> {
    Err(OrderError::StepRunning(order_key(ORDER_KEY)))
}

pub async fn a_suspended_order_does_not_run(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.suspend_order(ORDER_KEY).await;
    assert_eq!(fixture.summarize_engine_events_after(since).await, ["OrderSuspended"]);
    let view = fixture.read_order(ORDER_KEY).await;
    assert!(view.order.suspended);
    assert_eq!((view.task, view.order.task_seq), (None, None), "it has no task that waits");
    fixture.assert_nothing_claimable("it is suspended").await;
    fixture.suspend_order(ORDER_KEY).await;
    assert_eq!(
        fixture.summarize_engine_events_after(since).await.len(),
        1,
        "suspending twice publishes one event"
    );
    let fixture = fixture.reopen().await;
    fixture.assert_nothing_claimable("after a restart, too").await;
    let since = fixture.read_journal_head().await;
    fixture.resume_order(ORDER_KEY).await;
    assert_eq!(fixture.summarize_engine_events_after(since).await, ["OrderResumed"]);
    fixture.resume_order(ORDER_KEY).await;
    assert_eq!(fixture.summarize_engine_events_after(since).await.len(), 1, "it is not suspended any more");
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 a"]);
}

/// Suspending or moving an order removes its waiting step. A step with an attempt stays in the history as cancelled; a
/// step that never started is deleted.
pub async fn a_waiting_step_is_deleted_if_it_never_started_and_cancelled_if_it_had(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().step_retry_policy("/x/y", "a", 2, 5)).await;
    fixture.add_order(new_order(ORDER_KEY)).await;
    let never_started = fixture.read_order_task_id(ORDER_KEY).await;
    fixture.suspend_order(ORDER_KEY).await;
    assert!(expect_ok(fixture.store.read_task(&never_started).await).is_none());
    assert_eq!(fixture.read_queue_of_subject("first", step_queue_subject("/x/y", "a")).await.ready_count, 0);
    fixture.resume_order(ORDER_KEY).await;
    let task = fixture.claim_one().await;
    assert_ne!(task.id, never_started, "no task id is used twice");
    fixture.fail(&task).await;
    fixture.send_order_command(ORDER_KEY, move_order_command("b")).await.expect("no step is running");
    assert_eq!(fixture.read_task(&task.id).await.lifecycle.state.error_reason(), Some(ErrorReason::Canceled));
}

pub async fn a_prefetched_step_of_a_suspended_order_does_not_start(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    assert_eq!(fixture.schedule_tasks(5).await, 1);
    fixture.suspend_order(ORDER_KEY).await;
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.schedule_tasks(5).await, 0);
}

pub async fn a_running_step_of_a_suspended_order_can_finish(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    fixture.suspend_order(ORDER_KEY).await;
    assert_eq!(fixture.summarize_engine_events_after(since).await, ["OrderSuspended"]);
    let view = fixture.read_order(ORDER_KEY).await;
    assert!(view.order.suspended && view.order.step_running);
    assert_eq!(view.task.map(|(id, status, _)| (id, status)), Some((task.id.clone(), TaskStatus::Locked)));
    let since = fixture.read_journal_head().await;
    fixture.succeed(&task).await;
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderStepEnded Success", "OrderNodeChanged fromNodeId:a,nodeId:b"]
    );
    fixture.assert_nothing_claimable("it is suspended at the next node").await;
    fixture.resume_order(ORDER_KEY).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"]);
}

/// Resumed before its step finishes, the order continues as if it had not been suspended.
pub async fn an_order_can_be_resumed_while_its_step_runs(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.suspend_order(ORDER_KEY).await;
    fixture.resume_order(ORDER_KEY).await;
    fixture.assert_nothing_claimable("its step still runs").await;
    fixture.succeed(&task).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"]);
}

pub async fn a_suspended_order_does_not_finish(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order(ORDER_KEY).starting_at_chain_node("b")).await;
    let task = fixture.claim_one().await;
    fixture.suspend_order(ORDER_KEY).await;
    fixture.succeed(&task).await;
    assert_eq!(fixture.read_order(ORDER_KEY).await.order.node, chain_node_id("done"));
    let since = fixture.read_journal_head().await;
    fixture.resume_order(ORDER_KEY).await;
    let want = ["OrderResumed", "OrderFinished nodeId:done", "FileBasedRemoved"];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
    assert!(fixture.find_order(ORDER_KEY).await.is_none());
}

pub async fn a_failed_step_of_a_suspended_order_is_not_retried(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.suspend_order(ORDER_KEY).await;
    let since = fixture.read_journal_head().await;
    fixture.fail(&task).await;
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderStepEnded Keep", "OrderSetBack nodeId:a"]
    );
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.assert_nothing_claimable("it is suspended").await;
    let view = fixture.read_order(ORDER_KEY).await;
    assert_eq!((view.task, view.retry_at), (None, None));
    fixture.resume_order(ORDER_KEY).await;
    let again = fixture.claim_one().await;
    assert_eq!((again.attempt, again.step_run().node.as_str()), (1, "a"));
}

/// Suspending and resuming an order does not change its planned time.
pub async fn a_resumed_order_keeps_its_planned_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order(ORDER_KEY).planned_at(fixture.seconds_from_now(60))).await;
    fixture.suspend_order(ORDER_KEY).await;
    fixture.resume_order(ORDER_KEY).await;
    fixture.assert_nothing_claimable("its planned time has not come").await;
    fixture.advance_clock(60);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn a_removed_order_is_deleted_with_its_step(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.read_order_task_id(ORDER_KEY).await;
    let since = fixture.read_journal_head().await;
    fixture.remove_order(ORDER_KEY).await;
    assert_eq!(
        fixture.read_engine_event_json_after(since).await,
        [r#"{"key":"Order:/x/y,1","TYPE":"FileBasedRemoved"}"#]
    );
    assert!(fixture.find_order(ORDER_KEY).await.is_none() && fixture.list_orders("/").await.is_empty());
    fixture.assert_nothing_claimable("it is gone").await;
    assert!(
        expect_ok(fixture.store.read_task(&task).await).is_none(),
        "and so is its step, which never started"
    );
    assert_eq!(fixture.read_order_statistics("/").await.total, 0);
}

pub async fn a_suspended_order_can_be_removed(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    fixture.suspend_order(ORDER_KEY).await;
    fixture.remove_order(ORDER_KEY).await;
    assert!(fixture.find_order(ORDER_KEY).await.is_none());
}

pub async fn a_running_order_cannot_be_removed_or_changed(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    let (before, since) = (fixture.read_order(ORDER_KEY).await, fixture.read_journal_head().await);
    for command in [
        OrderCommand::Remove,
        change_value_command("9"),
        move_order_command("b"),
        reschedule_order_command(fixture.seconds_from_now(60)),
    ] {
        assert_eq!(fixture.send_order_command(ORDER_KEY, command).await, step_running_refusal());
    }
    assert_eq!((fixture.read_order(ORDER_KEY).await, fixture.read_journal_head().await), (before, since));
    fixture.suspend_order(ORDER_KEY).await;
    assert_eq!(
        fixture.send_order_command(ORDER_KEY, OrderCommand::Remove).await,
        step_running_refusal(),
        "its step still runs"
    );
    fixture.succeed(&task).await;
    fixture.remove_order(ORDER_KEY).await;
}

pub async fn an_order_value_can_be_changed(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.read_order_task_id(ORDER_KEY).await;
    fixture.send_order_command(ORDER_KEY, change_value_command("[2]")).await.expect("no step is running");
    assert_eq!(fixture.read_order(ORDER_KEY).await.order.value.as_str(), "[2]");
    assert_eq!(fixture.read_order_task_id(ORDER_KEY).await, task, "the waiting step is the same task");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.claim_one().await.step_run().value.as_str(), "[2]");
}

pub async fn an_order_can_be_moved_to_another_chain_node(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.send_order_command(ORDER_KEY, move_order_command("b")).await.expect("no step is running");
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderNodeChanged fromNodeId:a,nodeId:b"]
    );
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"], "the step at the old node is gone");
    fixture.add_order(new_order("/x/y,2")).await;
    let since = fixture.read_journal_head().await;
    fixture.send_order_command("/x/y,2", move_order_command("done")).await.expect("no step is running");
    let want = ["OrderNodeChanged fromNodeId:a,nodeId:done", "OrderFinished nodeId:done", "FileBasedRemoved"];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
}

pub async fn a_suspended_order_is_moved_and_stays_suspended(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    fixture.suspend_order(ORDER_KEY).await;
    for (node, value) in [("done", "2"), ("b", "3")] {
        let change = OrderCommand::Change {
            value: Some(parse_json(value)),
            node: Some(chain_node_id(node)),
            planned_at: None,
        };
        fixture.send_order_command(ORDER_KEY, change).await.expect("no step is running");
        let view = fixture.read_order(ORDER_KEY).await;
        assert_eq!((view.order.suspended, view.order.node.as_str()), (true, node));
        fixture.assert_nothing_claimable("it is suspended").await;
    }
    fixture.resume_order(ORDER_KEY).await;
    let task = fixture.claim_one().await;
    assert_eq!((task.step_run().node.as_str(), task.step_run().value.as_str()), ("b", "3"));
}

pub async fn an_order_can_be_rescheduled(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let later = fixture.seconds_from_now(60);
    fixture.send_order_command(ORDER_KEY, reschedule_order_command(later)).await.expect("no step is running");
    assert_eq!(fixture.read_order(ORDER_KEY).await.order.planned_at, Some(later));
    fixture.assert_nothing_claimable("it is planned for later").await;
    assert_eq!(fixture.read_order_statistics("/").await.planned, 1);
    let sooner = fixture.seconds_from_now(30);
    fixture
        .send_order_command(ORDER_KEY, reschedule_order_command(sooner))
        .await
        .expect("no step is running");
    fixture.advance_clock(30);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn an_empty_order_change_changes_nothing(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let (before, since) = (fixture.read_order(ORDER_KEY).await, fixture.read_journal_head().await);
    fixture.send_order_command(ORDER_KEY, EMPTY_ORDER_CHANGE).await.expect("no step is running");
    assert_eq!((fixture.read_order(ORDER_KEY).await, fixture.read_journal_head().await), (before, since));
}

pub async fn commands_to_unknown_orders_and_chain_nodes_are_refused(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let since = fixture.read_journal_head().await;
    for key in ["/x/y,2", "/x/z,1"] {
        for command in
            [OrderCommand::Suspend, OrderCommand::Resume, OrderCommand::Remove, change_value_command("1")]
        {
            let refused = Err(OrderError::NoSuchOrder(order_key(key)));
            assert_eq!(fixture.send_order_command(key, command).await, refused);
        }
    }
    let nowhere = Err(OrderError::NoSuchNode(chain_path("/x/y"), chain_node_id("nowhere")));
    assert_eq!(fixture.send_order_command(ORDER_KEY, move_order_command("nowhere")).await, nowhere);
    let partly_invalid = OrderCommand::Change {
        value: Some(parse_json("9")),
        node: Some(chain_node_id("nowhere")),
        planned_at: None,
    };
    assert_eq!(fixture.send_order_command(ORDER_KEY, partly_invalid).await, nowhere);
    assert_eq!(
        fixture.read_order(ORDER_KEY).await.order.value.as_str(),
        "1",
        "a change is applied completely or not at all"
    );
    assert_eq!(fixture.read_journal_head().await, since);
}

pub async fn cancelling_a_waiting_step_suspends_its_order(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let since = fixture.read_journal_head().await;
    assert_eq!(fixture.cancel_task(&fixture.read_order_task_id(ORDER_KEY).await).await, Ok(()));
    assert_eq!(fixture.summarize_order_events_after(ORDER_KEY, since).await, ["OrderSuspended"]);
    let view = fixture.read_order(ORDER_KEY).await;
    assert_eq!((view.order.suspended, view.task), (true, None));
    fixture.resume_order(ORDER_KEY).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn cancelling_a_running_step_suspends_its_order(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    assert_eq!(fixture.cancel_task(&task.id).await, Ok(()));
    assert_eq!(
        fixture.summarize_order_events_after(ORDER_KEY, since).await,
        ["OrderStepEnded Error,returnCode:1", "OrderSuspended"]
    );
    assert!(!fixture.read_order(ORDER_KEY).await.order.step_running);
    let before = fixture.read_order(ORDER_KEY).await;
    assert!(
        fixture.finish_attempt(finished_attempt(&task, success())).await.is_err(),
        "the attempt is fenced off"
    );
    assert_eq!(fixture.read_order(ORDER_KEY).await, before);
    fixture.resume_order(ORDER_KEY).await;
    fixture.succeed(&fixture.claim_one().await).await;
    assert_eq!(fixture.read_order(ORDER_KEY).await.order.node, chain_node_id("b"));
}

/// No sequence of commands creates a second unfinished task.
pub async fn an_order_has_at_most_one_unfinished_task(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    for _ in 0..3 {
        fixture.suspend_order(ORDER_KEY).await;
        fixture.resume_order(ORDER_KEY).await;
        fixture.send_order_command(ORDER_KEY, move_order_command("b")).await.expect("no step is running");
        fixture.send_order_command(ORDER_KEY, move_order_command("a")).await.expect("no step is running");
        fixture.send_order_command(ORDER_KEY, change_value_command("2")).await.expect("no step is running");
    }
    let unfinished =
        TaskFilter { statuses: vec![TaskStatus::New, TaskStatus::Scheduled], ..TaskFilter::default() };
    assert_eq!(fixture.list_tasks(&unfinished).await.len(), 1);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn a_suspended_order_whose_step_fails_follows_on_error(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order(ORDER_KEY).starting_at_chain_node("b")).await;
    let task = fixture.claim_one().await;
    fixture.suspend_order(ORDER_KEY).await;
    let since = fixture.read_journal_head().await;
    fixture.fail_permanently(&task).await;
    let want = ["OrderStepEnded Error,returnCode:1", "OrderNodeChanged fromNodeId:b,nodeId:failed"];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want, "and the order waits there");
    assert!(fixture.read_order(ORDER_KEY).await.order.suspended);
}

/// Without an event, two different snapshots would have the same journal position.
pub async fn a_change_of_an_order_is_published(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    for change in [change_value_command("[7]"), reschedule_order_command(fixture.seconds_from_now(60))] {
        let since = fixture.read_journal_head().await;
        fixture.send_order_command(ORDER_KEY, change).await.expect("no step is running");
        assert_eq!(fixture.summarize_engine_events_after(since).await, ["FileBasedReplaced"]);
    }
    let since = fixture.read_journal_head().await;
    fixture.send_order_command(ORDER_KEY, change_value_command("[7]")).await.expect("no step is running");
    assert!(
        fixture.summarize_engine_events_after(since).await.is_empty(),
        "setting the same value is no change"
    );
}

/// An event creates an order with the event's id, so a client must not take such an id before.
pub async fn order_ids_that_look_like_event_ids_are_refused(harness: &dyn Harness) {
    let fixture = fixture_with_waiting_order(harness).await;
    for (id, refused) in [("1700000120000000", true), ("1234567890123", true), ("123456789012", false)] {
        let answer = fixture.try_add_order(new_order(&format!("/x/y,{id}"))).await;
        assert_eq!(matches!(answer, Err(OrderError::ReservedId(_))), refused, "{id}");
    }
}
