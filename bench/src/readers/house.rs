//! A server on a store of its own, and those who emit there.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use pointsman_core::store::Emission;
use pointsman_core::{EventId, HandlingKey, Json, NewEvent, ObjectKey};
use pointsman_engine::{Engine, Outcome, Rooms, Setup};
use pointsman_server::Server;
use pointsman_server::config::{Sources, StoreUrl};
use tokio::task::JoinSet;
use tokio::time::interval_at;

use crate::emit::Shape;
use crate::rig;

/// The type of the events, and the name of the handler whose tasks they make. No task is run.
pub(super) const TYPE: &str = "bench.watched";

/// Producers at a steady pace emit one after another, each so often.
const PACED: usize = 5;
const PACE: Duration = Duration::from_millis(10);
/// Connections beside those of readers.
const SPARE: usize = 64;

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Microseconds since the measurement began, so that an event can tell when it was emitted.
pub(super) fn micros() -> u64 {
    u64::try_from(EPOCH.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The key of an object.
pub(super) fn key(object: usize) -> String {
    format!("watched:{object}")
}

pub(super) struct House {
    server: Server,
    address: SocketAddr,
    token: String,
    /// How many events each object has got.
    emitted: Arc<Vec<AtomicU64>>,
}

impl House {
    pub(super) async fn start(
        dir: &Path,
        name: &str,
        objects: usize,
        readers: usize,
    ) -> anyhow::Result<Self> {
        let mut config = Sources { working: dir.into(), ..Sources::default() }.load()?;
        config.store = StoreUrl::Sqlite { path: dir.join(name) };
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.max_connections = readers + SPARE;
        // All readers use one token from one address.
        config.limits.per_address = config.max_connections;
        config.limits.streams_per_client = config.max_connections;
        config.limits.reserve = 0;
        config.drain = Duration::from_secs(1);
        // Events make tasks, as they do elsewhere; running them would be another measurement.
        config.rooms = Rooms { scheduler: false, worker: false, pruner: false, ..Rooms::default() };
        let handler = rig::handler(TYPE, |_| async { Outcome::done() })?;
        let routes = rig::routes([&handler.def])?;
        let program = Setup { handlers: vec![handler], routes, ..Setup::default() };
        let server = Server::start(config, None, program).await?;
        let address = server.address().context("the server does not listen")?;
        let token = server.first_token().context("the server has no token")?.to_owned();
        let emitted = Arc::new((0..objects).map(|_| AtomicU64::new(0)).collect());
        Ok(Self { server, address, token, emitted })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// How many events each object has got so far.
    pub(super) fn emitted(&self) -> Vec<u64> {
        self.emitted.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// The newest event.
    pub(super) async fn head(&self) -> anyhow::Result<EventId> {
        Ok(self.server.engine().observer().extent().await?.head)
    }

    /// One event of each object.
    pub(super) async fn round(&self) -> anyhow::Result<()> {
        self.producer(0, 1).emit(self.emitted.len(), None).await
    }

    /// Emits at a steady pace for a while; answers how many events in a second there were.
    pub(super) async fn paced(&self, rate: usize, time: Duration) -> anyhow::Result<f64> {
        let ticks = (time.as_millis() / PACE.as_millis()) as usize;
        let batch = (rate * PACE.as_millis() as usize / 1000 / PACED).max(1);
        let start = Instant::now();
        let mut producers = JoinSet::new();
        for n in 0..PACED {
            let mut producer = self.producer(n, PACED);
            let mut pace = interval_at((start + PACE * n as u32 / PACED as u32).into(), PACE);
            producers.spawn(async move {
                for _ in 0..ticks {
                    pace.tick().await;
                    producer.emit(batch, Some(micros())).await?;
                }
                // The last tick is over when the next one would come.
                pace.tick().await;
                anyhow::Ok(ticks * batch)
            });
        }
        rate_of(producers, start).await
    }

    /// Emits for a while as fast as emits are acknowledged; answers how many events in a second were.
    pub(super) async fn full_speed(&self, shape: Shape, time: Duration) -> anyhow::Result<f64> {
        let start = Instant::now();
        let mut producers = JoinSet::new();
        for n in 0..shape.producers {
            let mut producer = self.producer(n, shape.producers);
            producers.spawn(async move {
                let mut emitted = 0;
                while start.elapsed() < time {
                    producer.emit(shape.batch, None).await?;
                    emitted += shape.batch;
                }
                anyhow::Ok(emitted)
            });
        }
        rate_of(producers, start).await
    }

    /// The n-th of so many producers. Each has objects of its own, so that the events of an object are journaled in the
    /// order of their numbers.
    fn producer(&self, n: usize, of: usize) -> Producer {
        Producer {
            engine: self.server.engine().clone(),
            emitted: self.emitted.clone(),
            objects: (n..self.emitted.len()).step_by(of).collect(),
            turn: 0,
        }
    }

    pub(super) async fn stop(self) {
        self.server.stop().await;
    }
}

async fn rate_of(mut producers: JoinSet<anyhow::Result<usize>>, start: Instant) -> anyhow::Result<f64> {
    let mut events = 0;
    while let Some(emitted) = producers.join_next().await {
        events += emitted??;
    }
    Ok(events as f64 / start.elapsed().as_secs_f64())
}

struct Producer {
    engine: Engine,
    emitted: Arc<Vec<AtomicU64>>,
    objects: Vec<usize>,
    turn: usize,
}

impl Producer {
    /// Emits so many events of its objects in turn. `at`: what they say about when they were emitted.
    async fn emit(&mut self, count: usize, at: Option<u64>) -> anyhow::Result<()> {
        let events = (0..count).map(|_| self.event(at)).collect::<anyhow::Result<_>>()?;
        self.engine.emit(Emission { events, idempotency: None }).await?;
        Ok(())
    }

    fn event(&mut self, at: Option<u64>) -> anyhow::Result<NewEvent> {
        let object = *self.objects.get(self.turn % self.objects.len().max(1)).context("too few objects")?;
        self.turn += 1;
        let n = self.emitted[object].fetch_add(1, Ordering::Relaxed);
        let at = at.map_or("null".into(), |at| at.to_string());
        let title = "A record that somebody has just published";
        let mut event = NewEvent::of(HandlingKey::new(TYPE)?);
        event.key = Some(ObjectKey::new(key(object))?);
        event.value = Json::parse(&format!(r#"{{"object":{object},"n":{n},"at":{at},"title":"{title}"}}"#))?;
        Ok(event)
    }
}
