use pointsman::chain::{Chain, ChainPath, Node, NodeId, OrderKey, Role, Step as StepOf};
use pointsman::{Filter, Json, NewOrder, StartError, Status};
use pointsman_core::store::TaskFilter;

use super::*;

fn node(id: &str) -> NodeId {
    NodeId::new(id).unwrap()
}

fn step(id: &str, handler: &str, next: &str) -> Node {
    let handler = handler.parse().unwrap();
    let role = Role::Step(StepOf { handler, next: node(next), on_error: None, setback: None });
    Node { id: node(id), role }
}

fn chain(nodes: Vec<Node>) -> Chain {
    Chain { path: ChainPath::new("/publish").unwrap(), nodes }
}

fn ending(mut nodes: Vec<Node>) -> Chain {
    nodes.push(Node { id: node("end"), role: Role::End });
    chain(nodes)
}

/// Waits until the journal tells this of an order.
async fn told(bus: &Bus, kind: &str) -> Raw {
    let filter = Filter { kinds: vec![kind.parse().unwrap()], ..Filter::default() };
    within(bus.watch_after(pointsman::EventId::ZERO, filter).next()).await.unwrap()
}

#[tokio::test]
async fn a_value_goes_in_and_another_comes_out() {
    type Seen = (Step<Published>, TaskInfo);
    async fn rename(step: Step<Published>, ctx: Ctx) -> Result<Published, HandlerError> {
        ctx.emit(Indexed { id: step.value.id })?;
        Ok(Published { title: "renamed".into(), ..step.value })
    }
    // An event in its own type will do as well: one function serves both.
    async fn look(_: Published, raw: Raw) {
        assert_eq!(raw.key.as_ref().unwrap().as_str(), "/publish,7");
    }
    let home = Home::new();
    let (probe, mut seen) = Probe::<Seen>::new();
    let bus = Bus::builder(&home.url())
        .state(probe)
        .handler("rename", rename)
        .handler("look", look)
        .handler(
            "note",
            |step: Step<Published>, task: TaskInfo, State(probe): State<Probe<Seen>>| async move {
                probe.saw((step, task));
            },
        )
        .chain(ending(vec![step("a", "rename", "b"), step("b", "look", "c"), step("c", "note", "end")]))
        .start()
        .await
        .unwrap();
    let order: OrderKey = "/publish,7".parse().unwrap();
    let value = Json::of(&Published::new(5)).unwrap();
    let new = NewOrder { id: Some(order.id.clone()), value, ..NewOrder::of(order.chain.clone()) };
    bus.engine().add_orders(vec![new]).await.unwrap().unwrap();
    let (step, task) = saw(&mut seen).await;
    assert_eq!((step.order, step.node), (order, node("c")));
    assert_eq!(step.value, Published { id: 5, title: "renamed".into() });
    assert_eq!((task.event, task.attempt, task.handler.as_str()), (None, 1, "note"));
    told(&bus, "OrderFinished").await;
    let emitted = journal(&bus).await;
    assert_eq!(emitted.len(), 1);
    let cause = emitted[0].cause.unwrap();
    assert_eq!((cause.event, cause.depth), (None, 1));
    bus.stop().await;
}

#[tokio::test]
async fn an_event_makes_an_order_and_a_value_that_does_not_fit_suspends_it() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", |_: Step<Vec<u8>>| async {})
        .chain(ending(vec![step("a", "h", "end")]))
        .on_chain::<Published>("/publish")
        .start()
        .await
        .unwrap();
    let emitted = bus.emit(Published::new(1)).await.unwrap();
    let suspended = told(&bus, "OrderSuspended").await;
    assert_eq!(suspended.key.as_ref().unwrap().as_str(), format!("/publish,{}", emitted.id));
    bus.stop().await;
}

/// What a step returns is its order's value from then on, and may be as large as one.
#[tokio::test]
async fn a_large_value_is_returned_and_one_that_is_too_large_is_not() {
    async fn grow(step: Step<usize>) -> Result<String, HandlerError> {
        Ok("x".repeat(step.value))
    }
    let home = Home::new();
    let (probe, mut seen) = Probe::<usize>::new();
    let bus = Bus::builder(&home.url())
        .state(probe)
        .handler("grow", grow)
        .handler("note", |step: Step<String>, State(probe): State<Probe<usize>>| async move {
            probe.saw(step.value.len());
        })
        .chain(ending(vec![step("a", "grow", "b"), step("b", "note", "end")]))
        .start()
        .await
        .unwrap();
    let add = async |letters: usize| {
        let value = Json::of(&letters).unwrap();
        let new = NewOrder { value, ..NewOrder::of(ChainPath::new("/publish").unwrap()) };
        bus.engine().add_orders(vec![new]).await.unwrap().unwrap();
    };
    // Two quotation marks come to it.
    for letters in [200_000, (1 << 20) - 2] {
        add(letters).await;
        assert_eq!(saw(&mut seen).await, letters);
    }
    add((1 << 20) - 1).await;
    told(&bus, "OrderSuspended").await;
    let failed = TaskFilter { statuses: vec![Status::Error], ..TaskFilter::default() };
    let failed = bus.engine().store().tasks(failed, None, 10).await.unwrap().tasks;
    assert_eq!(failed.len(), 1);
    let error = failed[0].error.as_deref().unwrap();
    assert_eq!(error, "a result has at most 1048576 bytes, this one has 1048577");
    bus.stop().await;
}

/// By whatever way a step emits.
#[tokio::test]
async fn what_a_step_emits_is_caused_by_the_event_that_made_its_order() {
    async fn emit(_: Raw, ctx: Ctx, bus: Bus) -> Result<(), HandlerError> {
        ctx.emit(Indexed { id: 1 })?;
        bus.emit(Indexed { id: 2 }).await.map_err(HandlerError::permanent)?;
        Ok(())
    }
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("emit", emit)
        .chain(ending(vec![step("a", "emit", "end")]))
        .on_chain::<Published>("/publish")
        .start()
        .await
        .unwrap();
    let made = bus.emit(Published::new(1)).await.unwrap().id;
    told(&bus, "OrderFinished").await;
    let emitted = journal(&bus).await;
    assert_eq!(emitted.len(), 3);
    for event in &emitted[1..] {
        let cause = event.cause.unwrap();
        assert_eq!((cause.event, cause.depth), (Some(made), 1));
    }
    bus.stop().await;
}

#[tokio::test]
async fn a_chain_that_leads_nowhere_is_refused() {
    let start = async |chains: Vec<Chain>| {
        let builder = Bus::builder("sqlite::memory:").handler("h", |_: Raw| async {});
        let builder = chains.into_iter().fold(builder, |builder, chain| builder.chain(chain));
        builder.start().await.unwrap_err()
    };
    let sound = || ending(vec![step("a", "h", "end")]);
    assert!(matches!(start(vec![chain(vec![step("a", "h", "b")])]).await, StartError::BadChain { .. }));
    assert!(matches!(start(vec![ending(vec![step("a", "x", "end")])]).await, StartError::NoSuchStep { .. }));
    assert!(matches!(start(vec![sound(), sound()]).await, StartError::TwoChains(_)));
    let nowhere = Bus::builder("sqlite::memory:").on_chain::<Published>("/nowhere").start().await;
    assert!(matches!(nowhere, Err(StartError::NoSuchChain { .. })));
}
