//! Measures whether the tables of a PostgreSQL server stay the same size at full load for minutes: samples their size
//! and their dead rows.
//!
//! No more than a few thousand tasks wait at a time, and retention keeps the newest of the journal and the history, so
//! that nothing has a reason to grow. In the first third of the time the tables reach their size. The last third is
//! compared with the second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pointsman_core::journal::Retention;
use pointsman_engine::{Engine, Settings};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::BenchOptions;
use crate::end_to_end::{BATCH_SIZE, MANY_SLOTS, PRODUCER_COUNT};
use crate::fixtures::{self, EventCounter};
use crate::report::{BenchReport, Figure, MeasurementUnit, TimeSeries};
use crate::stores::{RunEnvironment, StoreFactory};

const JOURNAL_TABLE: &str = "journal";
const SAMPLED_TABLES: [&str; 4] = ["task", "queue", "commit_version", JOURNAL_TABLE];

/// How often the tables are sampled during the measurement.
const SAMPLE_COUNT: u32 = 24;

/// The maximum number of waiting tasks.
const MAX_WAITING_TASKS: usize = 10_000;

/// The number of events and of ended tasks that retention keeps.
const RETAINED_EVENT_AND_TASK_COUNT: u64 = 250_000;

/// The number of events after which the journal no longer grows. It is partitioned, and a partition is as large as
/// what is kept: by then the first partition has been dropped.
const EVENTS_UNTIL_JOURNAL_STOPS_GROWING: u64 = 2 * RETAINED_EVENT_AND_TASK_COUNT;

/// Reads the size of each table with its indexes and partitions, and the number of its dead rows.
const TABLE_SIZES_AND_DEAD_ROWS_SQL: &str = "
    SELECT sum(pg_total_relation_size(part.oid))::bigint, coalesce(sum(pg_stat_get_dead_tuples(part.oid)), 0)::bigint
    FROM unnest($1::text[]) WITH ORDINALITY AS w (name, i)
    CROSS JOIN LATERAL (
        SELECT to_regclass('pointsman.' || w.name)::oid AS oid
        UNION ALL
        SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('pointsman.' || w.name)
    ) AS part
    GROUP BY w.i ORDER BY w.i";

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<BenchReport> {
    let stores = environment.new_store_factory()?;
    let StoreFactory::Postgres(databases) = &stores else { bail!("the part `load` runs on PostgreSQL only") };
    let opened = stores.open_store("load").await?;
    let client = databases.connect("load").await?;
    let handled = Arc::new(EventCounter::default());
    let counter = handled.clone();
    let retention = Retention { max_count: RETAINED_EVENT_AND_TASK_COUNT, ..Retention::default() };
    let settings = Settings {
        slot_count: MANY_SLOTS,
        journal_retention: retention,
        history_retention: retention,
        ..Settings::default()
    };
    let engine =
        fixtures::start_engine_with_one_handler(opened.store.clone(), settings, move |_| counter.increment())
            .await?;
    let mut producers = LoadProducers::start(&engine, &handled);
    let time = Duration::from_secs(options.full_load_seconds);
    let samples = tokio::select! {
        samples = collect_samples(&client, &handled, time) => samples?,
        failed = producers.wait_for_failure() => return Err(failed),
    };
    producers.stop().await?;
    engine.stop(Duration::from_secs(10)).await;
    opened.store.close();
    Ok(build_report(options.full_load_seconds, &samples))
}

/// Producers that emit at full speed, and pause while too many tasks wait.
struct LoadProducers {
    stop_requested: Arc<AtomicBool>,
    spawned_producers: JoinSet<anyhow::Result<()>>,
}

impl LoadProducers {
    fn start(engine: &Engine, handled: &Arc<EventCounter>) -> Self {
        let (stop_requested, emitted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut spawned_producers = JoinSet::new();
        for _ in 0..PRODUCER_COUNT {
            let (engine, handled) = (engine.clone(), handled.clone());
            let (stopped, emitted) = (stop_requested.clone(), emitted.clone());
            spawned_producers.spawn(async move {
                while !stopped.load(Ordering::Relaxed) {
                    let from = emitted.fetch_add(BATCH_SIZE, Ordering::Relaxed);
                    handled.wait_until_count_reached(from.saturating_sub(MAX_WAITING_TASKS) as u64).await;
                    engine.emit(fixtures::new_emit_batch(from, BATCH_SIZE)?).await?;
                }
                Ok(())
            });
        }
        Self { stop_requested, spawned_producers }
    }

    /// Waits until a producer fails.
    async fn wait_for_failure(&mut self) -> anyhow::Error {
        match self.spawned_producers.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => error.into(),
            Some(Ok(Ok(()))) | None => anyhow::anyhow!("a producer ended before it was stopped"),
        }
    }

    async fn stop(mut self) -> anyhow::Result<()> {
        self.stop_requested.store(true, Ordering::Relaxed);
        while let Some(ended) = self.spawned_producers.join_next().await {
            ended.context("a producer panicked")??;
        }
        Ok(())
    }
}

/// One sample of the counters and tables.
struct LoadSample {
    /// Seconds since the start.
    elapsed_seconds: f64,
    /// Events handled so far.
    handled_event_count: u64,
    /// Events handled per second since the previous sample.
    handled_per_second: f64,
    /// The size in megabytes and the number of dead rows of each table.
    table_megabytes_and_dead_rows: Vec<(f64, f64)>,
}

async fn collect_samples(
    client: &Client,
    handled: &EventCounter,
    time: Duration,
) -> anyhow::Result<Vec<LoadSample>> {
    let statement = client.prepare(TABLE_SIZES_AND_DEAD_ROWS_SQL).await?;
    let start = Instant::now();
    let (mut before, mut samples) = ((0.0, 0), Vec::new());
    let mut ticker = tokio::time::interval(time / SAMPLE_COUNT);
    ticker.tick().await;
    for _ in 0..SAMPLE_COUNT {
        ticker.tick().await;
        let (elapsed_seconds, handled) = (start.elapsed().as_secs_f64(), handled.count());
        let rate = (handled - before.1) as f64 / (elapsed_seconds - before.0);
        before = (elapsed_seconds, handled);
        let mut tables = Vec::new();
        for row in client.query(&statement, &[&SAMPLED_TABLES.as_slice()]).await? {
            let (bytes, dead): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            tables.push((bytes as f64 / 1e6, dead as f64));
        }
        samples.push(LoadSample {
            elapsed_seconds,
            handled_event_count: handled,
            handled_per_second: rate,
            table_megabytes_and_dead_rows: tables,
        });
    }
    Ok(samples)
}

/// Compares the last third with the second, and adds all samples as a time series.
fn build_report(seconds: u64, samples: &[LoadSample]) -> BenchReport {
    let third = samples.len() / 3;
    let (second_third, last_third) = (&samples[third..2 * third], &samples[2 * third..]);
    let max_value = |samples: &[LoadSample], value: &dyn Fn(&LoadSample) -> f64| {
        samples.iter().map(value).fold(0.0, f64::max)
    };
    let mean_rate = |samples: &[LoadSample]| {
        samples.iter().map(|sample| sample.handled_per_second).sum::<f64>() / samples.len() as f64
    };
    let name = format!("events end to end, last third of {seconds} s at full load");
    let mut figures = vec![
        Figure::new(name, mean_rate(last_third), MeasurementUnit::PerSecond)
            .with_comparison("in the second third", mean_rate(second_third)),
    ];
    let mut time_series = TimeSeries::new(format!("{seconds} s at full load"));
    time_series.add_line(
        "handled",
        MeasurementUnit::PerSecond,
        samples.iter().map(|sample| sample.handled_per_second),
    );
    for (i, table) in SAMPLED_TABLES.iter().enumerate() {
        let size = |sample: &LoadSample| sample.table_megabytes_and_dead_rows[i].0;
        let dead = |sample: &LoadSample| sample.table_megabytes_and_dead_rows[i].1;
        let name = format!("pointsman.{table}, maximum size in the last third of {seconds} s at full load");
        let figure = Figure::new(name, max_value(last_third, &size), MeasurementUnit::Megabytes)
            .with_comparison("in the second third", max_value(second_third, &size));
        // The journal may grow until its first partition has been dropped.
        let grows = *table == JOURNAL_TABLE
            && second_third
                .first()
                .is_none_or(|sample| sample.handled_event_count < EVENTS_UNTIL_JOURNAL_STOPS_GROWING);
        figures.push(if grows { figure } else { figure.with_max_ratio_and_offset(1.2, 1.0) });
        let name =
            format!("dead rows of pointsman.{table}, maximum in the last third of {seconds} s at full load");
        let figure = Figure::new(name, max_value(last_third, &dead), MeasurementUnit::Rows);
        figures.push(
            figure
                .with_comparison("in the second third", max_value(second_third, &dead))
                .with_max_ratio_and_offset(1.2, 10_000.0),
        );
        time_series.add_line(*table, MeasurementUnit::Megabytes, samples.iter().map(size));
        time_series.add_line(format!("dead in {table}"), MeasurementUnit::Rows, samples.iter().map(dead));
    }
    time_series.times = samples.iter().map(|sample| sample.elapsed_seconds).collect();
    BenchReport { figures, time_series: vec![time_series] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_samples_with_table_size(size: impl Fn(u32) -> f64) -> Vec<LoadSample> {
        let tables = |n| vec![(size(n), 0.0); SAMPLED_TABLES.len()];
        (0..SAMPLE_COUNT)
            .map(|n| LoadSample {
                elapsed_seconds: f64::from(n),
                handled_event_count: EVENTS_UNTIL_JOURNAL_STOPS_GROWING,
                handled_per_second: 1.0,
                table_megabytes_and_dead_rows: tables(n),
            })
            .collect()
    }

    fn are_all_goals_reached(samples: &[LoadSample]) -> bool {
        build_report(24, samples).figures.iter().all(|figure| figure.goal_reached != Some(false))
    }

    #[test]
    fn tables_that_stop_growing_count_as_flat() {
        assert!(are_all_goals_reached(&new_samples_with_table_size(|n| f64::from(n.min(8)) * 100.0)));
        assert!(
            are_all_goals_reached(&new_samples_with_table_size(|n| 500.0 + f64::from(n % 4) * 100.0)),
            "a sawtooth"
        );
        assert!(
            are_all_goals_reached(&new_samples_with_table_size(|n| 0.01 * f64::from(n))),
            "a few more pages do not count"
        );
    }

    #[test]
    fn tables_that_keep_growing_do_not_count_as_flat() {
        assert!(!are_all_goals_reached(&new_samples_with_table_size(|n| f64::from(n) * 100.0)));
    }

    #[test]
    fn the_journal_may_grow_until_its_first_partition_is_dropped() {
        let mut samples = new_samples_with_table_size(|_| 100.0);
        for (n, sample) in samples.iter_mut().enumerate() {
            (sample.handled_event_count, sample.table_megabytes_and_dead_rows[3].0) =
                (n as u64, 100.0 * n as f64);
        }
        assert!(are_all_goals_reached(&samples));
        samples
            .iter_mut()
            .for_each(|sample| sample.handled_event_count += EVENTS_UNTIL_JOURNAL_STOPS_GROWING);
        assert!(!are_all_goals_reached(&samples));
    }
}
