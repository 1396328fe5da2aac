use pointsman::chain::{Chain, ChainNode, ChainNodeId, ChainNodeRole, ChainPath, ChainStep, OrderKey};
use pointsman::{EventFilter, Json, NewOrder, StartError};

use super::*;

pub(super) fn chain_node_id(id: &str) -> ChainNodeId {
    ChainNodeId::new(id).unwrap()
}

pub(super) fn step_node(id: &str, handler: &str, next: &str) -> ChainNode {
    let handler = handler.parse().unwrap();
    let role =
        ChainNodeRole::Step(ChainStep { handler, next: chain_node_id(next), on_error: None, retry: None });
    ChainNode { id: chain_node_id(id), role }
}

fn chain(nodes: Vec<ChainNode>) -> Chain {
    Chain { path: ChainPath::new("/publish").unwrap(), nodes }
}

pub(super) fn chain_with_end(mut nodes: Vec<ChainNode>) -> Chain {
    nodes.push(ChainNode { id: chain_node_id("end"), role: ChainNodeRole::End });
    chain(nodes)
}

/// Waits for an event of this type.
pub(super) async fn wait_for_event_of_type(bus: &Bus, event_type: &str) -> RawEvent {
    let filter = EventFilter { event_types: vec![event_type.parse().unwrap()], ..EventFilter::default() };
    with_timeout(bus.watch_after(pointsman::EventId::ZERO, filter).next()).await.unwrap()
}

#[tokio::test]
async fn value_returned_by_a_step_becomes_the_value_of_the_order() {
    type Received = (Step<RecordPublished>, TaskInfo);
    async fn set_title(step: Step<RecordPublished>, ctx: Ctx) -> Result<RecordPublished, HandlerError> {
        ctx.emit(RecordIndexed { id: step.value.id })?;
        Ok(RecordPublished { title: "renamed".into(), ..step.value })
    }
    // A handler of the event's own type can be a step too.
    async fn check_key(_: RecordPublished, raw: RawEvent) {
        assert_eq!(raw.key.as_ref().unwrap().as_str(), "/publish,7");
    }
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<Received>::new();
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .handler("set_title", set_title)
        .handler("check_key", check_key)
        .handler(
            "note",
            |step: Step<RecordPublished>, task: TaskInfo, State(probe): State<HandlerProbe<Received>>| async move {
                probe.send((step, task));
            },
        )
        .chain(chain_with_end(vec![
            step_node("a", "set_title", "b"),
            step_node("b", "check_key", "c"),
            step_node("c", "note", "end"),
        ]))
        .start()
        .await
        .unwrap();
    let order: OrderKey = "/publish,7".parse().unwrap();
    let value = Json::from_value(&RecordPublished::new(5)).unwrap();
    let new_order = NewOrder { id: Some(order.id.clone()), value, ..NewOrder::new(order.chain.clone()) };
    bus.add_order(new_order).await.unwrap();
    let (step, task) = receive_probed_value(&mut received).await;
    assert_eq!((step.order, step.node), (order, chain_node_id("c")));
    assert_eq!(step.value, RecordPublished { id: 5, title: "renamed".into() });
    assert_eq!((task.event_id, task.attempt, task.handler.as_str()), (None, 1, "note"));
    wait_for_event_of_type(&bus, "OrderFinished").await;
    let emitted = read_emitted_events(&bus).await;
    assert_eq!(emitted.len(), 1);
    let cause = emitted[0].cause.unwrap();
    assert_eq!((cause.event, cause.depth), (None, 1));
    bus.stop().await;
}

#[tokio::test]
async fn event_starts_an_order_and_a_value_of_another_type_suspends_it() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", |_: Step<Vec<u8>>| async {})
        .chain(chain_with_end(vec![step_node("a", "h", "end")]))
        .on_chain::<RecordPublished>("/publish")
        .start()
        .await
        .unwrap();
    let emitted = bus.emit(RecordPublished::new(1)).await.unwrap();
    let suspended = wait_for_event_of_type(&bus, "OrderSuspended").await;
    assert_eq!(suspended.key.as_ref().unwrap().as_str(), format!("/publish,{}", emitted.id));
    bus.stop().await;
}

/// The value that a step returns becomes the order's value, and has the same size limit.
#[tokio::test]
async fn returned_value_may_be_as_large_as_an_order_value_and_no_larger() {
    async fn return_long_text(step: Step<usize>) -> Result<String, HandlerError> {
        Ok("x".repeat(step.value))
    }
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<usize>::new();
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .handler("grow", return_long_text)
        .handler("note", |step: Step<String>, State(probe): State<HandlerProbe<usize>>| async move {
            probe.send(step.value.len());
        })
        .chain(chain_with_end(vec![step_node("a", "grow", "b"), step_node("b", "note", "end")]))
        .start()
        .await
        .unwrap();
    let add = async |text_len: usize| {
        let value = Json::from_value(&text_len).unwrap();
        let new_order = NewOrder { value, ..NewOrder::new(ChainPath::new("/publish").unwrap()) };
        bus.add_order(new_order).await.unwrap();
    };
    // JSON adds two quotation marks.
    for text_len in [200_000, (1 << 20) - 2] {
        add(text_len).await;
        assert_eq!(receive_probed_value(&mut received).await, text_len);
    }
    add((1 << 20) - 1).await;
    wait_for_event_of_type(&bus, "OrderSuspended").await;
    let failed = TaskFilter { statuses: vec![TaskStatus::Error], ..TaskFilter::default() };
    let failed = bus.list_tasks(failed, None, 10).await.unwrap().tasks;
    assert_eq!(failed.len(), 1);
    let error = failed[0].error.as_deref().unwrap();
    assert_eq!(error, "a result has at most 1048576 bytes, this one has 1048577");
    bus.stop().await;
}

/// A step emits one event by its context and one by the bus; both name the same cause.
#[tokio::test]
async fn events_emitted_by_a_step_are_caused_by_the_event_that_started_its_order() {
    async fn emit_twice(_: RawEvent, ctx: Ctx, bus: Bus) -> Result<(), HandlerError> {
        ctx.emit(RecordIndexed { id: 1 })?;
        bus.emit(RecordIndexed { id: 2 }).await.map_err(HandlerError::permanent)?;
        Ok(())
    }
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("emit", emit_twice)
        .chain(chain_with_end(vec![step_node("a", "emit", "end")]))
        .on_chain::<RecordPublished>("/publish")
        .start()
        .await
        .unwrap();
    let causing_event = bus.emit(RecordPublished::new(1)).await.unwrap().id;
    wait_for_event_of_type(&bus, "OrderFinished").await;
    let emitted = read_emitted_events(&bus).await;
    assert_eq!(emitted.len(), 3);
    for event in &emitted[1..] {
        let cause = event.cause.unwrap();
        assert_eq!((cause.event, cause.depth), (Some(causing_event), 1));
    }
    bus.stop().await;
}

#[tokio::test]
async fn invalid_chains_are_rejected_at_the_start() {
    let start = async |chains: Vec<Chain>| {
        let builder = Bus::builder("sqlite::memory:").handler("h", |_: RawEvent| async {});
        let builder = chains.into_iter().fold(builder, |builder, chain| builder.chain(chain));
        builder.start().await.unwrap_err()
    };
    let valid_chain = || chain_with_end(vec![step_node("a", "h", "end")]);
    assert!(matches!(
        start(vec![chain(vec![step_node("a", "h", "b")])]).await,
        StartError::InvalidChain { .. }
    ));
    assert!(matches!(
        start(vec![chain_with_end(vec![step_node("a", "x", "end")])]).await,
        StartError::UnknownStepHandler { .. }
    ));
    assert!(matches!(start(vec![valid_chain(), valid_chain()]).await, StartError::DuplicateChain(_)));
    let unknown_chain = Bus::builder("sqlite::memory:").on_chain::<RecordPublished>("/nowhere").start().await;
    assert!(matches!(unknown_chain, Err(StartError::UnknownChain { .. })));
}
