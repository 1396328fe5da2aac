//! A server with its own store, and the producers that emit to it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use pointsman_core::store::EmitBatch;
use pointsman_core::{EventId, EventType, Json, NewEvent, ObjectKey};
use pointsman_engine::{EnabledServices, Engine, HandlerOutcome, Setup};
use pointsman_server::Server;
use pointsman_server::config::{ConfigInputs, StoreUrl};
use tokio::task::JoinSet;
use tokio::time::interval_at;

use crate::emit_throughput::ProducerLoad;
use crate::fixtures;

/// The type of the events, and the name of the handler whose tasks they create. No task is run.
pub(super) const EVENT_TYPE: &str = "bench.watched";

/// The number of producers that emit at a steady rate, one after another.
const PACED_PRODUCER_COUNT: usize = 5;
/// The time between two batches of a producer that emits at a steady rate.
const EMIT_INTERVAL: Duration = Duration::from_millis(10);
/// The number of connections that the server allows besides those of readers.
const SPARE_CONNECTIONS: usize = 64;

static CLOCK_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the microseconds since the first call. Payloads contain this as the time of the emit.
pub(super) fn micros_since_clock_start() -> u64 {
    u64::try_from(CLOCK_START.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Returns the key of an object.
pub(super) fn object_key(object: usize) -> String {
    format!("watched:{object}")
}

pub(super) struct BenchServer {
    server: Server,
    address: SocketAddr,
    token: String,
    /// The number of events of each object.
    event_counts_by_object: Arc<Vec<AtomicU64>>,
}

impl BenchServer {
    pub(super) async fn start(
        dir: &Path,
        name: &str,
        objects: usize,
        readers: usize,
    ) -> anyhow::Result<Self> {
        let mut config = ConfigInputs { working_dir: dir.into(), ..ConfigInputs::default() }.load_config()?;
        config.store_url = StoreUrl::Sqlite { path: dir.join(name) };
        config.listen_address = SocketAddr::from(([127, 0, 0, 1], 0));
        config.max_connections = readers + SPARE_CONNECTIONS;
        // All readers use one token from one address.
        config.server_limits.connections_per_address = config.max_connections;
        config.server_limits.connections_per_client = Some(config.max_connections);
        config.server_limits.streams_per_client = config.max_connections;
        config.server_limits.reserved_connections = 0;
        config.drain_timeout = Duration::from_secs(1);
        // Events create tasks as usual; running them would be another measurement.
        config.engine_services =
            EnabledServices { scheduler: false, worker: false, pruner: false, ..EnabledServices::default() };
        let handler =
            fixtures::new_in_process_handler(EVENT_TYPE, |_| async { HandlerOutcome::succeeded() })?;
        let routes = fixtures::route_types_to_handlers_of_same_name([&handler.def])?;
        let program = Setup { handlers: vec![handler], routes, ..Setup::default() };
        let server = Server::start(config, None, program).await?;
        let address = server.address().context("the server does not listen")?;
        let token = server.first_token().context("the server has no token")?.to_owned();
        let event_counts = Arc::new((0..objects).map(|_| AtomicU64::new(0)).collect());
        Ok(Self { server, address, token, event_counts_by_object: event_counts })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Returns the number of events of each object so far.
    pub(super) fn event_counts_by_object(&self) -> Vec<u64> {
        self.event_counts_by_object.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Returns the id of the newest event.
    pub(super) async fn last_event_id(&self) -> anyhow::Result<EventId> {
        Ok(self.server.engine().observer().read_journal_range().await?.newest_event_id)
    }

    /// Emits one event for each object.
    pub(super) async fn emit_one_per_object(&self) -> anyhow::Result<()> {
        self.new_producer(0, 1).emit_events(self.event_counts_by_object.len(), None).await
    }

    /// Emits at a steady rate for a while; returns the events per second.
    pub(super) async fn emit_at_rate(&self, rate: usize, time: Duration) -> anyhow::Result<f64> {
        let ticks = (time.as_millis() / EMIT_INTERVAL.as_millis()) as usize;
        let batch = (rate * EMIT_INTERVAL.as_millis() as usize / 1000 / PACED_PRODUCER_COUNT).max(1);
        let start = Instant::now();
        let mut producers = JoinSet::new();
        for n in 0..PACED_PRODUCER_COUNT {
            let mut producer = self.new_producer(n, PACED_PRODUCER_COUNT);
            let mut ticker = interval_at(
                (start + EMIT_INTERVAL * n as u32 / PACED_PRODUCER_COUNT as u32).into(),
                EMIT_INTERVAL,
            );
            producers.spawn(async move {
                for _ in 0..ticks {
                    ticker.tick().await;
                    producer.emit_events(batch, Some(micros_since_clock_start())).await?;
                }
                // Waits for the end of the last interval.
                ticker.tick().await;
                anyhow::Ok(ticks * batch)
            });
        }
        join_producers_and_compute_rate(producers, start).await
    }

    /// Emits for a while as fast as emits are acknowledged; returns the events per second.
    pub(super) async fn emit_at_full_speed(&self, load: ProducerLoad, time: Duration) -> anyhow::Result<f64> {
        let start = Instant::now();
        let mut producers = JoinSet::new();
        for n in 0..load.producer_count {
            let mut producer = self.new_producer(n, load.producer_count);
            producers.spawn(async move {
                let mut emitted = 0;
                while start.elapsed() < time {
                    producer.emit_events(load.batch_size, None).await?;
                    emitted += load.batch_size;
                }
                anyhow::Ok(emitted)
            });
        }
        join_producers_and_compute_rate(producers, start).await
    }

    /// Returns the n-th of `count` producers. Each has its own objects, so that the events of an object are journaled in
    /// the order of their numbers.
    fn new_producer(&self, n: usize, count: usize) -> BenchProducer {
        BenchProducer {
            engine: self.server.engine().clone(),
            event_counts_by_object: self.event_counts_by_object.clone(),
            object_numbers: (n..self.event_counts_by_object.len()).step_by(count).collect(),
            next_object_index: 0,
        }
    }

    pub(super) async fn stop(self) {
        self.server.stop().await;
    }
}

async fn join_producers_and_compute_rate(
    mut producers: JoinSet<anyhow::Result<usize>>,
    start: Instant,
) -> anyhow::Result<f64> {
    let mut events = 0;
    while let Some(emitted) = producers.join_next().await {
        events += emitted??;
    }
    Ok(events as f64 / start.elapsed().as_secs_f64())
}

struct BenchProducer {
    engine: Engine,
    event_counts_by_object: Arc<Vec<AtomicU64>>,
    object_numbers: Vec<usize>,
    next_object_index: usize,
}

impl BenchProducer {
    /// Emits `count` events, alternating between its objects. `emitted_at` is the emit time in their payload.
    async fn emit_events(&mut self, count: usize, emitted_at: Option<u64>) -> anyhow::Result<()> {
        let events =
            (0..count).map(|_| self.new_event_of_next_object(emitted_at)).collect::<anyhow::Result<_>>()?;
        self.engine.emit(EmitBatch { events, idempotency_key: None }).await?;
        Ok(())
    }

    fn new_event_of_next_object(&mut self, emitted_at: Option<u64>) -> anyhow::Result<NewEvent> {
        let object = *self
            .object_numbers
            .get(self.next_object_index % self.object_numbers.len().max(1))
            .context("too few objects")?;
        self.next_object_index += 1;
        let n = self.event_counts_by_object[object].fetch_add(1, Ordering::Relaxed);
        let emitted_at = emitted_at.map_or("null".into(), |emitted_at| emitted_at.to_string());
        let title = "A record that somebody has just published";
        let mut event = NewEvent::new(EventType::new(EVENT_TYPE)?);
        event.key = Some(ObjectKey::new(object_key(object))?);
        event.value =
            Json::parse(&format!(r#"{{"object":{object},"n":{n},"at":{emitted_at},"title":"{title}"}}"#))?;
        Ok(event)
    }
}
