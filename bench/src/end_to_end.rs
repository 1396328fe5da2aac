//! Measures the full lifecycle of events: emitted, handled by a handler that does nothing, ended, kept in the history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_engine::{Engine, Settings};

use crate::BenchOptions;
use crate::baseline::MeasuredStoreRun;
use crate::fixtures::{self, EventCounter};
use crate::report::{Figure, MeasurementUnit};
use crate::stores::{OpenedStore, RunEnvironment, StoreFactory};

pub(crate) const PRODUCER_COUNT: usize = 8;
pub(crate) const BATCH_SIZE: usize = 100;
/// The number of rounds. Each measures both sides, so that they have the same disk and the same noise.
pub(crate) const ROUNDS: usize = 4;

/// The number of slots that a server has by default; each commit finishes about as many tasks.
pub(crate) const DEFAULT_SLOTS: usize = 16;
/// The number of slots in the second measurement: handlers that do nothing end before the next commit, so each commit can
/// finish many tasks.
pub(crate) const MANY_SLOTS: usize = 2048;

/// A number of nodes on one database, and the slots of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSetup {
    pub(crate) node_count: usize,
    pub(crate) slots_per_node: usize,
}

impl NodeSetup {
    pub(crate) fn single_node(slots_per_node: usize) -> Self {
        Self { node_count: 1, slots_per_node }
    }
}

/// The sum of the events and times of several rounds.
#[derive(Default)]
pub(crate) struct ThroughputTotal {
    event_count: usize,
    seconds: f64,
}

impl ThroughputTotal {
    /// Adds a round of `events` at `rate` events per second.
    pub(crate) fn add(&mut self, events: usize, rate: f64) {
        self.event_count += events;
        self.seconds += events as f64 / rate;
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        self.event_count as f64 / self.seconds
    }
}

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
    slots: usize,
) -> anyhow::Result<Vec<Figure>> {
    // A commit for every sixteen tasks is slow: measure fewer events.
    let event_count = if slots == DEFAULT_SLOTS { options.event_count / 4 } else { options.event_count };
    let (mut measured, mut baseline, mut description) =
        (ThroughputTotal::default(), ThroughputTotal::default(), String::new());
    for _ in 0..ROUNDS {
        let stores = environment.new_store_factory()?;
        let run =
            measure_event_lifecycle(&stores, "end", event_count / ROUNDS, NodeSetup::single_node(slots))
                .await?;
        stores.flush_to_disk("end").await?;
        let baseline_result = stores.open_baseline().await?.measure_full_lifecycle(run).await?;
        measured.add(run.event_count, run.events_per_second);
        baseline.add(run.event_count, baseline_result.events_per_second);
        description = baseline_result.description;
    }
    let name =
        format!("end to end, {PRODUCER_COUNT} producers, {BATCH_SIZE} events at a time, {slots} slots");
    let figure = Figure::new(name, measured.events_per_second(), MeasurementUnit::PerSecond)
        .with_comparison(description, baseline.events_per_second());
    Ok(vec![if slots == MANY_SLOTS { figure.with_min_ratio(0.5) } else { figure }])
}

/// Runs about `event_count` events through their full lifecycle.
pub(crate) async fn measure_event_lifecycle(
    factory: &StoreFactory,
    name: &str,
    event_count: usize,
    nodes: NodeSetup,
) -> anyhow::Result<MeasuredStoreRun> {
    let handled = Arc::new(EventCounter::default());
    let (mut opened_stores, mut engines) = (Vec::new(), Vec::new());
    for _ in 0..nodes.node_count {
        let opened = factory.open_store(name).await?;
        engines.push(start_event_counting_engine(&opened, nodes.slots_per_node, &handled).await?);
        opened_stores.push(opened);
    }
    let batches_per_producer = (event_count / PRODUCER_COUNT / BATCH_SIZE).max(1);
    let events = batches_per_producer * PRODUCER_COUNT * BATCH_SIZE;
    let (commits, rows) = count_commits_and_written_rows(&opened_stores);
    let start = Instant::now();
    let producers = (0..PRODUCER_COUNT).map(|producer| {
        let engine = engines[producer % engines.len()].clone();
        tokio::spawn(async move {
            for round in 0..batches_per_producer {
                // Objects alternate among all producers, as with independent producers.
                engine
                    .emit(fixtures::new_emit_batch(
                        (round * PRODUCER_COUNT + producer) * BATCH_SIZE,
                        BATCH_SIZE,
                    )?)
                    .await?;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    handled.wait_until_count_reached(events as u64).await;
    fixtures::wait_until_no_unfinished_tasks(&*opened_stores[0].store).await?;
    let rate = events as f64 / start.elapsed().as_secs_f64();
    let (commits, rows) = (
        count_commits_and_written_rows(&opened_stores).0 - commits,
        count_commits_and_written_rows(&opened_stores).1 - rows,
    );
    for (engine, opened) in engines.iter().zip(&opened_stores) {
        engine.stop(Duration::from_secs(10)).await;
        opened.store.close();
    }
    let events_per_commit = (events as u64 / commits.max(1)).max(1) as usize;
    Ok(MeasuredStoreRun {
        event_count: events,
        events_per_second: rate,
        events_per_commit,
        written_rows_per_event: rows as f64 / events as f64,
    })
}

/// Starts an engine that counts the events that it handles.
async fn start_event_counting_engine(
    opened: &OpenedStore,
    slots: usize,
    handled: &Arc<EventCounter>,
) -> anyhow::Result<Engine> {
    let counter = handled.clone();
    let settings = Settings { slot_count: slots, ..Settings::default() };
    fixtures::start_engine_with_one_handler(opened.store.clone(), settings, move |_| counter.increment())
        .await
}

/// Returns the number of commits and of written rows of all stores.
fn count_commits_and_written_rows(stores: &[OpenedStore]) -> (u64, u64) {
    let counts = stores
        .iter()
        .map(|opened| (opened.writer_status.commit_count(), opened.writer_status.rows_written()));
    counts.fold((0, 0), |(commits, rows), (more, others)| (commits + more, rows + others))
}
