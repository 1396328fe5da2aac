//! A chain that changes under its orders: they go on, or wait at a node that is gone and say so.

use pointsman_core::Status;
use pointsman_core::chain::Action;
use pointsman_core::store::{OrderRefused, TaskFilter};

use crate::Harness;
use crate::fixture::*;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

/// The same chain without its node `a`.
fn shorter() -> RegistrationBuilder {
    plan().chain("/x/y", "b=second>done!failed done failed")
}

const KEY: &str = "/x/y,1";

async fn waiting(harness: &dyn Harness) -> StoreFixture<'_> {
    let world = StoreFixture::new(harness, plan()).await;
    world.add_order(new_order(KEY).with_value("1")).await;
    world
}

async fn live_tasks(world: &StoreFixture<'_>) -> usize {
    let statuses = vec![Status::New, Status::Scheduled, Status::Locked, Status::Missing];
    world.list_tasks(&TaskFilter { statuses, ..TaskFilter::default() }).await.len()
}

pub async fn registering_an_unchanged_chain_does_not_change_its_orders(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let (before, since) = (world.read_order(KEY).await, world.journal_head().await);
    world.register(plan()).await;
    assert_eq!((world.read_order(KEY).await, world.journal_head().await), (before, since));
    assert_eq!(live_tasks(&world).await, 1);
}

pub async fn an_order_at_a_removed_chain_node_is_orphaned(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.register(shorter()).await;
    let view = world.read_order(KEY).await;
    assert!(view.stranded && !view.order.suspended, "it says so");
    assert_eq!((view.order.node.as_str(), view.task), ("a", None));
    world.assert_nothing_claimable("its node is gone").await;
    assert_eq!(live_tasks(&world).await, 0);
    let mut world = world.reopen().await;
    assert!(world.read_order(KEY).await.stranded, "after a restart, too");
    assert_eq!(
        world.list_chains().await[0].orders,
        [(chain_node_id("a"), 1)],
        "nodes that are gone are named"
    );
    world.register(plan()).await;
    let view = world.read_order(KEY).await;
    assert!(!view.stranded && view.task.is_some());
    let task = world.claim_one().await;
    assert_eq!((task.step().node.as_str(), task.step().value.as_str()), ("a", "1"));
}

pub async fn an_orphaned_order_can_be_moved(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.register(shorter()).await;
    let nowhere = Err(OrderRefused::NoSuchNode(chain_path("/x/y"), chain_node_id("a")));
    assert_eq!(world.command_order(KEY, move_to_node("a")).await, nowhere);
    let since = world.journal_head().await;
    world.command_order(KEY, move_to_node("b")).await.expect("nothing runs");
    assert_eq!(world.engine_event_summaries_after(since).await, ["OrderNodeChanged fromNodeId:a,nodeId:b"]);
    assert!(!world.read_order(KEY).await.stranded);
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 b"]);
}

pub async fn an_orphaned_order_can_be_suspended_and_removed(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.register(shorter()).await;
    world.suspend_order(KEY).await;
    world.resume_order(KEY).await;
    world.assert_nothing_claimable("its node is gone").await;
    world.remove_order(KEY).await;
    world.register(plan()).await;
    world.assert_nothing_claimable("it is gone").await;
}

pub async fn a_running_step_can_finish_at_a_removed_chain_node(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let task = world.claim_one().await;
    world.register(shorter()).await;
    let view = world.read_order(KEY).await;
    assert!(view.stranded && view.order.running, "what runs is let end");
    let since = world.journal_head().await;
    assert_eq!(world.succeed(&task).await.status, Status::Done);
    assert_eq!(
        world.engine_event_summaries_after(since).await,
        ["OrderStepEnded Success"],
        "and leads nowhere"
    );
    world.assert_nothing_claimable("its node is gone").await;
    let mut world = world.reopen().await;
    world.register(plan()).await;
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 b"], "what is done is not done again");
}

/// A node that was a step when its step began, and is an end when that ends.
pub async fn a_step_can_finish_at_a_chain_node_that_became_an_end(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let task = world.claim_one().await;
    world.register(plan().chain("/x/y", "a b=second>a")).await;
    let since = world.journal_head().await;
    world.succeed(&task).await;
    let want = ["OrderStepEnded Success", "OrderFinished nodeId:a", "FileBasedRemoved"];
    assert_eq!(world.engine_event_summaries_after(since).await, want);
    assert!(world.find_order(KEY).await.is_none());
}

pub async fn a_failed_step_is_not_retried_at_a_removed_chain_node(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let task = world.claim_one().await;
    world.register(shorter()).await;
    world.fail(&task).await;
    world.advance_clock(RETRY_DELAY_SECS);
    world.assert_nothing_claimable("its node is gone").await;
    let view = world.read_order(KEY).await;
    assert_eq!((view.task, view.stranded), (None, true));
    world.register(plan()).await;
    assert_eq!(world.claim(10).await.len(), 1);
}

/// The node is still there while the step runs; where it leads is asked when the step has ended.
pub async fn a_finished_step_follows_the_current_chain_definition(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let task = world.claim_one().await;
    world.register(plan().chain("/x/y", "a=first>c c=third>done done")).await;
    world.succeed(&task).await;
    let task = world.claim_one().await;
    assert_eq!((task.handler.as_str(), task.step().node.as_str()), ("third", "c"));
}

pub async fn orders_finish_when_their_chain_node_becomes_an_end(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let since = world.journal_head().await;
    world.register(plan().chain("/x/y", "a b=second>a")).await;
    assert_eq!(world.order_event_summaries_after(KEY, since).await, ["OrderFinished nodeId:a"]);
    assert!(world.find_order(KEY).await.is_none());
    assert_eq!(live_tasks(&world).await, 0);
}

pub async fn a_waiting_step_moves_to_the_new_handler(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let since = world.journal_head().await;
    world.register(plan().chain("/x/y", "a=other>b b=second>done done")).await;
    assert_eq!(world.order_event_summaries_after(KEY, since).await, [""; 0], "the order has not moved");
    assert_eq!(live_tasks(&world).await, 1);
    let name = world.order_task_id(KEY).await;
    assert_eq!(world.read_task(&name).await.handler, handler_name("other"));
    assert!(world.claim_for_handlers(&["first"], 10).await.is_empty());
    let task = world.claim_one().await;
    assert_eq!((&task.id, task.handler.as_str(), task.step().value.as_str()), (&name, "other", "1"));
    world.succeed(&task).await;
    assert_eq!(world.read_order(KEY).await.order.node, chain_node_id("b"));
}

/// Also one that is not due, and one that was chosen for the next free slot.
pub async fn a_step_moved_to_a_new_handler_keeps_its_due_time(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.add_order(new_order(KEY).planned_at(world.seconds_from_now(60))).await;
    world.add_order(new_order("/x/y,2")).await;
    world.schedule_ahead(5).await;
    world.register(plan().chain("/x/y", "a=other>b b=second>done done")).await;
    let task = world.claim_one().await;
    assert_eq!((&task.handler, &task.step().order), (&handler_name("other"), &order_key("/x/y,2")));
    world.assert_nothing_claimable("the other one's time has not come").await;
    world.advance_clock(60);
    assert_eq!(world.claim_one().await.handler, handler_name("other"));
}

pub async fn a_running_step_finishes_with_its_old_handler(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let task = world.claim_one().await;
    world.register(plan().chain("/x/y", "a=other>b b=second>done done")).await;
    assert_eq!(world.succeed(&task).await.status, Status::Done);
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 b"]);
}

pub async fn removing_a_chain_orphans_its_orders(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.add_order(new_order("/x/y,2").starting_at("b")).await;
    let running = world.claim_for_handlers(&["second"], 10).await;
    world.register(plan().without_chain("/x/y")).await;
    let left = world.list_chains().await;
    assert!(left[0].chain.nodes.is_empty(), "only its orders are left of it");
    assert_eq!(left[0].orders, [(chain_node_id("a"), 1), (chain_node_id("b"), 1)]);
    let gone = Err(OrderRefused::NoSuchChain(chain_path("/x/y")));
    assert_eq!(world.try_add_order(new_order("/x/y,3")).await, gone.clone().map(|()| unreachable!()));
    let stranded: Vec<_> = world.list_orders("/x/y").await.iter().map(|view| view.stranded).collect();
    assert_eq!(stranded, [true, true], "its orders are still there");
    world.assert_nothing_claimable("there is no such chain").await;
    world.succeed(&running[0]).await;
    assert_eq!(
        world.read_order("/x/y,2").await.order.node,
        chain_node_id("b"),
        "a step that ends leads nowhere"
    );
    assert_eq!(world.command_order(KEY, move_to_node("b")).await, gone);
    let mut world = world.reopen().await;
    assert_eq!(world.order_statistics("/").await.total, 2);
    world.register(plan()).await;
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 a"]);
    assert!(world.find_order("/x/y,2").await.is_none(), "its step was done, and now leads to the end");
}

pub async fn orders_of_a_removed_chain_can_be_removed(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.register(plan().without_chain("/x/y")).await;
    world.remove_order(KEY).await;
    assert!(world.find_order(KEY).await.is_none() && world.list_orders("/").await.is_empty());
}

/// A stop, and what nodes are set to, hold for the chain as it is now.
pub async fn a_changed_chain_stays_stopped(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.set_chain_stopped("/x/y", true).await;
    world.register(plan().chain("/x/y", "a=other>c c=third>done done")).await;
    world.add_order(new_order("/x/y,2").starting_at("c")).await;
    world.assert_nothing_claimable("the chain is stopped").await;
    world.set_chain_stopped("/x/y", false).await;
    let mut handlers: Vec<_> = world.claim(10).await.iter().map(|task| task.handler.to_string()).collect();
    handlers.sort();
    assert_eq!(handlers, ["other", "third"]);
}

pub async fn a_stopped_chain_node_stays_stopped_for_its_new_handler(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.set_node_action("/x/y a", Action::Stop).await;
    world.register(plan().chain("/x/y", "a=other>b b=second>done done")).await;
    world.assert_nothing_claimable("the node is stopped").await;
    let mut world = world.reopen().await;
    world.register(plan()).await;
    world.assert_nothing_claimable("the node is stopped").await;
    world.set_node_action("/x/y a", Action::Process).await;
    assert_eq!(world.claim_one().await.handler, handler_name("first"));
}

pub async fn chains_can_be_read_back_as_registered(harness: &dyn Harness) {
    let plan = plan().step_retry("/x/y", "a", 4, 9).chain("/c", "z=third>e e").chain_route("record", "/c");
    let world = StoreFixture::new(harness, plan).await;
    let want = world.plan.build();
    let read = expect_ok(world.store.registration().await);
    assert_eq!((&read.chains, &read.chain_routes), (&want.chains, &want.chain_routes));
    let world = world.reopen().await;
    let read = expect_ok(world.store.registration().await);
    assert_eq!((&read.chains, &read.chain_routes), (&want.chains, &want.chain_routes));
    let seen: Vec<_> = world.list_chains().await.into_iter().map(|view| view.chain).collect();
    assert_eq!(seen, want.chains, "by path");
    world.add_order(new_order("/x/y,1")).await;
    assert_eq!(world.fail(&world.claim_one().await).await.due, Some(world.seconds_from_now(9)));
}

/// The attempt that fails is the old handler's, the next one is not.
pub async fn a_failed_step_is_retried_by_the_new_handler(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    let task = world.claim_one().await;
    world.register(plan().chain("/x/y", "a=other>b b=second>done done")).await;
    world.fail(&task).await;
    world.advance_clock(RETRY_DELAY_SECS);
    let again = world.claim_one().await;
    assert_eq!((again.handler.as_str(), again.step().node.as_str()), ("other", "a"));
    assert_eq!(live_tasks(&world).await, 1);
}

pub async fn changing_other_chain_nodes_does_not_affect_a_pending_retry(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.fail(&world.claim_one().await).await;
    let before = world.read_order(KEY).await;
    assert_eq!(before.setback, Some(world.seconds_from_now(RETRY_DELAY_SECS)));
    world.register(plan().chain("/x/y", "a=first>c b=second>done c=third>done done")).await;
    assert_eq!(world.read_order(KEY).await, before);
    world.assert_nothing_claimable("it is set back").await;
    world.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(world.claim_one().await.attempt, 2);
}

/// A node that dies with a step whose node is gone leaves nothing behind.
pub async fn a_crash_at_a_removed_chain_node_leaves_no_task(harness: &dyn Harness) {
    let mut world = waiting(harness).await;
    world.claim_one().await;
    world.register(plan().without_chain("/x/y")).await;
    world.advance_clock(LEASE_SECS + 1);
    world.node = expect_ok(world.store.join("heir", world.now).await);
    world.rescue_tasks().await;
    assert_eq!(live_tasks(&world).await, 0);
    world.register(plan()).await;
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 a"]);
}
