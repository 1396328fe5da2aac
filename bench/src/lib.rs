//! The measurements of `cargo xtask bench`: on this machine, with both sides of every comparison in one run.
//!
//! Figures from one machine say little about another, so everything is compared with something: throughput and
//! latency with a baseline (the same rows written by plain SQL, with the same durability), and the influence of a
//! backlog, a flood, idle queues, a limit, readers or a second node with the same measurement without it. Both sides
//! are printed with the result.
//!
//! - `stores/` creates stores: in a folder, or on a server. `filled_store.rs` fills them, `fixtures.rs` starts engines
//!   on them, `claiming_node.rs` claims tasks from them.
//! - `baseline/` writes the same rows by plain SQL or plain commands.
//! - Each part of a run has its own file; `bench_part.rs` lists the parts, and `report.rs` has their results.
//! - `bin/pointsman-bench/` is the program: its command line and the tables that it prints.

mod backlog;
mod baseline;
mod bench_part;
mod claiming_node;
mod concurrency_limit;
mod emit_throughput;
mod end_to_end;
mod filled_store;
mod fixtures;
mod full_load;
mod idle_queues;
mod latency;
mod orders;
mod process_memory;
mod readers;
mod report;
mod schedules;
mod stores;
mod tenant_flood;
mod two_nodes;
mod waiting_task_memory;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

pub use bench_part::{BenchPart, UnknownPartError};
pub use report::{BenchReport, Figure, MeasurementUnit, TimeSeries, TimeSeriesLine};
use stores::RunEnvironment;
pub use stores::StoreTarget;

/// The parts to measure, their sizes and durations.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The store that is measured.
    pub store_target: StoreTarget,
    /// The folder for SQLite's files; its disk is measured.
    pub dir: PathBuf,
    /// The number of events in the throughput measurements.
    pub event_count: usize,
    /// The duration of the latency measurement, in seconds; those of the flood and the readers follow from it.
    pub latency_seconds: u64,
    /// The number of waiting tasks in the measurements of the backlog and the flood.
    pub backlog_size: usize,
    /// The number of ended tasks in the history besides the backlog. Only PostgreSQL is filled with them.
    pub archived_task_count: usize,
    /// The duration of the measurement under full load, in seconds.
    pub full_load_seconds: u64,
    /// The number of idle queues in the measurement of idle queues.
    pub idle_queue_count: usize,
    /// The number of schedules in the measurement of schedules.
    pub schedule_count: usize,
    /// The number of readers that follow one object each by long poll; as many follow one by server-sent events.
    pub readers_per_protocol: usize,
    /// The number of orders that run through the chain.
    pub order_count: usize,
    /// The program of the server whose idle memory is measured.
    pub server_program: PathBuf,
    /// The parts to measure; all if empty.
    pub selected_parts: Vec<BenchPart>,
}

impl BenchOptions {
    /// The selected parts that are measured on this store.
    pub fn parts_to_measure(&self) -> impl Iterator<Item = BenchPart> {
        let is_selected =
            |part: &BenchPart| self.selected_parts.is_empty() || self.selected_parts.contains(part);
        BenchPart::ALL.into_iter().filter(|part| part.is_supported_on(&self.store_target)).filter(is_selected)
    }

    /// Returns the number of ended tasks that this kind of store is filled with.
    fn archived_task_count_for_target(&self) -> usize {
        match self.store_target {
            StoreTarget::Sqlite | StoreTarget::Redis { .. } => 0,
            StoreTarget::Postgres { .. } => self.archived_task_count,
        }
    }
}

/// Returns the number of steps of a run, for progress reports.
pub fn count_progress_steps(options: &BenchOptions) -> u64 {
    options.parts_to_measure().map(|part| part.count_progress_steps(options)).sum()
}

/// Runs every measurement, and calls `progress` with the index and the name of each step that begins.
pub fn run_benchmarks(options: &BenchOptions, progress: &dyn Fn(u64, &str)) -> anyhow::Result<BenchReport> {
    run_benchmarks_until(options, progress, std::future::pending()).map(Option::unwrap_or_default)
}

/// The time that a failed run waits for `stop`. Programs and servers that were started for a run receive an interrupt
/// too, so that the run may fail before `stop` is ready.
const MAX_STOP_WAIT_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Runs the measurements until they are complete or `stop` is ready. After a stop there is no report, and everything that
/// was created for the run is removed.
pub fn run_benchmarks_until(
    options: &BenchOptions,
    progress: &dyn Fn(u64, &str),
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Option<BenchReport>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut stop = pin!(stop);
    let outcome = runtime.block_on(async {
        tokio::select! {
            // `stop` is polled before anything is created.
            biased;
            () = &mut stop => Ok(None),
            measured = measure_selected_parts(options, progress) => match measured {
                Ok(report) => Ok(Some(report)),
                Err(error) => tokio::select! {
                    () = &mut stop => Ok(None),
                    () = tokio::time::sleep(MAX_STOP_WAIT_AFTER_FAILURE) => Err(error),
                }
            }
        }
    });
    // Does not wait for threads that still run: their results are not needed any more.
    runtime.shutdown_background();
    outcome
}

async fn measure_selected_parts(
    options: &BenchOptions,
    progress: &dyn Fn(u64, &str),
) -> anyhow::Result<BenchReport> {
    let environment = RunEnvironment::connect_or_start(options)?;
    let mut report = BenchReport::default();
    let mut step = 0;
    let mut begin_step = |name: &str| {
        progress(step, name);
        step += 1;
    };
    for part in options.parts_to_measure() {
        report.extend(part.measure(options, &environment, &mut begin_step).await?);
    }
    Ok(report)
}
