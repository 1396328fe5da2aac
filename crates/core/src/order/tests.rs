use super::*;
use crate::chain::{ChainNode, ChainNodeAction, ChainPath, ChainStep};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn node_id(text: &str) -> ChainNodeId {
    ChainNodeId::new(text).unwrap()
}

fn step_node(id: &str, next: &str, on_error: Option<&str>) -> ChainNode {
    let handler = HandlerName::new(format!("do-{id}")).unwrap();
    let role = ChainNodeRole::Step(ChainStep {
        handler,
        next: node_id(next),
        on_error: on_error.map(node_id),
        retry: None,
    });
    ChainNode { id: node_id(id), role }
}

/// a → b → done; b's failures go to `failed`.
fn two_step_chain() -> Chain {
    let end = |id: &str| ChainNode { id: node_id(id), role: ChainNodeRole::End };
    let nodes =
        vec![step_node("a", "b", None), step_node("b", "done", Some("failed")), end("done"), end("failed")];
    Chain { path: ChainPath::new("/x/y").unwrap(), nodes }
}

fn order_at_node(node: &str) -> Order {
    Order {
        key: "/x/y,1".parse().unwrap(),
        tenant: Tenant::default(),
        node: node_id(node),
        value: Json::null(),
        priority: Priority::default(),
        planned_at: None,
        created_at: NOW,
        origin: None,
        started_at: None,
        suspended: false,
        task_seq: None,
        step_running: false,
        step_succeeded_at_removed_node: false,
        suspended_by_task_seq: None,
        took_on_error: false,
    }
}

fn task_id() -> TaskId {
    TaskId::from_text("t")
}

/// Formats each effect as a short text.
fn format_effects(effects: &[OrderEffect]) -> Vec<String> {
    let format_effect = |effect: &OrderEffect| match effect {
        OrderEffect::Publish(event) => {
            let event = event.to_event(crate::EventId::new(1).unwrap());
            let fields =
                event.value.as_str().replace(['"', '{', '}'], "").replace("nodeTransition:TYPE:", "");
            format!("{} {fields}", event.event_type).trim().to_owned()
        }
        OrderEffect::CreateTask { handler } => format!("create {handler}"),
        OrderEffect::KeepOrReplaceTask { handler } => format!("keep {handler}"),
        OrderEffect::CancelTask => "cancel".into(),
        OrderEffect::EndOrder(outcome) => format!("end {outcome}"),
    };
    effects.iter().map(format_effect).collect()
}

fn apply_and_format_effects(order: Order, input: OrderInput, state: &ChainState) -> (Order, Vec<String>) {
    let (order, effects) = order.apply(input, Some(&two_step_chain()), state, NOW);
    (order, format_effects(&effects))
}

fn apply_with_default_state(order: Order, input: OrderInput) -> (Order, Vec<String>) {
    apply_and_format_effects(order, input, &ChainState::default())
}

fn with_task(order: Order) -> Order {
    Order { task_seq: Some(TaskSeq(7)), ..order }
}

#[test]
fn an_order_runs_through_its_chain_to_the_end() {
    let (order, effects) = apply_with_default_state(order_at_node("a"), OrderInput::Added);
    assert_eq!(effects, ["create do-a"]);
    let (order, effects) =
        apply_with_default_state(with_task(order), OrderInput::StepStarted { task: task_id() });
    assert_eq!(effects, ["OrderStarted nodeId:a,taskId:t", "OrderStepStarted nodeId:a,taskId:t"]);
    let value = Some(Json::parse("5").unwrap());
    let (order, effects) =
        apply_with_default_state(order, OrderInput::StepEnded(StepOutcome::Success { value }));
    assert_eq!(effects, ["OrderStepEnded Success", "OrderNodeChanged fromNodeId:a,nodeId:b", "create do-b"]);
    assert_eq!((order.value.as_str(), order.task_seq, order.step_running), ("5", None, false));
    let (order, effects) =
        apply_with_default_state(with_task(order), OrderInput::StepStarted { task: task_id() });
    assert_eq!(effects, ["OrderStepStarted nodeId:b,taskId:t"], "OrderStarted is published once");
    let (order, effects) =
        apply_with_default_state(order, OrderInput::StepEnded(StepOutcome::Success { value: None }));
    let want = [
        "OrderStepEnded Success",
        "OrderNodeChanged fromNodeId:b,nodeId:done",
        "OrderFinished nodeId:done",
        "FileBasedRemoved",
        "end finished",
    ];
    assert_eq!(effects, want);
    assert_eq!(order.value.as_str(), "5");
}

#[test]
fn a_failed_step_follows_on_error_or_suspends() {
    let running = |node| Order { step_running: true, ..with_task(order_at_node(node)) };
    let error = || OrderInput::StepEnded(StepOutcome::FailedForGood { return_code: 3 });
    let (_, effects) = apply_with_default_state(running("b"), error());
    assert_eq!(effects[0], "OrderStepEnded Error,returnCode:3");
    assert_eq!(
        &effects[1..3],
        ["OrderNodeChanged fromNodeId:b,nodeId:failed", "OrderFinished nodeId:failed"]
    );
    let (order, effects) = apply_with_default_state(running("a"), error());
    assert_eq!(effects[1..], ["OrderSuspended"]);
    assert_eq!(order.suspended_by_task_seq, Some(TaskSeq(7)), "the cause is recorded");
    let (order, effects) = apply_with_default_state(order, OrderInput::Resume);
    assert_eq!(effects, ["OrderResumed", "create do-a"]);
    assert!(!order.suspended);
}

#[test]
fn a_rerun_step_keeps_its_task_unless_its_node_is_skipped_or_became_an_end() {
    let running = Order { step_running: true, ..with_task(order_at_node("a")) };
    let (order, effects) = apply_with_default_state(running, OrderInput::StepEnded(StepOutcome::WillRetry));
    assert_eq!(effects, ["OrderStepEnded Keep", "OrderSetBack nodeId:a", "keep do-a"]);
    assert_eq!(order.task_seq, Some(TaskSeq(7)));
    let actions = [(node_id("a"), ChainNodeAction::NextState)].into();
    let skipping = ChainState { node_actions: actions, ..ChainState::default() };
    let running = Order { step_running: true, ..with_task(self::order_at_node("a")) };
    let (_, effects) =
        apply_and_format_effects(running, OrderInput::StepEnded(StepOutcome::Unfinished), &skipping);
    assert_eq!(
        effects,
        ["OrderStepEnded Keep", "cancel", "OrderNodeChanged fromNodeId:a,nodeId:b", "create do-b"]
    );
    let at_end = apply_with_default_state(with_task(self::order_at_node("done")), OrderInput::Reevaluate).1;
    assert_eq!(at_end[..2], ["cancel", "OrderFinished nodeId:done"], "the step became an end node");
}

#[test]
fn a_suspended_order_neither_starts_nor_finishes() {
    let (waiting, effects) = apply_with_default_state(with_task(order_at_node("a")), OrderInput::Suspend);
    assert_eq!(effects, ["OrderSuspended", "cancel"]);
    assert_eq!(
        apply_with_default_state(waiting.clone(), OrderInput::Suspend).1,
        [""; 0],
        "suspending twice does nothing"
    );
    assert_eq!(apply_with_default_state(waiting.clone(), OrderInput::Reevaluate).1, [""; 0]);
    assert_eq!(apply_with_default_state(waiting, OrderInput::Resume).1, ["OrderResumed", "create do-a"]);

    let running = Order { step_running: true, ..with_task(order_at_node("b")) };
    let (running, effects) = apply_with_default_state(running, OrderInput::Suspend);
    assert_eq!(effects, ["OrderSuspended"], "the running step is not cancelled");
    let (at_end, effects) = apply_with_default_state(
        running.clone(),
        OrderInput::StepEnded(StepOutcome::Success { value: None }),
    );
    assert_eq!(effects, ["OrderStepEnded Success", "OrderNodeChanged fromNodeId:b,nodeId:done"]);
    assert_eq!(
        apply_with_default_state(at_end, OrderInput::Resume).1,
        ["OrderResumed", "OrderFinished nodeId:done", "FileBasedRemoved", "end finished"]
    );
    let (set_back, effects) =
        apply_with_default_state(running, OrderInput::StepEnded(StepOutcome::WillRetry));
    assert_eq!(effects, ["OrderStepEnded Keep", "OrderSetBack nodeId:b", "cancel"]);
    assert_eq!(set_back.task_seq, None);
}

#[test]
fn nodes_set_to_next_state_are_skipped_unless_a_step_runs_or_the_chain_is_stopped() {
    let with_action =
        |action| ChainState { node_actions: [(node_id("a"), action)].into(), ..ChainState::default() };
    assert_eq!(
        apply_and_format_effects(order_at_node("a"), OrderInput::Added, &with_action(ChainNodeAction::Stop))
            .1[0],
        "create do-a",
        "the task waits in a paused queue"
    );
    let skipped = apply_and_format_effects(
        order_at_node("a"),
        OrderInput::Added,
        &with_action(ChainNodeAction::NextState),
    )
    .1;
    assert_eq!(skipped, ["OrderNodeChanged fromNodeId:a,nodeId:b", "create do-b"]);
    let waiting = apply_and_format_effects(
        with_task(order_at_node("a")),
        OrderInput::Reevaluate,
        &with_action(ChainNodeAction::NextState),
    )
    .1;
    assert_eq!(waiting, ["cancel", "OrderNodeChanged fromNodeId:a,nodeId:b", "create do-b"]);
    let running = Order { step_running: true, ..with_task(order_at_node("a")) };
    assert_eq!(
        apply_and_format_effects(running, OrderInput::Reevaluate, &with_action(ChainNodeAction::NextState)).1,
        [""; 0]
    );
    let both = ChainState { stopped: true, ..with_action(ChainNodeAction::NextState) };
    assert_eq!(
        apply_and_format_effects(order_at_node("a"), OrderInput::Added, &both).1[0],
        "create do-a",
        "a stopped chain skips no node"
    );
}

#[test]
fn a_waiting_task_is_kept_by_a_reevaluation_and_replaced_by_a_move() {
    assert_eq!(
        apply_with_default_state(with_task(order_at_node("a")), OrderInput::Reevaluate).1,
        ["keep do-a"]
    );
    let (moved, effects) =
        apply_with_default_state(with_task(order_at_node("a")), OrderInput::MoveTo { node: node_id("b") });
    assert_eq!(effects, ["cancel", "OrderNodeChanged fromNodeId:a,nodeId:b", "create do-b"]);
    assert_eq!(moved.node, node_id("b"));
}

#[test]
fn an_order_waits_where_skipped_nodes_form_a_cycle() {
    let cycle =
        Chain { nodes: vec![step_node("a", "b", None), step_node("b", "a", None)], ..two_step_chain() };
    let actions =
        [(node_id("a"), ChainNodeAction::NextState), (node_id("b"), ChainNodeAction::NextState)].into();
    let state = ChainState { node_actions: actions, ..ChainState::default() };
    let (order, effects) = order_at_node("a").apply(OrderInput::Added, Some(&cycle), &state, NOW);
    assert_eq!((effects.len(), order.node.as_str()), (0, "a"));
    let (order, effects) = order.apply(OrderInput::Reevaluate, Some(&cycle), &ChainState::default(), NOW);
    assert_eq!((format_effects(&effects), order.node.as_str()), (vec!["create do-a".into()], "a"));
}

#[test]
fn an_order_finishes_at_a_step_that_became_an_end_node() {
    let running = Order { step_running: true, ..with_task(order_at_node("done")) };
    let (_, effects) =
        apply_with_default_state(running, OrderInput::StepEnded(StepOutcome::Success { value: None }));
    assert_eq!(effects[..2], ["OrderStepEnded Success", "OrderFinished nodeId:done"]);
}

#[test]
fn an_order_waits_at_a_node_that_its_chain_no_longer_has() {
    let running = Order { step_running: true, ..with_task(order_at_node("gone")) };
    let (order, effects) =
        apply_with_default_state(running, OrderInput::StepEnded(StepOutcome::Success { value: None }));
    assert_eq!(effects, ["OrderStepEnded Success"]);
    assert_eq!(
        (order.task_seq, order.node.as_str(), order.step_succeeded_at_removed_node),
        (None, "gone", true)
    );
    let (_, effects) = order.clone().apply(OrderInput::Reevaluate, None, &ChainState::default(), NOW);
    assert!(effects.is_empty());
    let waiting = Order { step_succeeded_at_removed_node: false, ..with_task(order.clone()) };
    assert_eq!(
        apply_with_default_state(waiting, OrderInput::Reevaluate).1,
        ["cancel"],
        "the handler of the step is unknown"
    );
    let (_, effects) =
        apply_with_default_state(Order { node: node_id("a"), ..order.clone() }, OrderInput::Reevaluate);
    assert_eq!(
        effects,
        ["OrderNodeChanged fromNodeId:a,nodeId:b", "create do-b"],
        "the step is not run again"
    );
    let (_, effects) = apply_with_default_state(order, OrderInput::MoveTo { node: node_id("a") });
    assert_eq!(
        effects,
        ["OrderNodeChanged fromNodeId:gone,nodeId:a", "create do-a"],
        "a move runs the step again"
    );
}

#[test]
fn a_cancelled_step_suspends_its_order() {
    let waiting = with_task(order_at_node("a"));
    assert_eq!(
        apply_with_default_state(
            waiting.clone(),
            OrderInput::StepEnded(StepOutcome::Canceled { was_running: false })
        )
        .1,
        ["OrderSuspended"]
    );
    let effects =
        apply_with_default_state(waiting, OrderInput::StepEnded(StepOutcome::Canceled { was_running: true }))
            .1;
    assert_eq!(effects, ["OrderStepEnded Error,returnCode:1", "OrderSuspended"]);
}

#[test]
fn removing_an_order_cancels_its_task() {
    assert_eq!(
        apply_with_default_state(with_task(order_at_node("a")), OrderInput::Remove).1,
        ["cancel", "FileBasedRemoved", "end removed"]
    );
}

/// The order counts as failed even if it was suspended in between; a move by a person resets that.
#[test]
fn an_order_that_followed_on_error_ends_as_failed() {
    let running = Order { step_running: true, suspended: true, ..with_task(order_at_node("b")) };
    let (failed, _) = apply_with_default_state(
        running,
        OrderInput::StepEnded(StepOutcome::FailedForGood { return_code: 1 }),
    );
    assert_eq!((failed.node.as_str(), failed.took_on_error), ("failed", true));
    let last_effect = |order: Order, input: OrderInput| apply_with_default_state(order, input).1.pop();
    assert_eq!(last_effect(failed.clone(), OrderInput::Resume).as_deref(), Some("end failed"));
    let moved = Order { suspended: false, ..failed };
    assert_eq!(
        last_effect(moved, OrderInput::MoveTo { node: node_id("done") }).as_deref(),
        Some("end finished")
    );
}
