//! What handlers log through `tracing` stands in their tasks' logs. In a program of its own, because a
//! subscriber is for the whole program.

#![allow(clippy::unwrap_used)]

use std::sync::Once;
use std::time::Duration;

use pointsman::prelude::*;
use pointsman::{Level, TaskLog};
use serde::{Deserialize, Serialize};
use tracing_subscriber::prelude::*;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "job", key = "job:{0}")]
struct Job(u64);

/// A bus on a store of its own whose one handler is this.
async fn bus<Args: 'static>(folder: &tempfile::TempDir, handler: impl pointsman::Handler<Args>) -> Bus {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| tracing_subscriber::registry().with(TaskLog::new()).init());
    let url = format!("sqlite:{}", folder.path().join("bus.db").display());
    Bus::builder(&url).handler("h", handler).retries(0).on::<Job>("h").start().await.unwrap()
}

/// Runs a job, and returns its log.
async fn log_of(bus: &Bus, job: u64) -> Vec<(Level, String)> {
    let emitted = bus.emit(Job(job)).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), bus.ended(&emitted)).await;
    ended.expect("it never ended").unwrap();
    let lines = bus.logs(&emitted.tasks[0]).await.unwrap();
    lines.into_iter().map(|line| (line.level, line.message)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_reach_the_log_of_their_own_task() {
    let folder = tempfile::tempdir().unwrap();
    let bus = bus(&folder, |job: Job, ctx: Ctx| async move {
        tracing::info!(number = job.0, "begun");
        tokio::task::yield_now().await;
        tokio::spawn(ctx.scope(async { tracing::error!("from a task of its own") })).await?;
        tokio::spawn(async { tracing::info!("of no attempt") }).await?;
        tracing::debug!("too quiet");
        Ok::<_, HandlerError>(())
    })
    .await;
    let logs = futures::future::join_all((0..8).map(|job| log_of(&bus, job))).await;
    for (job, log) in logs.into_iter().enumerate() {
        let expected =
            [(Level::Info, format!("begun number={job}")), (Level::Error, "from a task of its own".into())];
        assert_eq!(log, expected);
    }
    bus.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_identical_lines_go_in_and_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let bus = bus(&folder, |_: Job| async { (0..10_000).for_each(|_| tracing::info!("same")) }).await;
    let log = log_of(&bus, 1).await;
    assert_eq!(log.len(), 10_000);
    assert!(log.iter().all(|line| *line == (Level::Info, "same".to_owned())));
    bus.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_before_a_panic_are_kept() {
    async fn careless(_: Job) {
        tracing::info!("the last words");
        panic!("over");
    }
    let folder = tempfile::tempdir().unwrap();
    let bus = bus(&folder, careless).await;
    assert_eq!(log_of(&bus, 1).await, [(Level::Info, "the last words".to_owned())]);
    bus.stop().await;
}
