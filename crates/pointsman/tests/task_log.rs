//! Handlers' `tracing` events are written to their tasks' logs. A test program of its own, because a subscriber is
//! global to the program.

#![allow(clippy::unwrap_used)]

use std::sync::Once;
use std::time::Duration;

use pointsman::prelude::*;
use pointsman::{LogLevel, TaskLogLayer};
use serde::{Deserialize, Serialize};
use tracing_subscriber::prelude::*;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "job", key = "job:{0}")]
struct Job(u64);

/// Starts a bus on a new store with this handler only.
async fn start_bus<Args: 'static>(folder: &tempfile::TempDir, handler: impl pointsman::Handler<Args>) -> Bus {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| tracing_subscriber::registry().with(TaskLogLayer::new()).init());
    let url = format!("sqlite:{}", folder.path().join("bus.db").display());
    Bus::builder(&url).handler("h", handler).retries(0).on::<Job>("h").start().await.unwrap()
}

/// Runs a job, and returns its log.
async fn run_and_read_log(bus: &Bus, job: u64) -> Vec<(LogLevel, String)> {
    let emitted = bus.emit(Job(job)).await.unwrap();
    let finished = tokio::time::timeout(Duration::from_secs(60), bus.wait_for_tasks(&emitted)).await;
    finished.expect("timed out").unwrap();
    let lines = bus.read_task_logs(&emitted.tasks[0]).await.unwrap();
    lines.into_iter().map(|line| (line.level, line.message)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tracing_events_reach_the_log_of_their_own_task() {
    let folder = tempfile::tempdir().unwrap();
    let bus = start_bus(&folder, |job: Job, ctx: Ctx| async move {
        tracing::info!(number = job.0, "a line with a field");
        tokio::task::yield_now().await;
        tokio::spawn(ctx.run_in_attempt(async { tracing::error!("a line of a spawned future") })).await?;
        tokio::spawn(async { tracing::info!("a line outside the attempt") }).await?;
        tracing::debug!("a debug line, which is not logged");
        Ok::<_, HandlerError>(())
    })
    .await;
    let logs = futures::future::join_all((0..8).map(|job| run_and_read_log(&bus, job))).await;
    for (job, log) in logs.into_iter().enumerate() {
        let expected = [
            (LogLevel::Info, format!("a line with a field number={job}")),
            (LogLevel::Error, "a line of a spawned future".into()),
        ];
        assert_eq!(log, expected);
    }
    bus.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_identical_lines_are_all_logged() {
    let folder = tempfile::tempdir().unwrap();
    let bus = start_bus(&folder, |_: Job| async {
        (0..10_000).for_each(|_| tracing::info!("an identical line that must be kept"))
    })
    .await;
    let log = run_and_read_log(&bus, 1).await;
    assert_eq!(log.len(), 10_000);
    assert!(
        log.iter().all(|line| *line == (LogLevel::Info, "an identical line that must be kept".to_owned()))
    );
    bus.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_before_a_panic_are_kept() {
    async fn log_and_panic(_: Job) {
        tracing::info!("a line before the panic");
        panic!("the handler panics");
    }
    let folder = tempfile::tempdir().unwrap();
    let bus = start_bus(&folder, log_and_panic).await;
    assert_eq!(run_and_read_log(&bus, 1).await, [(LogLevel::Info, "a line before the panic".to_owned())]);
    bus.stop().await;
}
