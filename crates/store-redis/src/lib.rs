//! The Redis store: any number of nodes on one Redis, a master behind sentinels, or a slot of a Redis Cluster.
//!
//! ```text
//!   node ── writer ──▶ take the turn … all that is waiting … commit, one script ──▶ next node
//!        ◀─ readers ── each read of one moment, never in the writers' way
//!        ◀─ watch ──── a channel: what the others' commits have brought
//! ```
//!
//! What is decided lies in `pointsman-store`; here is how its tables are kept. Redis has no transactions that one could read
//! and write in. So a writer reads what it needs, holds back what it writes (`overlay/`), and sends all of it with its commit,
//! which Redis takes only if nobody has written since (`lua/commit.lua`). Whose turn it is, is told by a key that runs out:
//! it spares conflicts, and nothing depends on it but time.
//!
//! - `keys.rs` is what lies where, `rows.rs` and `codec.rs` how, `places.rs` in which indexes a task stands, `standing.rs`
//!   how far everything has come.
//! - `overlay/` is what is seen of Redis, with all that was written and not yet sent; `lookup/` what the writer and readers
//!   find there.
//! - `tables/` is a transaction of the writer; `link.rs` and `batch.rs` are its connection, `backend.rs` hands it to the writer.
//! - `read/` is all that reads, over `readers.rs`.
//! - `outbox/` journals what producers have left in the keys of document 001; `tables/documented.rs` writes those of 002.
//! - `unit.rs` lets a program put its own commands and its events into one step.
//! - `watch.rs` wakes the other nodes and is woken by them; `health.rs` looks how the server fares (`settings.rs`,
//!   `memory.rs`).
//! - `store_copy/` is how all of it is moved to another store, or from one.
//! - `connect/` is where Redis is, and how to connect to it.
//! - Every script is a file in `lua/` that says what it is for, what its keys are and what it is given (`script.rs`).

mod backend;
mod codec;
mod command_buffer;
mod connect;
mod connection;
pub mod doctor;
mod error;
mod health;
mod keys;
mod lookup;
mod memory_usage;
mod notifications;
mod outbox;
mod overlay;
mod read;
mod reader;
mod reader_pool;
mod reads;
mod rows;
mod script;
mod server_settings;
mod store_copy;
mod store_state;
mod tables;
mod task_indexes;
mod unit_of_work;
mod write_lock;

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_store::beside::Beside;
use pointsman_store::news::News;
use pointsman_store::{Fault, Keeper, Writer};

use backend::RedisBackend;
use connection::BlockingConnection;
use health::{Health, HealthMonitor};
use keys::Keys;
use reader::SnapshotReader;
use reader_pool::ReaderPool;
use tables::RedisTables;
use unit_of_work::UnitOfWorkRunner;

pub use connect::Endpoint;
pub use error::OpenError;
pub use store_copy::RedisStoreCopy;

/// Under which name it is kept what all nodes accept.
const FIRST_TOKEN_TEXT: &str = "first_token";
/// The newest layout that this version knows.
const CURRENT_LAYOUT: u32 = 2;

/// The Redis store. Cheap to clone; all clones are the same store.
pub type RedisStore = Keeper<Redis>;

/// A Redis, as its readers see it.
#[derive(Clone, Debug)]
pub struct Redis {
    reader_pool: ReaderPool,
    writer: Writer<RedisTables>,
    notifier: Arc<News>,
    background_jobs: Arc<Beside>,
    endpoint: Arc<Endpoint>,
    health: Arc<Health>,
    unit_of_work_runner: UnitOfWorkRunner,
}

impl Redis {
    /// Connects to Redis, and lays out a store there if there is none.
    pub async fn open(url: &str, now: Timestamp) -> Result<RedisStore, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let writer = start_writer(endpoint.clone(), now).await?;
        let notifier = Arc::new(News::default());
        writer.overhear(notifier.clone());
        let reader_pool = ReaderPool::new(endpoint.clone());
        let monitor = HealthMonitor::start(endpoint.clone()).await;
        let health = monitor.health();
        let (background_jobs, unit_of_work_runner) =
            (Arc::default(), UnitOfWorkRunner::new(endpoint.clone()));
        let redis = Self {
            reader_pool,
            writer: writer.clone(),
            notifier,
            background_jobs,
            endpoint,
            health,
            unit_of_work_runner,
        };
        redis.start_background_jobs(monitor);
        Ok(Keeper::new(writer, redis))
    }

    /// Reads the clock of the Redis server, without changing anything there. Pass the time of this clock to
    /// [`Redis::open`], because the machine's own may be off.
    pub async fn read_clock(url: &str) -> Result<Timestamp, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let at = endpoint.display_location();
        let read = move || {
            let reader = SnapshotReader::new(endpoint);
            reader.open().and_then(|()| reader.read_server_time())
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(read) => read.map_err(|fault| error::open_error_from_fault(&at, fault)),
            Err(error) => Err(OpenError::OpenFailed { address: at, reason: error.to_string() }),
        }
    }

    /// The hash of the token that all nodes on this Redis accept: that of the first of them, or this one if none has left
    /// any.
    pub async fn share_first_token_hash(&self, sha256: &str) -> pointsman_core::store::Result<String> {
        self.writer.first_text(FIRST_TOKEN_TEXT, sha256).await
    }

    /// How many commits there were since it was opened, how many rows they changed, and how many times others were
    /// woken.
    pub fn write_counts(&self) -> (u64, u64, u64) {
        let work = self.writer.work();
        (work.commits(), work.rows(), self.notifier.sent())
    }

    fn start_background_jobs(&self, monitor: HealthMonitor) {
        let Self { reader_pool, writer, notifier, endpoint, .. } = self;
        let tasks = [
            tokio::spawn(notifications::publish_notifications(Arc::downgrade(notifier), endpoint.clone())),
            tokio::spawn(notifications::listen_for_notifications(
                notifier.clone(),
                endpoint.clone(),
                writer.clone(),
            )),
            tokio::spawn(notifications::poll_for_changes(
                notifier.clone(),
                reader_pool.clone(),
                writer.clone(),
            )),
            tokio::spawn(outbox::drain_forever(endpoint.clone(), writer.clone())),
            tokio::spawn(outbox::requeue_forever(endpoint.clone())),
            tokio::spawn(monitor.run()),
        ];
        self.background_jobs.run(tasks);
    }
}

/// The writer's connection belongs to the writer's thread, which waits for it as no task may.
async fn start_writer(endpoint: Arc<Endpoint>, now: Timestamp) -> Result<Writer<RedisTables>, OpenError> {
    let at = endpoint.display_location();
    let started = tokio::task::spawn_blocking(move || open_writer(endpoint, now)).await;
    started.map_err(|error| OpenError::OpenFailed { address: at, reason: error.to_string() })?
}

fn open_writer(endpoint: Arc<Endpoint>, now: Timestamp) -> Result<Writer<RedisTables>, OpenError> {
    let at = endpoint.display_location();
    let failed = |fault: Fault| error::open_error_from_fault(&at, fault);
    let tables = RedisTables::new(BlockingConnection::new(endpoint.clone()), Keys::new(endpoint.prefix()));
    tables.caller_time.report(now);
    if !tables.read_existing_state().map_err(failed)? {
        tables.create_store(&initial_texts()).map_err(failed)?;
        tables.read_existing_state().map_err(failed)?;
    }
    check_layout(&tables, &at)?;
    let started = Writer::start(RedisBackend::new(tables), "redis-writer", now);
    started.map_err(Fault::from).and_then(|started| started).map_err(failed)
}

/// Whether this version knows the layout of what is there.
fn check_layout(tables: &RedisTables, at: &str) -> Result<(), OpenError> {
    let layout =
        tables.overlay.read_number("layout").map_err(|fault| error::open_error_from_fault(at, fault))?;
    let (at, found) = (at.into(), u32::try_from(layout).unwrap_or(u32::MAX));
    match found.cmp(&CURRENT_LAYOUT) {
        Ordering::Greater => Err(OpenError::LayoutTooNew { address: at, found, supported: CURRENT_LAYOUT }),
        Ordering::Less => Err(OpenError::LayoutTooOld { address: at, found, supported: CURRENT_LAYOUT }),
        Ordering::Equal => Ok(()),
    }
}

/// What a store holds from its beginning.
fn initial_texts() -> [(&'static str, String); 3] {
    let random = || RandomState::new().build_hasher().finish();
    [
        ("layout", CURRENT_LAYOUT.to_string()),
        ("realm", (random() >> 4).to_string()),
        ("salt", random().to_string()),
    ]
}
