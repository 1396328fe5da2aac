//! Measures how many emits are acknowledged per second.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use pointsman_engine::{EnabledServices, Settings};

use crate::baseline::MeasuredStoreRun;
use crate::report::{Figure, MeasurementUnit};
use crate::stores::{OpenedStore, RunEnvironment, StoreTarget};
use crate::{BenchOptions, fixtures};

/// A number of producers, each of which emits batches and waits for each acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProducerLoad {
    pub(crate) producer_count: usize,
    pub(crate) batch_size: usize,
}

const SQLITE_PRODUCER_LOADS: [ProducerLoad; 4] = [
    ProducerLoad { producer_count: 1, batch_size: 1 },
    ProducerLoad { producer_count: 64, batch_size: 1 },
    ProducerLoad { producer_count: 1, batch_size: 100 },
    ProducerLoad { producer_count: 64, batch_size: 100 },
];

const POSTGRES_AND_REDIS_PRODUCER_LOADS: [ProducerLoad; 4] = [
    ProducerLoad { producer_count: 1, batch_size: 1 },
    ProducerLoad { producer_count: 16, batch_size: 1 },
    ProducerLoad { producer_count: 1, batch_size: 100 },
    ProducerLoad { producer_count: 16, batch_size: 100 },
];

/// Returns the loads that are measured on a store.
pub(crate) fn producer_loads_for_target(target: &StoreTarget) -> [ProducerLoad; 4] {
    match target {
        StoreTarget::Sqlite => SQLITE_PRODUCER_LOADS,
        StoreTarget::Postgres { .. } | StoreTarget::Redis { .. } => POSTGRES_AND_REDIS_PRODUCER_LOADS,
    }
}

impl fmt::Display for ProducerLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let producers = if self.producer_count == 1 {
            "1 producer".into()
        } else {
            format!("{} producers", self.producer_count)
        };
        match self.batch_size {
            1 => write!(f, "{producers}, 1 event at a time"),
            batch => write!(f, "{producers}, {batch} events at a time"),
        }
    }
}

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
    load: ProducerLoad,
) -> anyhow::Result<Vec<Figure>> {
    let stores = environment.new_store_factory()?;
    let OpenedStore { store, writer_status } = stores.open_store("emit").await?;
    // One producer that waits for each commit is slow: measure fewer events.
    let events = if load.producer_count == 1 && load.batch_size == 1 {
        options.event_count / 20
    } else {
        options.event_count
    };
    let events = events.max(load.producer_count * load.batch_size);
    let services = EnabledServices { scheduler: false, worker: false, ..EnabledServices::default() };
    let settings = Settings { slot_count: 1, enabled_services: services, ..Settings::default() };
    let engine = Arc::new(fixtures::start_engine_with_one_handler(store.clone(), settings, |_| {}).await?);
    let commits = writer_status.commit_count();
    let start = Instant::now();
    let batches_per_producer = events / load.producer_count / load.batch_size;
    let producers = (0..load.producer_count).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for round in 0..batches_per_producer {
                let from = (producer * batches_per_producer + round) * load.batch_size;
                engine.emit(fixtures::new_emit_batch(from, load.batch_size)?).await?;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    let emitted = batches_per_producer * load.producer_count * load.batch_size;
    let rate = emitted as f64 / start.elapsed().as_secs_f64();
    let events_per_commit =
        (emitted as u64 / (writer_status.commit_count() - commits).max(1)).max(1) as usize;
    engine.stop(std::time::Duration::ZERO).await;
    store.close();

    let run = MeasuredStoreRun {
        event_count: emitted,
        events_per_second: rate,
        events_per_commit,
        written_rows_per_event: 0.0,
    };
    let baseline_result = stores.open_baseline().await?.measure_emits(run).await?;
    let figure = Figure::new(format!("emits acknowledged, {load}"), rate, MeasurementUnit::PerSecond);
    Ok(vec![figure.with_comparison(baseline_result.description, baseline_result.events_per_second)])
}
