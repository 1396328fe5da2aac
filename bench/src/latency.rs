//! Measures the time from the emit until the handler starts, at fifty events per second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pointsman_engine::Settings;

use crate::report::{Figure, MeasurementUnit, percentile};
use crate::stores::RunEnvironment;
use crate::{BenchOptions, fixtures};

const EMIT_OR_COMMIT_INTERVAL: Duration = Duration::from_millis(10);

/// Measures the time from an emit to the start of the handler, and that of a baseline commit. Both alternate, so that
/// they have the same disk and the same noise.
pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<Vec<Figure>> {
    let stores = environment.new_store_factory()?;
    let store = stores.open_store("latency").await?.store;
    let mut baseline = stores.open_baseline().await?;
    let started: Arc<Mutex<Option<Instant>>> = Arc::default();
    let handled = Arc::new(fixtures::EventCounter::default());
    let (start_slot, counter) = (started.clone(), handled.clone());
    let engine = fixtures::start_engine_with_one_handler(store, Settings::default(), move |_| {
        *start_slot.lock().unwrap_or_else(|e| e.into_inner()) = Some(Instant::now());
        counter.increment();
    })
    .await?;
    let rounds = (options.latency_seconds * 1000 / EMIT_OR_COMMIT_INTERVAL.as_millis() as u64 / 2).max(50);
    let (mut emit_times, mut commits) = (Vec::new(), Vec::new());
    let mut ticker = tokio::time::interval(EMIT_OR_COMMIT_INTERVAL);
    for round in 0..rounds {
        ticker.tick().await;
        commits.push(baseline.measure_commit_ms(round as i64).await?);
        ticker.tick().await;
        let emitted_at = Instant::now();
        let emitting = engine.emit(fixtures::new_emit_batch(round as usize, 1)?);
        let (receipt, ()) = tokio::join!(emitting, handled.wait_until_count_reached(round + 1));
        receipt?;
        if let Some(start) = started.lock().unwrap_or_else(|e| e.into_inner()).take() {
            emit_times.push((start - emitted_at).as_secs_f64() * 1000.0);
        }
    }
    engine.stop(Duration::from_secs(5)).await;
    let figure = |quantile: f64, name: &str, goal: f64, emit_times: &mut Vec<f64>, commits: &mut Vec<f64>| {
        let what = format!("emit to handler start, {name}, at 100/s");
        let figure = Figure::new(what, percentile(emit_times, quantile), MeasurementUnit::Milliseconds)
            .with_comparison(format!("one bare durable commit, {name}"), percentile(commits, quantile));
        match environment {
            RunEnvironment::SqliteFolder(_) => figure.with_max_ratio(goal),
            // There is no goal on a server, where each query is a network round trip.
            RunEnvironment::PostgresServer(_) | RunEnvironment::RedisServer(_) => figure,
        }
    };
    Ok(vec![
        figure(0.5, "p50", 2.5, &mut emit_times, &mut commits),
        figure(0.99, "p99", 5.0, &mut emit_times, &mut commits),
    ])
}
