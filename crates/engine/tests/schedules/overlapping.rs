//! A planned time comes up while what the last one began has not ended.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::fire::Overlap;
use pointsman_core::store::{TaskFilter, Tasks};
use pointsman_core::task::{EndReason, Task};
use pointsman_core::{HandlerDef, Status};
use pointsman_engine::{AttemptOutcome, Delivery, HandlerSpec, Runner};
use tokio::sync::Semaphore;

use super::*;

const OVERLAP: FireOutcome = FireOutcome::Skipped(Skipped::Overlap);

/// Runs attempts that end when they may, or when they are told to.
#[derive(Clone)]
struct GatedRunner {
    gate: Arc<Semaphore>,
    diary: CallLog,
}

impl GatedRunner {
    fn new() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), diary: CallLog::default() }
    }

    /// A node that runs this as the handler `h`, at every tick.
    fn house(&self) -> TestEngineBuilder {
        self.run_as("h", |_| {}).route("tick", "h")
    }

    fn run_as(&self, handler: &str, change: impl FnOnce(&mut HandlerDef)) -> TestEngineBuilder {
        let runner = Arc::new(self.clone());
        let change = |spec: &mut HandlerSpec| {
            spec.runner = Some(runner);
            change(&mut spec.def);
        };
        TestEngineBuilder::default().handler_with(handler, change, |_| async { AttemptOutcome::done() })
    }
}

#[async_trait]
impl Runner for GatedRunner {
    fn kind(&self) -> &'static str {
        "gated"
    }

    async fn run(&self, delivery: Delivery) -> AttemptOutcome {
        tokio::select! {
            _ = self.gate.acquire() => self.diary.note("ended"),
            () = delivery.cancel.cancelled() => self.diary.note("was cancelled"),
        }
        AttemptOutcome::done()
    }
}

async fn tasks(store: &SqliteStore) -> Vec<Task> {
    let mut tasks = store.tasks(TaskFilter::default(), None, 1000).await.unwrap().tasks;
    tasks.reverse();
    tasks
}

#[tokio::test]
async fn skip_lets_the_time_pass() {
    let (store, gated) = (store(), GatedRunner::new());
    let tick = ScheduleSpec { overlap: Overlap::Skip, ..ticking() };
    let engine = gated.house().schedule(tick.clone()).start(&store).await;
    let fires = ledger_when(&store, &tick, "overlaps", |fires| count(fires, OVERLAP) >= 2).await;
    assert_eq!(made(&fires).len(), 1, "{fires:?}");
    let running = &tasks(&store).await[0];
    let in_the_way = fires
        .iter()
        .filter(|fire| fire.outcome == OVERLAP)
        .all(|fire| fire.task.as_ref() == Some(&running.id));
    assert!(in_the_way, "{fires:?}");
    gated.gate.close();
    ledger_when(&store, &tick, "the next firing", |fires| made(fires).len() >= 2).await;
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn queue_fires_all_the_same() {
    let (store, gated) = (store(), GatedRunner::new());
    let tick = ScheduleSpec { overlap: Overlap::Queue, ..ticking() };
    let engine = gated.house().slots(1).schedule(tick.clone()).start(&store).await;
    let fires = ledger_when(&store, &tick, "firings", |fires| fires.len() >= 3).await;
    assert_eq!(made(&fires).len(), fires.len());
    let tasks = tasks(&store).await;
    assert_eq!(tasks.iter().filter(|task| task.life.state.status() == Status::Locked).count(), 1);
    let planned: Vec<_> = tasks.iter().filter_map(|task| task.planned_at).collect();
    assert!(fires.iter().all(|fire| planned.contains(&fire.planned)), "{planned:?}");
    gated.gate.close();
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn cancel_ends_what_runs() {
    let (store, gated) = (store(), GatedRunner::new());
    let tick = ScheduleSpec { overlap: Overlap::Cancel, ..ticking() };
    let engine = gated.house().schedule(tick.clone()).start(&store).await;
    let fires = ledger_when(&store, &tick, "firings", |fires| fires.len() >= 3).await;
    assert_eq!(made(&fires).len(), fires.len());
    soon("the attempts to be told", async {
        while gated.diary.read().iter().filter(|line| *line == "was cancelled").count() < 2 {
            tokio::time::sleep(SECOND / 50).await;
        }
    })
    .await;
    let first = &tasks(&store).await[0];
    assert_eq!(first.life.state.reason(), Some(EndReason::Canceled));
    gated.gate.close();
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_source_is_run_one_task_at_a_time() {
    let (store, gated) = (store(), GatedRunner::new());
    let sync = making::run("shop/orders", "every 1s");
    let engine = gated.run_as("shop", making::source).schedule(sync.clone()).start(&store).await;
    let fires = ledger_when(&store, &sync, "some times", |fires| fires.len() >= 3).await;
    assert!(events(&engine).await.is_empty());
    let tasks = tasks(&store).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!((tasks[0].handler.as_str(), &*tasks[0].collection), ("shop", "orders"));
    assert_eq!((tasks[0].event, tasks[0].planned_at), (None, Some(fires[0].planned)));
    assert!(fires.iter().all(|fire| fire.task.as_ref() == Some(&tasks[0].id)), "{fires:?}");
    assert_eq!(outcomes(&fires[1..]), vec![OVERLAP; fires.len() - 1]);
    gated.gate.close();
    engine.stop(TEST_TIMEOUT).await;
}
