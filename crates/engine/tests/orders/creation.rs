//! Orders that are created by events and schedules, and the engine events about nodes.

use pointsman_core::engine_event::EngineState;
use pointsman_core::event::MAX_CAUSE_DEPTH;
use pointsman_core::fire::FireAction;
use pointsman_core::store::{OrderError, Schedules};
use pointsman_core::{NewEvent, ScheduleName, TaskStatus, cron};
use pointsman_engine::{BoundedRun, ScheduleRunResult, ScheduleSpec};

use super::*;

/// An engine with a chain of one step, which records the order and its value.
fn builder_with_recording_chain(calls: &CallLog) -> TestEngineBuilder {
    let calls = calls.clone();
    TestEngineBuilder::default()
        .handler("a", move |delivery| {
            let step = step_of_delivery(&delivery);
            calls.record(format!("{} {}", step.order_key, step.value.as_str()));
            async { HandlerOutcome::succeeded() }
        })
        .chain(chain("/x", vec![step_node("a", "end"), end_node("end")]))
}

#[tokio::test]
async fn an_event_creates_an_order_with_its_id_and_value() {
    let store = in_memory_store();
    let calls = CallLog::default();
    let mut builder = builder_with_recording_chain(&calls);
    builder.setup.chain_routes.bind(event_type("article"), parse_order_key("/x,1").chain);
    let engine = builder.start(&store).await;
    let article = NewEvent { value: parse_json(r#"{"n":1.0}"#), ..keyed_event("article.written", "k") };
    let receipt = emit(&engine, vec![article, keyed_event("other", "k")]).await;
    let order = parse_order_key(&format!("/x,{}", receipt.events[0].id));
    list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(calls.entries(), [format!(r#"{order} {{"n":1.0}}"#)]);
    engine.stop(TEST_TIMEOUT).await;
}

/// An event creates an order, whose step emits such an event again.
#[tokio::test]
async fn an_event_storm_through_orders_is_stopped() {
    let store = in_memory_store();
    let mut builder = TestEngineBuilder::default()
        .handler("a", |_| async {
            HandlerOutcome { emitted_events: vec![keyed_event("round", "k")], ..HandlerOutcome::succeeded() }
        })
        .chain(chain("/x", vec![step_node("a", "end"), end_node("end")]));
    builder.setup.chain_routes.bind(event_type("round"), parse_order_key("/x,1").chain);
    let engine = builder.start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("round", "k")]).await;
    let ended = watcher.wait_for_change(|change| change.status == TaskStatus::Error).await;
    assert!(ended.error.unwrap().contains("event storm"));
    assert_eq!(ended.attempt, 1);
    let events = list_emitted_events(&engine).await;
    assert_eq!(events.len(), usize::from(MAX_CAUSE_DEPTH) + 1);
    for (before, after) in events.iter().zip(&events[1..]) {
        let cause = after.cause.unwrap();
        assert_eq!((cause.event, cause.depth), (Some(before.id), before.cause_depth() + 1));
    }
    let last = parse_order_key(&format!("/x,{}", events.last().unwrap().id));
    list_order_events_until(&engine, &last, "OrderSuspended").await;
    engine.stop(TEST_TIMEOUT).await;
}

fn order_schedule(name: &str, when: &str, order: NewOrder) -> ScheduleSpec {
    let name = ScheduleName::new(name).unwrap();
    ScheduleSpec::new(name, cron::Schedule::parse_utc(when).unwrap(), FireAction::AddOrder(Box::new(order)))
}

#[tokio::test]
async fn a_schedule_creates_orders() {
    let store = in_memory_store();
    let calls = CallLog::default();
    let order = NewOrder { value: parse_json("[1]"), ..NewOrder::new(parse_order_key("/x,1").chain) };
    let order_schedule_per_second = order_schedule("tick", "every 1s", order.clone());
    let engine =
        builder_with_recording_chain(&calls).schedule(order_schedule_per_second.clone()).start(&store).await;
    wait_until("two orders", || async { calls.entries().len() >= 2 }).await;
    assert!(calls.entries().iter().all(|note| note.starts_with("/x,") && note.ends_with(" [1]")));
    let fires = store.list_fires(&order_schedule_per_second.name, None, 1).await.unwrap().fires;
    assert!(fires[0].event_id.is_some() && fires[0].task.is_none());
    assert!(list_emitted_events(&engine).await.is_empty());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn an_order_schedule_can_be_run_manually() {
    let store = in_memory_store();
    let calls = CallLog::default();
    let schedule_of_missing_chain =
        order_schedule("missing-chain", "@yearly", NewOrder::new(parse_order_key("/missing,1").chain));
    let engine = builder_with_recording_chain(&calls)
        .schedule(order_schedule("yearly", "@yearly", NewOrder::new(parse_order_key("/x,1").chain)))
        .schedule(schedule_of_missing_chain.clone())
        .start(&store)
        .await;
    let run_result = engine.run_schedule(&ScheduleName::new("yearly").unwrap()).await.unwrap();
    let Some(ScheduleRunResult::Order(Ok(added))) = run_result else { panic!("{run_result:?}") };
    list_order_events_until(&engine, &added.order, "OrderFinished").await;
    let run_result = engine.run_schedule(&schedule_of_missing_chain.name).await.unwrap();
    assert_eq!(
        run_result,
        Some(ScheduleRunResult::Order(Err(OrderError::NoSuchChain(parse_order_key("/missing,1").chain))))
    );
    engine.stop(TEST_TIMEOUT).await;
}

/// Lists the types and states of the engine events about nodes so far.
async fn list_node_state_events(engine: &Engine) -> Vec<String> {
    let filter = EventFilter { event_types: vec![event_type("SchedulerEvent")], ..EventFilter::default() };
    let page = engine.observer().read_page(&filter, EventId::ZERO, None, 100).await.unwrap();
    page.events.iter().map(|event| format!("{} {}", event.event_type, event.value.as_str())).collect()
}

#[tokio::test]
async fn a_node_publishes_its_state_and_a_bounded_run_does_not() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let state_changed_text =
        |state: EngineState| format!(r#"SchedulerStateChanged {{"state":"{}"}}"#, state.as_str());
    let mut expected =
        vec![state_changed_text(EngineState::Starting), state_changed_text(EngineState::Running)];
    assert_eq!(list_node_state_events(&engine).await, expected);
    let mut bounded_run = TestEngineBuilder::default();
    bounded_run.settings.bounded_run = Some(BoundedRun { handlers: Default::default(), max_attempts: 1 });
    let bounded_run = bounded_run.start(&store).await;
    bounded_run.stop(TEST_TIMEOUT).await;
    assert_eq!(list_node_state_events(&engine).await, expected);
    engine.stop(TEST_TIMEOUT).await;
    expected.extend([state_changed_text(EngineState::Stopping), "SchedulerClosed {}".into()]);
    expected.extend([state_changed_text(EngineState::Starting), state_changed_text(EngineState::Running)]);
    let engine = TestEngineBuilder::default().start(&store).await;
    assert_eq!(list_node_state_events(&engine).await, expected);
    engine.stop(TEST_TIMEOUT).await;
}
