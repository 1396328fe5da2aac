//! A planned time is due while the task of the last one has not ended.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::fire::OverlapPolicy;
use pointsman_core::store::{TaskFilter, Tasks};
use pointsman_core::task::{ErrorReason, Task};
use pointsman_core::{HandlerDef, TaskStatus};
use pointsman_engine::{Delivery, HandlerOutcome, HandlerSpec, Runner};
use tokio::sync::Semaphore;

use super::*;

const SKIPPED_BY_OVERLAP: FireOutcome = FireOutcome::Skipped(SkipReason::Overlap);

/// Runs attempts that end when the gate opens, or when they are cancelled.
#[derive(Clone)]
struct GatedRunner {
    gate: Arc<Semaphore>,
    call_log: CallLog,
}

impl GatedRunner {
    fn new() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), call_log: CallLog::default() }
    }

    /// Builds a node on which this runner handles every `tick` event, as the handler `h`.
    fn builder_with_tick_handler(&self) -> TestEngineBuilder {
        self.builder_with_gated_handler("h", |_| {}).route("tick", "h")
    }

    fn builder_with_gated_handler(
        &self,
        handler: &str,
        change: impl FnOnce(&mut HandlerDef),
    ) -> TestEngineBuilder {
        let runner = Arc::new(self.clone());
        let change = |spec: &mut HandlerSpec| {
            spec.runner = Some(runner);
            change(&mut spec.def);
        };
        TestEngineBuilder::default()
            .handler_with_changed_spec(handler, change, |_| async { HandlerOutcome::succeeded() })
    }
}

#[async_trait]
impl Runner for GatedRunner {
    fn handler_kind(&self) -> &'static str {
        "gated"
    }

    async fn run(&self, delivery: Delivery) -> HandlerOutcome {
        tokio::select! {
            _ = self.gate.acquire() => self.call_log.record("ended"),
            () = delivery.cancel_token.cancelled() => self.call_log.record("was cancelled"),
        }
        HandlerOutcome::succeeded()
    }
}

async fn list_tasks(store: &SqliteStore) -> Vec<Task> {
    let mut tasks = store.list_tasks(TaskFilter::default(), None, 1000).await.unwrap().tasks;
    tasks.reverse();
    tasks
}

#[tokio::test]
async fn overlap_skip_skips_the_planned_time() {
    let (store, runner) = (in_memory_store(), GatedRunner::new());
    let tick = ScheduleSpec { overlap: OverlapPolicy::Skip, ..every_second_schedule() };
    let engine = runner.builder_with_tick_handler().schedule(tick.clone()).start(&store).await;
    let fires =
        wait_for_ledger(&store, &tick, "overlaps", |fires| count_outcome(fires, SKIPPED_BY_OVERLAP) >= 2)
            .await;
    assert_eq!(created_event_ids(&fires).len(), 1, "{fires:?}");
    let running = &list_tasks(&store).await[0];
    let all_name_the_running_task = fires
        .iter()
        .filter(|fire| fire.outcome == SKIPPED_BY_OVERLAP)
        .all(|fire| fire.task.as_ref() == Some(&running.id));
    assert!(all_name_the_running_task, "{fires:?}");
    runner.gate.close();
    wait_for_ledger(&store, &tick, "the next firing", |fires| created_event_ids(fires).len() >= 2).await;
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn overlap_queue_fires_while_the_last_task_runs() {
    let (store, runner) = (in_memory_store(), GatedRunner::new());
    let tick = ScheduleSpec { overlap: OverlapPolicy::Queue, ..every_second_schedule() };
    let engine = runner.builder_with_tick_handler().slots(1).schedule(tick.clone()).start(&store).await;
    let fires = wait_for_ledger(&store, &tick, "firings", |fires| fires.len() >= 3).await;
    assert_eq!(created_event_ids(&fires).len(), fires.len());
    let tasks = list_tasks(&store).await;
    assert_eq!(tasks.iter().filter(|task| task.lifecycle.state.status() == TaskStatus::Locked).count(), 1);
    let planned: Vec<_> = tasks.iter().filter_map(|task| task.planned_at).collect();
    assert!(fires.iter().all(|fire| planned.contains(&fire.planned_at)), "{planned:?}");
    runner.gate.close();
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn overlap_cancel_cancels_the_running_task() {
    let (store, runner) = (in_memory_store(), GatedRunner::new());
    let tick = ScheduleSpec { overlap: OverlapPolicy::Cancel, ..every_second_schedule() };
    let engine = runner.builder_with_tick_handler().schedule(tick.clone()).start(&store).await;
    let fires = wait_for_ledger(&store, &tick, "firings", |fires| fires.len() >= 3).await;
    assert_eq!(created_event_ids(&fires).len(), fires.len());
    within_timeout("the cancellation of the attempts", async {
        while runner.call_log.entries().iter().filter(|line| *line == "was cancelled").count() < 2 {
            tokio::time::sleep(SECOND / 50).await;
        }
    })
    .await;
    let first = &list_tasks(&store).await[0];
    assert_eq!(first.lifecycle.state.error_reason(), Some(ErrorReason::Canceled));
    runner.gate.close();
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn planned_times_of_a_running_collection_are_skipped_as_overlaps() {
    let (store, runner) = (in_memory_store(), GatedRunner::new());
    let sync = firing::collection_schedule("shop/orders", "every 1s");
    let engine = runner
        .builder_with_gated_handler("shop", firing::set_source_with_orders_collection)
        .schedule(sync.clone())
        .start(&store)
        .await;
    let fires = wait_for_ledger(&store, &sync, "some times", |fires| fires.len() >= 3).await;
    assert!(list_emitted_events(&engine).await.is_empty());
    let tasks = list_tasks(&store).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!((tasks[0].handler.as_str(), &*tasks[0].subject_name), ("shop", "orders"));
    assert_eq!((tasks[0].event_id, tasks[0].planned_at), (None, Some(fires[0].planned_at)));
    assert!(fires.iter().all(|fire| fire.task.as_ref() == Some(&tasks[0].id)), "{fires:?}");
    assert_eq!(fire_outcomes(&fires[1..]), vec![SKIPPED_BY_OVERLAP; fires.len() - 1]);
    runner.gate.close();
    engine.stop(TEST_TIMEOUT).await;
}
