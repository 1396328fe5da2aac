//! Chains that change while they have orders: orders continue, or are stranded at a chain node that was removed.

use pointsman_core::TaskStatus;
use pointsman_core::chain::ChainNodeAction;
use pointsman_core::store::{OrderError, TaskFilter};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

/// The same chain without its node `a`.
fn registration_without_first_chain_node() -> RegistrationBuilder {
    base_registration().chain("/x/y", "b=second>done!failed done failed")
}

const ORDER_KEY: &str = "/x/y,1";

async fn fixture_with_waiting_order(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order(ORDER_KEY).with_value("1")).await;
    fixture
}

async fn count_unfinished_tasks(fixture: &StoreFixture<'_>) -> usize {
    let statuses = vec![TaskStatus::New, TaskStatus::Scheduled, TaskStatus::Locked, TaskStatus::Missing];
    fixture.list_tasks(&TaskFilter { statuses, ..TaskFilter::default() }).await.len()
}

pub async fn registering_an_unchanged_chain_does_not_change_its_orders(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let (before, since) = (fixture.read_order(ORDER_KEY).await, fixture.read_journal_head().await);
    fixture.register(base_registration()).await;
    assert_eq!((fixture.read_order(ORDER_KEY).await, fixture.read_journal_head().await), (before, since));
    assert_eq!(count_unfinished_tasks(&fixture).await, 1);
}

pub async fn an_order_at_a_removed_chain_node_is_stranded(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.register(registration_without_first_chain_node()).await;
    let view = fixture.read_order(ORDER_KEY).await;
    assert!(view.is_at_removed_node && !view.order.suspended, "the order is stranded");
    assert_eq!((view.order.node.as_str(), view.task), ("a", None));
    fixture.assert_nothing_claimable("its chain node was removed").await;
    assert_eq!(count_unfinished_tasks(&fixture).await, 0);
    let mut fixture = fixture.reopen().await;
    assert!(fixture.read_order(ORDER_KEY).await.is_at_removed_node, "after a restart, too");
    assert_eq!(
        fixture.list_chains().await[0].order_counts_by_node,
        [(chain_node_id("a"), 1)],
        "removed chain nodes are listed"
    );
    fixture.register(base_registration()).await;
    let view = fixture.read_order(ORDER_KEY).await;
    assert!(!view.is_at_removed_node && view.task.is_some());
    let task = fixture.claim_one().await;
    assert_eq!((task.step_run().node.as_str(), task.step_run().value.as_str()), ("a", "1"));
}

pub async fn a_stranded_order_can_be_moved(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.register(registration_without_first_chain_node()).await;
    let nowhere = Err(OrderError::NoSuchNode(chain_path("/x/y"), chain_node_id("a")));
    assert_eq!(fixture.send_order_command(ORDER_KEY, move_order_command("a")).await, nowhere);
    let since = fixture.read_journal_head().await;
    fixture.send_order_command(ORDER_KEY, move_order_command("b")).await.expect("no step is running");
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderNodeChanged fromNodeId:a,nodeId:b"]
    );
    assert!(!fixture.read_order(ORDER_KEY).await.is_at_removed_node);
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"]);
}

pub async fn a_stranded_order_can_be_suspended_and_removed(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.register(registration_without_first_chain_node()).await;
    fixture.suspend_order(ORDER_KEY).await;
    fixture.resume_order(ORDER_KEY).await;
    fixture.assert_nothing_claimable("its chain node was removed").await;
    fixture.remove_order(ORDER_KEY).await;
    fixture.register(base_registration()).await;
    fixture.assert_nothing_claimable("it is gone").await;
}

pub async fn a_running_step_can_finish_at_a_removed_chain_node(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.register(registration_without_first_chain_node()).await;
    let view = fixture.read_order(ORDER_KEY).await;
    assert!(view.is_at_removed_node && view.order.step_running, "the running step can finish");
    let since = fixture.read_journal_head().await;
    assert_eq!(fixture.succeed(&task).await.status, TaskStatus::Done);
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderStepEnded Success"],
        "and the order does not move"
    );
    fixture.assert_nothing_claimable("its chain node was removed").await;
    let mut fixture = fixture.reopen().await;
    fixture.register(base_registration()).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"], "the finished step does not run again");
}

/// The chain node was a step when its step started, and is an end when the step finishes.
pub async fn a_step_can_finish_at_a_chain_node_that_became_an_end(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.register(base_registration().chain("/x/y", "a b=second>a")).await;
    let since = fixture.read_journal_head().await;
    fixture.succeed(&task).await;
    let want = ["OrderStepEnded Success", "OrderFinished nodeId:a", "FileBasedRemoved"];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
    assert!(fixture.find_order(ORDER_KEY).await.is_none());
}

pub async fn a_failed_step_is_not_retried_at_a_removed_chain_node(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.register(registration_without_first_chain_node()).await;
    fixture.fail(&task).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.assert_nothing_claimable("its chain node was removed").await;
    let view = fixture.read_order(ORDER_KEY).await;
    assert_eq!((view.task, view.is_at_removed_node), (None, true));
    fixture.register(base_registration()).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

/// The chain node still exists while the step runs; its successor is looked up when the step finishes.
pub async fn a_finished_step_follows_the_current_chain_definition(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.register(base_registration().chain("/x/y", "a=first>c c=third>done done")).await;
    fixture.succeed(&task).await;
    let task = fixture.claim_one().await;
    assert_eq!((task.handler.as_str(), task.step_run().node.as_str()), ("third", "c"));
}

pub async fn orders_finish_when_their_chain_node_becomes_an_end(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.register(base_registration().chain("/x/y", "a b=second>a")).await;
    assert_eq!(fixture.summarize_order_events_after(ORDER_KEY, since).await, ["OrderFinished nodeId:a"]);
    assert!(fixture.find_order(ORDER_KEY).await.is_none());
    assert_eq!(count_unfinished_tasks(&fixture).await, 0);
}

pub async fn a_waiting_step_moves_to_the_new_handler_of_its_chain_node(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.register(base_registration().chain("/x/y", "a=other>b b=second>done done")).await;
    assert_eq!(
        fixture.summarize_order_events_after(ORDER_KEY, since).await,
        [""; 0],
        "the order has not moved"
    );
    assert_eq!(count_unfinished_tasks(&fixture).await, 1);
    let name = fixture.read_order_task_id(ORDER_KEY).await;
    assert_eq!(fixture.read_task(&name).await.handler, handler_name("other"));
    assert!(fixture.claim_for_handlers(&["first"], 10).await.is_empty());
    let task = fixture.claim_one().await;
    assert_eq!((&task.id, task.handler.as_str(), task.step_run().value.as_str()), (&name, "other", "1"));
    fixture.succeed(&task).await;
    assert_eq!(fixture.read_order(ORDER_KEY).await.order.node, chain_node_id("b"));
}

/// Checked with a step that is not due yet and with a prefetched step.
pub async fn a_step_moved_to_a_new_handler_keeps_its_due_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order(ORDER_KEY).planned_at(fixture.seconds_from_now(60))).await;
    fixture.add_order(new_order("/x/y,2")).await;
    fixture.schedule_tasks(5).await;
    fixture.register(base_registration().chain("/x/y", "a=other>b b=second>done done")).await;
    let task = fixture.claim_one().await;
    assert_eq!((&task.handler, &task.step_run().order_key), (&handler_name("other"), &order_key("/x/y,2")));
    fixture.assert_nothing_claimable("the other order is not due").await;
    fixture.advance_clock(60);
    assert_eq!(fixture.claim_one().await.handler, handler_name("other"));
}

pub async fn a_running_step_finishes_with_its_old_handler(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.register(base_registration().chain("/x/y", "a=other>b b=second>done done")).await;
    assert_eq!(fixture.succeed(&task).await.status, TaskStatus::Done);
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"]);
}

pub async fn removing_a_chain_strands_its_orders(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.add_order(new_order("/x/y,2").starting_at_chain_node("b")).await;
    let running = fixture.claim_for_handlers(&["second"], 10).await;
    fixture.register(base_registration().without_chain("/x/y")).await;
    let left = fixture.list_chains().await;
    assert!(left[0].chain.nodes.is_empty(), "only its orders are left of it");
    assert_eq!(left[0].order_counts_by_node, [(chain_node_id("a"), 1), (chain_node_id("b"), 1)]);
    let gone = Err(OrderError::NoSuchChain(chain_path("/x/y")));
    assert_eq!(fixture.try_add_order(new_order("/x/y,3")).await, gone.clone().map(|()| unreachable!()));
    let stranded: Vec<_> =
        fixture.list_orders("/x/y").await.iter().map(|view| view.is_at_removed_node).collect();
    assert_eq!(stranded, [true, true], "its orders still exist");
    fixture.assert_nothing_claimable("there is no such chain").await;
    fixture.succeed(&running[0]).await;
    assert_eq!(
        fixture.read_order("/x/y,2").await.order.node,
        chain_node_id("b"),
        "the order stays when its step finishes"
    );
    assert_eq!(fixture.send_order_command(ORDER_KEY, move_order_command("b")).await, gone);
    let mut fixture = fixture.reopen().await;
    assert_eq!(fixture.read_order_statistics("/").await.total, 2);
    fixture.register(base_registration()).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 a"]);
    assert!(fixture.find_order("/x/y,2").await.is_none(), "its step had finished, and now leads to the end");
}

pub async fn orders_of_a_removed_chain_can_be_removed(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.register(base_registration().without_chain("/x/y")).await;
    fixture.remove_order(ORDER_KEY).await;
    assert!(fixture.find_order(ORDER_KEY).await.is_none() && fixture.list_orders("/").await.is_empty());
}

/// Stops and chain node actions apply to the current chain definition.
pub async fn a_changed_chain_stays_stopped(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.set_chain_stopped("/x/y", true).await;
    fixture.register(base_registration().chain("/x/y", "a=other>c c=third>done done")).await;
    fixture.add_order(new_order("/x/y,2").starting_at_chain_node("c")).await;
    fixture.assert_nothing_claimable("the chain is stopped").await;
    fixture.set_chain_stopped("/x/y", false).await;
    let mut handlers: Vec<_> = fixture.claim(10).await.iter().map(|task| task.handler.to_string()).collect();
    handlers.sort();
    assert_eq!(handlers, ["other", "third"]);
}

pub async fn a_stopped_chain_node_stays_stopped_for_its_new_handler(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Stop).await;
    fixture.register(base_registration().chain("/x/y", "a=other>b b=second>done done")).await;
    fixture.assert_nothing_claimable("the node is stopped").await;
    let mut fixture = fixture.reopen().await;
    fixture.register(base_registration()).await;
    fixture.assert_nothing_claimable("the node is stopped").await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Process).await;
    assert_eq!(fixture.claim_one().await.handler, handler_name("first"));
}

pub async fn chains_can_be_read_back_as_registered(harness: &dyn Harness) {
    let registration = base_registration()
        .step_retry_policy("/x/y", "a", 4, 9)
        .chain("/c", "z=third>e e")
        .chain_route("record", "/c");
    let fixture = StoreFixture::new(harness, registration).await;
    let want = fixture.registration.build();
    let read = expect_ok(fixture.store.read_merged_registration().await);
    assert_eq!((&read.chains, &read.chain_routes), (&want.chains, &want.chain_routes));
    let fixture = fixture.reopen().await;
    let read = expect_ok(fixture.store.read_merged_registration().await);
    assert_eq!((&read.chains, &read.chain_routes), (&want.chains, &want.chain_routes));
    let seen: Vec<_> = fixture.list_chains().await.into_iter().map(|view| view.chain).collect();
    assert_eq!(seen, want.chains, "chains are listed by path");
    fixture.add_order(new_order("/x/y,1")).await;
    assert_eq!(
        fixture.fail(&fixture.claim_one().await).await.next_attempt_due_at,
        Some(fixture.seconds_from_now(9))
    );
}

/// The failed attempt belongs to the old handler, the retry to the new one.
pub async fn a_failed_step_is_retried_by_the_new_handler(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    let task = fixture.claim_one().await;
    fixture.register(base_registration().chain("/x/y", "a=other>b b=second>done done")).await;
    fixture.fail(&task).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    let again = fixture.claim_one().await;
    assert_eq!((again.handler.as_str(), again.step_run().node.as_str()), ("other", "a"));
    assert_eq!(count_unfinished_tasks(&fixture).await, 1);
}

pub async fn changing_other_chain_nodes_does_not_affect_a_pending_retry(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.fail(&fixture.claim_one().await).await;
    let before = fixture.read_order(ORDER_KEY).await;
    assert_eq!(before.retry_at, Some(fixture.seconds_from_now(RETRY_DELAY_SECS)));
    fixture.register(base_registration().chain("/x/y", "a=first>c b=second>done c=third>done done")).await;
    assert_eq!(fixture.read_order(ORDER_KEY).await, before);
    fixture.assert_nothing_claimable("its retry is not due").await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(fixture.claim_one().await.attempt, 2);
}

/// A cluster node dies while running a step whose chain node was removed.
pub async fn a_step_that_crashed_at_a_removed_chain_node_is_not_repeated(harness: &dyn Harness) {
    let mut fixture = fixture_with_waiting_order(harness).await;
    fixture.claim_one().await;
    fixture.register(base_registration().without_chain("/x/y")).await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
    fixture.rescue_tasks().await;
    assert_eq!(count_unfinished_tasks(&fixture).await, 0);
    fixture.register(base_registration()).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 a"]);
}
