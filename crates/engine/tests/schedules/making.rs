//! What schedules make, and making it by hand.

use pointsman_core::store::{NewRun, RunTask, Tasks};
use pointsman_core::{CollectionName, HandlerDef, SourceDef, Status};
use pointsman_engine::{AttemptOutcome, HandlerSpec, ScheduleRunResult};

use super::*;

/// Makes a handler a source of orders.
pub(crate) fn source(def: &mut HandlerDef) {
    let orders = CollectionName::new("orders").unwrap();
    def.source = Some(SourceDef { collections: [(orders, Default::default())].into(), ..Default::default() });
}

/// A schedule of a pair.
pub(crate) fn run(pair: &str, when: &str) -> ScheduleSpec {
    let pair = pair.parse().unwrap();
    schedule_that(Makes::Run(NewRun { pair, priority: None }), "shop/orders", when)
}

#[tokio::test]
async fn a_source_that_is_gone_is_told_in_the_ledger() {
    let store = store();
    let sync = run("shop/orders", "every 1s");
    let engine = TestEngineBuilder::default().schedule(sync.clone()).start(&store).await;
    let fires = ledger_when(&store, &sync, "a time", |fires| !fires.is_empty()).await;
    assert_eq!(fires[0].outcome, FireOutcome::Skipped(Skipped::Gone));
    engine.stop(TEST_TIMEOUT).await;
}

/// A source whose task waits for a worker, and there is none.
fn pulled_source() -> TestEngineBuilder {
    let pulled = |spec: &mut HandlerSpec| {
        source(&mut spec.def);
        (spec.def.pull, spec.runner) = (true, None);
    };
    TestEngineBuilder::default().handler_with("shop", pulled, |_| async { AttemptOutcome::done() })
}

#[tokio::test]
async fn those_who_watch_see_what_a_schedule_makes() {
    let store = store();
    let house = pulled_source().handler("h", |_| async { AttemptOutcome::done() }).route("tick", "h");
    let setup = house.schedule(run("shop/orders", "every 1s")).schedule(ticking()).setup;
    let engine = TestEngineBuilder::default().start(&store).await;
    let mut watcher = TaskWatcher::of(&engine);
    engine.reconfigure(setup).await.unwrap();
    let made = watcher.until(|change| change.handler.as_str() == "shop").await;
    assert_eq!((made.status, &*made.collection, made.event), (Status::New, "orders", None));
    let made = watcher.until(|change| change.handler.as_str() == "h").await;
    assert!(made.event.is_some());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn run_now_makes_the_same_and_leaves_the_ledger_alone() {
    let store = store();
    let (daily, sync) = (long_ago(), run("shop/orders", "@yearly"));
    let engine = pulled_source().schedule(daily.clone()).schedule(sync.clone()).start(&store).await;
    let ran = engine.run_schedule(&daily.name).await.unwrap();
    let events = events(&engine).await;
    assert_eq!(ran, Some(ScheduleRunResult::Event(events[0].id)));
    assert_eq!(events[0].context.get("schedule").map(String::as_str), Some("daily"));
    assert_eq!(events[0].context.get("planned_at"), None);

    let ran = engine.run_schedule(&sync.name).await.unwrap();
    let Some(ScheduleRunResult::Task(RunTask { task, created: true, .. })) = ran else { panic!("{ran:?}") };
    let again = engine.run_schedule(&sync.name).await.unwrap();
    assert_eq!(
        again,
        Some(ScheduleRunResult::Task(RunTask { task: task.clone(), created: false, repeated: false }))
    );
    let (task, _) = store.task(&task).await.unwrap().unwrap();
    assert_eq!((task.handler.as_str(), task.planned_at), ("shop", None));

    assert_eq!(engine.run_schedule(&schedule_name("other")).await.unwrap(), None);
    for schedule in [daily, sync] {
        assert!(ledger(&store, &schedule).await.is_empty());
    }
    engine.stop(TEST_TIMEOUT).await;
}
