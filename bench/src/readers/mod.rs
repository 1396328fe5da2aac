//! Measures how many readers of the journal affect the producers.
//!
//! ```text
//!                                            ┌─▶ 1,000 by long poll ─┐  each follows one object,
//!   producers ─▶ a real server ─▶ loopback ──┤                       ├─ or fewer of them follow
//!                                            └─▶ 1,000 by SSE ───────┘  everything
//! ```
//!
//! The server and the readers are in this process, but the readers have their own thread, and receive everything over
//! HTTP. Each reader checks that it receives every event of its object exactly once and in order; otherwise the
//! measurement fails. There is a second server without readers. The two alternate, so that both have the same disk and
//! the same noise.
//!
//! The delivery time of an event, until it has reached all of its readers, is measured from the call that emits it,
//! commit included, with all readers and with a quarter of them. The delivery time may grow in proportion to the number
//! of readers, and no faster.

mod bench_server;
mod file_limit;
mod reader;
mod reader_group;

use std::path::Path;
use std::time::Duration;

use crate::BenchOptions;
use crate::emit_throughput::ProducerLoad;
use crate::report::{Figure, MeasurementUnit, percentile};
use bench_server::BenchServer;
use reader_group::{ReaderGroup, ReaderScope};

/// The number of steps of this part, which are reported as progress.
pub(crate) const PROGRESS_STEP_COUNT: u64 = 3;

/// Events per second while each reader follows one object.
const ONE_OBJECT_EMIT_RATE: usize = 5_000;
/// Events per second while each reader follows all objects.
const ALL_OBJECTS_EMIT_RATE: usize = 500;
/// The number of readers of one object for each reader of all objects.
const ALL_OBJECTS_READER_DIVISOR: usize = 10;
/// How many times as many readers the larger group has as the smaller one.
const GROUP_SIZE_RATIO: usize = 4;
/// The duration of a round at full speed on one server.
const ROUND_DURATION: Duration = Duration::from_secs(2);
/// The number of rounds at full speed.
const ROUNDS: usize = 3;

/// The loads of producers at full speed: about the rate of the paced measurement, and the maximum.
const FULL_SPEED_LOADS: [ProducerLoad; 2] =
    [ProducerLoad { producer_count: 2, batch_size: 1 }, ProducerLoad { producer_count: 8, batch_size: 100 }];

pub(crate) async fn measure(
    options: &BenchOptions,
    begin_step: &mut dyn FnMut(&str),
) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let requested = 2 * options.readers_per_protocol;
    let readers = file_limit::raise_file_limit_and_cap_readers(requested);
    let bench =
        ReaderBench::start(dir.path(), readers, Duration::from_secs(options.latency_seconds) / 4).await?;
    begin_step(&format!(
        "{readers} readers of one object each at {ONE_OBJECT_EMIT_RATE} events/s, and a quarter of them"
    ));
    let mut figures = bench.measure_readers_of_one_object().await?;
    begin_step(&format!("emits at full speed with {readers} readers, and without them"));
    figures.extend(bench.measure_emits_at_full_speed().await?);
    begin_step(&format!(
        "{} readers of all objects at {ALL_OBJECTS_EMIT_RATE} events/s",
        readers / ALL_OBJECTS_READER_DIVISOR
    ));
    figures.extend(bench.measure_readers_of_all_objects().await?);
    bench.stop().await;
    if readers < requested {
        for figure in &mut figures {
            figure.name.push_str(&format!(
                " (fewer than {requested}: the limit on open files is too low; raise `ulimit -n`)"
            ));
        }
    }
    Ok(figures)
}

/// Two servers, one with readers and one without.
struct ReaderBench {
    server_without_readers: BenchServer,
    server_with_readers: BenchServer,
    reader_count: usize,
    emit_duration: Duration,
}

/// The result of a paced measurement with a group of readers.
struct PacedEmitResult {
    emit_rate: f64,
    /// The time until each event had reached all of its readers, in milliseconds.
    delivery_times_ms: Vec<f64>,
}

impl ReaderBench {
    /// Starts both servers, with as many objects as readers.
    async fn start(dir: &Path, readers: usize, time: Duration) -> anyhow::Result<Self> {
        let server_without_readers = BenchServer::start(dir, "calm.db", readers, readers).await?;
        let server_with_readers = BenchServer::start(dir, "watched.db", readers, readers).await?;
        Ok(Self { server_without_readers, server_with_readers, reader_count: readers, emit_duration: time })
    }

    async fn measure_readers_of_one_object(&self) -> anyhow::Result<Vec<Figure>> {
        let without =
            self.server_without_readers.emit_at_rate(ONE_OBJECT_EMIT_RATE, self.emit_duration).await?;
        let few = self
            .measure_emits_at_rate_with_readers(
                ReaderScope::OneObjectEach,
                self.reader_count / GROUP_SIZE_RATIO,
                ONE_OBJECT_EMIT_RATE,
            )
            .await?;
        let all = self
            .measure_emits_at_rate_with_readers(
                ReaderScope::OneObjectEach,
                self.reader_count,
                ONE_OBJECT_EMIT_RATE,
            )
            .await?;
        let readers_label = format!("{} readers of one object each", self.reader_count);
        let name = format!(
            "events emitted at {ONE_OBJECT_EMIT_RATE}/s, {readers_label}, half by long poll and half by SSE"
        );
        let mut figures = vec![
            Figure::new(name, all.emit_rate, MeasurementUnit::PerSecond)
                .with_comparison("without readers", without)
                .with_min_ratio(0.7),
        ];
        figures.extend(compare_delivery_times(&readers_label, ONE_OBJECT_EMIT_RATE, all, few));
        Ok(figures)
    }

    async fn measure_readers_of_all_objects(&self) -> anyhow::Result<Vec<Figure>> {
        let readers = self.reader_count / ALL_OBJECTS_READER_DIVISOR;
        let without =
            self.server_without_readers.emit_at_rate(ALL_OBJECTS_EMIT_RATE, self.emit_duration).await?;
        let few = self
            .measure_emits_at_rate_with_readers(
                ReaderScope::AllObjects,
                readers / GROUP_SIZE_RATIO,
                ALL_OBJECTS_EMIT_RATE,
            )
            .await?;
        let all = self
            .measure_emits_at_rate_with_readers(ReaderScope::AllObjects, readers, ALL_OBJECTS_EMIT_RATE)
            .await?;
        let readers_label = format!("{readers} readers of all objects");
        let name = format!("events emitted at {ALL_OBJECTS_EMIT_RATE}/s, {readers_label}");
        let mut figures = vec![
            Figure::new(name, all.emit_rate, MeasurementUnit::PerSecond)
                .with_comparison("without readers", without)
                .with_min_ratio(0.7),
        ];
        figures.extend(compare_delivery_times(&readers_label, ALL_OBJECTS_EMIT_RATE, all, few));
        Ok(figures)
    }

    /// Emits at a steady rate with this many readers.
    async fn measure_emits_at_rate_with_readers(
        &self,
        scope: ReaderScope,
        readers: usize,
        rate: usize,
    ) -> anyhow::Result<PacedEmitResult> {
        let mut group = ReaderGroup::start(&self.server_with_readers, scope, readers).await?;
        let rate = self.server_with_readers.emit_at_rate(rate, self.emit_duration).await?;
        group.wait_until_caught_up(&self.server_with_readers).await?;
        Ok(PacedEmitResult { emit_rate: rate, delivery_times_ms: group.take_delivery_times() })
    }

    /// Emits as fast as emits are acknowledged, with readers and without.
    async fn measure_emits_at_full_speed(&self) -> anyhow::Result<Vec<Figure>> {
        let round_duration = ROUND_DURATION.min(self.emit_duration / 2);
        let mut group =
            ReaderGroup::start(&self.server_with_readers, ReaderScope::OneObjectEach, self.reader_count)
                .await?;
        let mut figures = Vec::new();
        for load in FULL_SPEED_LOADS {
            let (mut with, mut without) = (0.0, 0.0);
            for _ in 0..ROUNDS {
                without += self.server_without_readers.emit_at_full_speed(load, round_duration).await?;
                with += self.server_with_readers.emit_at_full_speed(load, round_duration).await?;
                group.wait_until_caught_up(&self.server_with_readers).await?;
            }
            let name =
                format!("emits acknowledged, {load}, {} readers of one object each", self.reader_count);
            let figure = Figure::new(name, with / ROUNDS as f64, MeasurementUnit::PerSecond)
                .with_comparison("without readers", without / ROUNDS as f64);
            // Batches contain more events than the readers can receive on the cores that they share with the server.
            figures.push(if load.batch_size == 1 { figure.with_min_ratio(0.7) } else { figure });
        }
        Ok(figures)
    }

    async fn stop(self) {
        self.server_without_readers.stop().await;
        self.server_with_readers.stop().await;
    }
}

/// Compares the delivery times with those of a quarter of the readers.
fn compare_delivery_times(
    readers_label: &str,
    rate: usize,
    mut all: PacedEmitResult,
    mut few: PacedEmitResult,
) -> Vec<Figure> {
    [(0.5, "p50"), (0.99, "p99")]
        .map(|(quantile, label)| {
            let name =
                format!("delivery time to all readers of an event, {label}, {readers_label}, at {rate}/s");
            Figure::new(name, percentile(&mut all.delivery_times_ms, quantile), MeasurementUnit::Milliseconds)
                .with_comparison(
                    format!("with a quarter of them, {label}"),
                    percentile(&mut few.delivery_times_ms, quantile),
                )
                .with_max_ratio(GROUP_SIZE_RATIO as f64)
        })
        .into()
}
