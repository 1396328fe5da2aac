//! Orders that events and schedules make, and what the journal tells beside.

use pointsman_core::engine_event::SchedulerState;
use pointsman_core::event::MAX_DEPTH;
use pointsman_core::fire::Makes;
use pointsman_core::store::{OrderRefused, Schedules};
use pointsman_core::{NewEvent, ScheduleName, Status, cron};
use pointsman_engine::{BoundedRun, ScheduleRunResult, ScheduleSpec};

use super::*;

/// A chain of one step that notes the order and its value.
fn noted(diary: &CallLog) -> TestEngineBuilder {
    let diary = diary.clone();
    TestEngineBuilder::default()
        .handler("a", move |delivery| {
            let step = step_of(&delivery);
            diary.note(format!("{} {}", step.order, step.value.as_str()));
            async { AttemptOutcome::done() }
        })
        .chain(chain("/x", vec![step("a", "end"), end("end")]))
}

#[tokio::test]
async fn an_event_makes_an_order_with_its_id_and_its_value() {
    let store = store();
    let diary = CallLog::default();
    let mut house = noted(&diary);
    house.setup.chain_routes.bind(kind("article"), key("/x,1").chain);
    let engine = house.start(&store).await;
    let article = NewEvent { value: json(r#"{"n":1.0}"#), ..event("article.written", "k") };
    let receipt = emit(&engine, vec![article, event("other", "k")]).await;
    let order = key(&format!("/x,{}", receipt.events[0].id));
    told(&engine, &order, "OrderFinished").await;
    assert_eq!(diary.read(), [format!(r#"{order} {{"n":1.0}}"#)]);
    engine.stop(TEST_TIMEOUT).await;
}

/// An event makes an order, whose step emits such an event again.
#[tokio::test]
async fn a_storm_through_orders_is_stopped() {
    let store = store();
    let mut house = TestEngineBuilder::default()
        .handler("a", |_| async {
            AttemptOutcome { emits: vec![event("round", "k")], ..AttemptOutcome::done() }
        })
        .chain(chain("/x", vec![step("a", "end"), end("end")]));
    house.setup.chain_routes.bind(kind("round"), key("/x,1").chain);
    let engine = house.start(&store).await;
    let mut watcher = TaskWatcher::of(&engine);
    emit(&engine, vec![event("round", "k")]).await;
    let ended = watcher.until(|change| change.status == Status::Error).await;
    assert!(ended.error.unwrap().contains("event storm"));
    assert_eq!(ended.attempt, 1);
    let events = emitted(&engine).await;
    assert_eq!(events.len(), usize::from(MAX_DEPTH) + 1);
    for (before, after) in events.iter().zip(&events[1..]) {
        let cause = after.cause.unwrap();
        assert_eq!((cause.event, cause.depth), (Some(before.id), before.depth() + 1));
    }
    let last = key(&format!("/x,{}", events.last().unwrap().id));
    told(&engine, &last, "OrderSuspended").await;
    engine.stop(TEST_TIMEOUT).await;
}

fn schedule(name: &str, when: &str, order: NewOrder) -> ScheduleSpec {
    let name = ScheduleName::new(name).unwrap();
    ScheduleSpec::new(name, cron::Schedule::utc(when).unwrap(), Makes::Order(Box::new(order)))
}

#[tokio::test]
async fn a_schedule_makes_orders() {
    let store = store();
    let diary = CallLog::default();
    let order = NewOrder { value: json("[1]"), ..NewOrder::of(key("/x,1").chain) };
    let ticking = schedule("tick", "every 1s", order.clone());
    let engine = noted(&diary).schedule(ticking.clone()).start(&store).await;
    until("two orders", || async { diary.read().len() >= 2 }).await;
    assert!(diary.read().iter().all(|note| note.starts_with("/x,") && note.ends_with(" [1]")));
    let fires = store.fires(&ticking.name, None, 1).await.unwrap().fires;
    assert!(fires[0].event.is_some() && fires[0].task.is_none());
    assert!(emitted(&engine).await.is_empty());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_schedule_of_orders_is_run_by_hand() {
    let store = store();
    let diary = CallLog::default();
    let gone = schedule("gone", "@yearly", NewOrder::of(key("/gone,1").chain));
    let engine = noted(&diary)
        .schedule(schedule("yearly", "@yearly", NewOrder::of(key("/x,1").chain)))
        .schedule(gone.clone())
        .start(&store)
        .await;
    let ran = engine.run_schedule(&ScheduleName::new("yearly").unwrap()).await.unwrap();
    let Some(ScheduleRunResult::Order(Ok(added))) = ran else { panic!("{ran:?}") };
    told(&engine, &added.order, "OrderFinished").await;
    let ran = engine.run_schedule(&gone.name).await.unwrap();
    assert_eq!(ran, Some(ScheduleRunResult::Order(Err(OrderRefused::NoSuchChain(key("/gone,1").chain)))));
    engine.stop(TEST_TIMEOUT).await;
}

/// The types and states of scheduler events so far.
async fn states(engine: &Engine) -> Vec<String> {
    let filter = Filter { kinds: vec![kind("SchedulerEvent")], ..Filter::default() };
    let page = engine.observer().read_page(&filter, EventId::ZERO, None, 100).await.unwrap();
    page.events.iter().map(|event| format!("{} {}", event.kind, event.value.as_str())).collect()
}

#[tokio::test]
async fn a_node_tells_how_it_stands_and_a_guest_does_not() {
    let store = store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let changed =
        |state: SchedulerState| format!(r#"SchedulerStateChanged {{"state":"{}"}}"#, state.as_str());
    let mut want = vec![changed(SchedulerState::Starting), changed(SchedulerState::Running)];
    assert_eq!(states(&engine).await, want);
    let mut guest = TestEngineBuilder::default();
    guest.settings.bounded_run = Some(BoundedRun { handlers: Default::default(), max_events: 1 });
    let guest = guest.start(&store).await;
    guest.stop(TEST_TIMEOUT).await;
    assert_eq!(states(&engine).await, want);
    engine.stop(TEST_TIMEOUT).await;
    want.extend([changed(SchedulerState::Stopping), "SchedulerClosed {}".into()]);
    want.extend([changed(SchedulerState::Starting), changed(SchedulerState::Running)]);
    let engine = TestEngineBuilder::default().start(&store).await;
    assert_eq!(states(&engine).await, want);
    engine.stop(TEST_TIMEOUT).await;
}
