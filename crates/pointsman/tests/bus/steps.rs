use pointsman::chain::{Chain, ChainPath, Node, NodeId, OrderKey, Role, Step as StepOf};
use pointsman::{Filter, Json, NewOrder, StartError};

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
    bus.engine().add_orders(vec![new]).await.unwrap().remove(0).unwrap();
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
