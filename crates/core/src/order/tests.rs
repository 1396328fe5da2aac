use super::*;
use crate::chain::{Action, ChainPath, Node, Step};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn name(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn step(id: &str, next: &str, on_error: Option<&str>) -> Node {
    let handler = HandlerName::new(format!("do-{id}")).unwrap();
    let role = Role::Step(Step { handler, next: name(next), on_error: on_error.map(name), setback: None });
    Node { id: name(id), role }
}

/// a → b → done; b's failures go to `failed`.
fn chain() -> Chain {
    let end = |id: &str| Node { id: name(id), role: Role::End };
    let nodes = vec![step("a", "b", None), step("b", "done", Some("failed")), end("done"), end("failed")];
    Chain { path: ChainPath::new("/x/y").unwrap(), nodes }
}

fn order(node: &str) -> Order {
    Order {
        key: "/x/y,1".parse().unwrap(),
        tenant: Tenant::default(),
        node: name(node),
        value: Json::null(),
        priority: Priority::default(),
        planned: None,
        created: NOW,
        origin: None,
        started: None,
        suspended: false,
        task: None,
        running: false,
        stepped: false,
        halted_by: None,
        took_on_error: false,
    }
}

fn task() -> TaskId {
    TaskId::from_text("t")
}

/// The effects in a few words.
fn words(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Tell(event) => {
            let event = event.at(crate::EventId::new(1).unwrap());
            let fields =
                event.value.as_str().replace(['"', '{', '}'], "").replace("nodeTransition:TYPE:", "");
            format!("{} {fields}", event.kind).trim().to_owned()
        }
        Effect::Begin { handler } => format!("begin {handler}"),
        Effect::Stay { handler } => format!("stay {handler}"),
        Effect::Cancel => "cancel".into(),
        Effect::End(outcome) => format!("end {outcome}"),
    };
    effects.iter().map(word).collect()
}

fn play(order: Order, input: Input, state: &ChainState) -> (Order, Vec<String>) {
    let (order, effects) = order.input(input, Some(&chain()), state, NOW);
    let said = words(&effects);
    (order, said)
}

fn plain(order: Order, input: Input) -> (Order, Vec<String>) {
    play(order, input, &ChainState::default())
}

fn with_task(order: Order) -> Order {
    Order { task: Some(TaskSeq(7)), ..order }
}

#[test]
fn an_order_travels_to_its_end() {
    let (order, said) = plain(order("a"), Input::Added);
    assert_eq!(said, ["begin do-a"]);
    let (order, said) = plain(with_task(order), Input::StepStarted { task: task() });
    assert_eq!(said, ["OrderStarted nodeId:a,taskId:t", "OrderStepStarted nodeId:a,taskId:t"]);
    let value = Some(Json::parse("5").unwrap());
    let (order, said) = plain(order, Input::StepEnded(StepEnd::Success { value }));
    assert_eq!(said, ["OrderStepEnded Success", "OrderNodeChanged fromNodeId:a,nodeId:b", "begin do-b"]);
    assert_eq!((order.value.as_str(), order.task, order.running), ("5", None, false));
    let (order, said) = plain(with_task(order), Input::StepStarted { task: task() });
    assert_eq!(said, ["OrderStepStarted nodeId:b,taskId:t"], "it starts once");
    let (order, said) = plain(order, Input::StepEnded(StepEnd::Success { value: None }));
    let want = [
        "OrderStepEnded Success",
        "OrderNodeChanged fromNodeId:b,nodeId:done",
        "OrderFinished nodeId:done",
        "FileBasedRemoved",
        "end finished",
    ];
    assert_eq!(said, want);
    assert_eq!(order.value.as_str(), "5");
}

#[test]
fn a_failed_step_follows_on_error_or_suspends() {
    let running = |node| Order { running: true, ..with_task(order(node)) };
    let error = || Input::StepEnded(StepEnd::Error { return_code: 3 });
    let (_, said) = plain(running("b"), error());
    assert_eq!(said[0], "OrderStepEnded Error,returnCode:3");
    assert_eq!(&said[1..3], ["OrderNodeChanged fromNodeId:b,nodeId:failed", "OrderFinished nodeId:failed"]);
    let (order, said) = plain(running("a"), error());
    assert_eq!(said[1..], ["OrderSuspended"]);
    assert_eq!(order.halted_by, Some(TaskSeq(7)), "it can be told why");
    let (order, said) = plain(order, Input::Resume);
    assert_eq!(said, ["OrderResumed", "begin do-a"]);
    assert!(!order.suspended);
}

#[test]
fn a_setback_keeps_the_task() {
    let running = Order { running: true, ..with_task(order("a")) };
    let (order, said) = plain(running, Input::StepEnded(StepEnd::SetBack));
    assert_eq!(said, ["OrderStepEnded Keep", "OrderSetBack nodeId:a", "stay do-a"]);
    assert_eq!(order.task, Some(TaskSeq(7)));
    let actions = [(name("a"), Action::NextState)].into();
    let passing = ChainState { actions, ..ChainState::default() };
    let running = Order { running: true, ..with_task(self::order("a")) };
    let (_, said) = play(running, Input::StepEnded(StepEnd::Keep), &passing);
    assert_eq!(
        said,
        ["OrderStepEnded Keep", "cancel", "OrderNodeChanged fromNodeId:a,nodeId:b", "begin do-b"]
    );
    let at_end = plain(with_task(self::order("done")), Input::Changed).1;
    assert_eq!(at_end[..2], ["cancel", "OrderFinished nodeId:done"], "a step that has become an end");
}

#[test]
fn a_suspended_order_neither_starts_nor_finishes() {
    let (waiting, said) = plain(with_task(order("a")), Input::Suspend);
    assert_eq!(said, ["OrderSuspended", "cancel"]);
    assert_eq!(plain(waiting.clone(), Input::Suspend).1, [""; 0], "once is enough");
    assert_eq!(plain(waiting.clone(), Input::Changed).1, [""; 0]);
    assert_eq!(plain(waiting, Input::Resume).1, ["OrderResumed", "begin do-a"]);

    let running = Order { running: true, ..with_task(order("b")) };
    let (running, said) = plain(running, Input::Suspend);
    assert_eq!(said, ["OrderSuspended"], "the step that runs is let end");
    let (at_end, said) = plain(running.clone(), Input::StepEnded(StepEnd::Success { value: None }));
    assert_eq!(said, ["OrderStepEnded Success", "OrderNodeChanged fromNodeId:b,nodeId:done"]);
    assert_eq!(
        plain(at_end, Input::Resume).1,
        ["OrderResumed", "OrderFinished nodeId:done", "FileBasedRemoved", "end finished"]
    );
    let (set_back, said) = plain(running, Input::StepEnded(StepEnd::SetBack));
    assert_eq!(said, ["OrderStepEnded Keep", "OrderSetBack nodeId:b", "cancel"]);
    assert_eq!(set_back.task, None);
}

#[test]
fn nodes_are_passed_where_they_are_set_so() {
    let act = |action| ChainState { actions: [(name("a"), action)].into(), ..ChainState::default() };
    assert_eq!(
        play(order("a"), Input::Added, &act(Action::Stop)).1[0],
        "begin do-a",
        "in a queue that is held"
    );
    let passed = play(order("a"), Input::Added, &act(Action::NextState)).1;
    assert_eq!(passed, ["OrderNodeChanged fromNodeId:a,nodeId:b", "begin do-b"]);
    let waiting = play(with_task(order("a")), Input::Changed, &act(Action::NextState)).1;
    assert_eq!(waiting, ["cancel", "OrderNodeChanged fromNodeId:a,nodeId:b", "begin do-b"]);
    let running = Order { running: true, ..with_task(order("a")) };
    assert_eq!(play(running, Input::Changed, &act(Action::NextState)).1, [""; 0]);
    let both = ChainState { stopped: true, ..act(Action::NextState) };
    assert_eq!(play(order("a"), Input::Added, &both).1[0], "begin do-a", "a stopped chain passes nothing");
}

#[test]
fn a_waiting_task_stays_and_an_order_can_be_moved() {
    assert_eq!(plain(with_task(order("a")), Input::Changed).1, ["stay do-a"]);
    let (moved, said) = plain(with_task(order("a")), Input::Moved { to: name("b") });
    assert_eq!(said, ["cancel", "OrderNodeChanged fromNodeId:a,nodeId:b", "begin do-b"]);
    assert_eq!(moved.node, name("b"));
}

#[test]
fn who_would_be_passed_in_a_circle_rests() {
    let circle = Chain { nodes: vec![step("a", "b", None), step("b", "a", None)], ..chain() };
    let actions = [(name("a"), Action::NextState), (name("b"), Action::NextState)].into();
    let state = ChainState { actions, ..ChainState::default() };
    let (order, effects) = order("a").input(Input::Added, Some(&circle), &state, NOW);
    assert_eq!((effects.len(), order.node.as_str()), (0, "a"));
    let (order, effects) = order.input(Input::Changed, Some(&circle), &ChainState::default(), NOW);
    assert_eq!((words(&effects), order.node.as_str()), (vec!["begin do-a".into()], "a"));
}

#[test]
fn a_step_that_has_become_an_end_is_where_its_order_arrives() {
    let running = Order { running: true, ..with_task(order("done")) };
    let (_, said) = plain(running, Input::StepEnded(StepEnd::Success { value: None }));
    assert_eq!(said[..2], ["OrderStepEnded Success", "OrderFinished nodeId:done"]);
}

#[test]
fn an_order_waits_at_a_node_that_is_gone() {
    let running = Order { running: true, ..with_task(order("gone")) };
    let (order, said) = plain(running, Input::StepEnded(StepEnd::Success { value: None }));
    assert_eq!(said, ["OrderStepEnded Success"]);
    assert_eq!((order.task, order.node.as_str(), order.stepped), (None, "gone", true));
    let (_, effects) = order.clone().input(Input::Changed, None, &ChainState::default(), NOW);
    assert!(effects.is_empty());
    let waiting = Order { stepped: false, ..with_task(order.clone()) };
    assert_eq!(plain(waiting, Input::Changed).1, ["cancel"], "whose step it was is not known");
    let (_, said) = plain(Order { node: name("a"), ..order.clone() }, Input::Changed);
    assert_eq!(
        said,
        ["OrderNodeChanged fromNodeId:a,nodeId:b", "begin do-b"],
        "what is done is not done again"
    );
    let (_, said) = plain(order, Input::Moved { to: name("a") });
    assert_eq!(said, ["OrderNodeChanged fromNodeId:gone,nodeId:a", "begin do-a"], "unless somebody wants it");
}

#[test]
fn a_cancelled_step_suspends_its_order() {
    let waiting = with_task(order("a"));
    assert_eq!(
        plain(waiting.clone(), Input::StepEnded(StepEnd::Canceled { running: false })).1,
        ["OrderSuspended"]
    );
    let said = plain(waiting, Input::StepEnded(StepEnd::Canceled { running: true })).1;
    assert_eq!(said, ["OrderStepEnded Error,returnCode:1", "OrderSuspended"]);
}

#[test]
fn a_removed_order_takes_its_task_along() {
    assert_eq!(plain(with_task(order("a")), Input::Remove).1, ["cancel", "FileBasedRemoved", "end removed"]);
}

/// It counts as failed though it waits suspended in between; a person's move undoes that.
#[test]
fn an_order_that_took_an_on_error_ends_as_failed() {
    let running = Order { running: true, suspended: true, ..with_task(order("b")) };
    let (lost, _) = plain(running, Input::StepEnded(StepEnd::Error { return_code: 1 }));
    assert_eq!((lost.node.as_str(), lost.took_on_error), ("failed", true));
    let last = |order: Order, input: Input| plain(order, input).1.pop();
    assert_eq!(last(lost.clone(), Input::Resume).as_deref(), Some("end failed"));
    let moved = Order { suspended: false, ..lost };
    assert_eq!(last(moved, Input::Moved { to: name("done") }).as_deref(), Some("end finished"));
}
