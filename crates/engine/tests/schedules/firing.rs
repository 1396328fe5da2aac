//! The events, tasks and orders that schedules create, and manual runs.

use pointsman_core::store::{CollectionRunReceipt, NewCollectionRun, Tasks};
use pointsman_core::{CollectionName, HandlerDef, SourceDef, TaskStatus};
use pointsman_engine::{HandlerOutcome, HandlerSpec, ScheduleRunResult};

use super::*;

/// Turns a handler into a source with the collection `orders`.
pub(crate) fn set_source_with_orders_collection(def: &mut HandlerDef) {
    let orders = CollectionName::new("orders").unwrap();
    def.source = Some(SourceDef { collections: [(orders, Default::default())].into(), ..Default::default() });
}

/// A schedule that runs a collection of a source.
pub(crate) fn collection_schedule(pair: &str, when: &str) -> ScheduleSpec {
    let pair = pair.parse().unwrap();
    schedule_with_action(
        FireAction::RunCollection(NewCollectionRun { source_collection: pair, priority: None }),
        "shop/orders",
        when,
    )
}

#[tokio::test]
async fn planned_times_of_an_undefined_source_are_recorded_as_skipped() {
    let store = in_memory_store();
    let collection_run_schedule = collection_schedule("shop/orders", "every 1s");
    let engine = TestEngineBuilder::default().schedule(collection_run_schedule.clone()).start(&store).await;
    let fires = wait_for_ledger(&store, &collection_run_schedule, "a time", |fires| !fires.is_empty()).await;
    assert_eq!(fires[0].outcome, FireOutcome::Skipped(SkipReason::TargetUndefined));
    engine.stop(TEST_TIMEOUT).await;
}

/// A source whose tasks wait for a pull worker that never connects.
fn builder_with_pulled_source() -> TestEngineBuilder {
    let pulled = |spec: &mut HandlerSpec| {
        set_source_with_orders_collection(&mut spec.def);
        (spec.def.pull, spec.runner) = (true, None);
    };
    TestEngineBuilder::default()
        .handler_with_changed_spec("shop", pulled, |_| async { HandlerOutcome::succeeded() })
}

#[tokio::test]
async fn watchers_are_notified_of_tasks_that_schedules_create() {
    let store = in_memory_store();
    let builder = builder_with_pulled_source()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("tick", "h");
    let setup = builder
        .schedule(collection_schedule("shop/orders", "every 1s"))
        .schedule(every_second_schedule())
        .setup;
    let engine = TestEngineBuilder::default().start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    engine.reconfigure(setup).await.unwrap();
    let change = watcher.wait_for_change(|change| change.handler.as_str() == "shop").await;
    assert_eq!((change.status, &*change.subject_name, change.event_id), (TaskStatus::New, "orders", None));
    let change = watcher.wait_for_change(|change| change.handler.as_str() == "h").await;
    assert!(change.event_id.is_some());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_manual_run_creates_the_event_or_task_without_a_ledger_row() {
    let store = in_memory_store();
    let (daily, collection_run_schedule) =
        (daily_schedule_due_twelve_hours_ago(), collection_schedule("shop/orders", "@yearly"));
    let engine = builder_with_pulled_source()
        .schedule(daily.clone())
        .schedule(collection_run_schedule.clone())
        .start(&store)
        .await;
    let run_result = engine.run_schedule(&daily.name).await.unwrap();
    let events = list_emitted_events(&engine).await;
    assert_eq!(run_result, Some(ScheduleRunResult::Event(events[0].id)));
    assert_eq!(events[0].context.get("schedule").map(String::as_str), Some("daily"));
    assert_eq!(events[0].context.get("planned_at"), None);

    let run_result = engine.run_schedule(&collection_run_schedule.name).await.unwrap();
    let Some(ScheduleRunResult::Task(CollectionRunReceipt { task, created: true, .. })) = run_result else {
        panic!("{run_result:?}")
    };
    let second_run_result = engine.run_schedule(&collection_run_schedule.name).await.unwrap();
    assert_eq!(
        second_run_result,
        Some(ScheduleRunResult::Task(CollectionRunReceipt {
            task: task.clone(),
            created: false,
            repeated: false
        }))
    );
    let (task, _) = store.read_task(&task).await.unwrap().unwrap();
    assert_eq!((task.handler.as_str(), task.planned_at), ("shop", None));

    assert_eq!(engine.run_schedule(&schedule_name("other")).await.unwrap(), None);
    for schedule in [daily, collection_run_schedule] {
        assert!(read_ledger(&store, &schedule).await.is_empty());
    }
    engine.stop(TEST_TIMEOUT).await;
}
