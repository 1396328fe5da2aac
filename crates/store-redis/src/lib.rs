//! The Redis store: any number of nodes on one Redis, a master behind sentinels, or a slot of a Redis Cluster.
//!
//! ```text
//!   node ── writer ──▶ acquire the write lock, run all waiting jobs, commit with one script ──▶ next node
//!        ◀─ readers ── consistent snapshots that do not block writers
//!        ◀─ notifications ── a channel with the commits of peers
//! ```
//!
//! The decisions are made in `pointsman-store`; this crate stores its tables. Redis has no interactive transactions. So a
//! writer reads what it needs, buffers its writes (`overlay/`), and sends them all with its commit, which Redis accepts only
//! if no other commit happened since (`lua/commit.lua`). The write lock is a key that expires: it avoids conflicts, and
//! correctness does not depend on it.
//!
//! - `keys.rs` names the keys, `cells.rs` and `codec.rs` encode rows, `rows.rs` says which of them are stored in parts,
//!   `task_indexes.rs` lists the index entries of a task, `store_state.rs` is the commit version with all counters.
//! - `overlay/` caches rows and merges them with pending writes; `lookup/` reads typed rows through it.
//! - `tables/` is a transaction of the writer over `connection.rs` and `command_encoding.rs`; `write_lock.rs` has the commands
//!   of the write lock; `backend.rs` is what the writer runs.
//! - `store_reader.rs` implements the reads of the store: functions in `read/`, run by a reader of `reader_pool.rs`.
//! - `outbox/` journals events that producers pushed to the keys of document 001; `tables/source_task_keys.rs` writes those of 002.
//! - `unit_of_work.rs` runs commands of an application and its events in one step.
//! - `notifications.rs` notifies peers and listens to them; `health.rs` monitors the server (`server_settings.rs`,
//!   `memory_usage.rs`).
//! - `store_copy/` copies a store to another backend, or from one.
//! - `connect/` resolves and connects to the server.
//! - Each script is a file in `lua/` that documents its purpose, keys and arguments (`script.rs`).

mod backend;
mod cells;
mod codec;
mod command_encoding;
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
mod rows;
mod script;
mod server_settings;
mod store_copy;
mod store_reader;
mod store_state;
mod tables;
mod task_indexes;
mod unit_of_work;
mod write_lock;

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_store::background_jobs::BackgroundJobs;
use pointsman_store::notifier::PeerNotifier;
use pointsman_store::{BackendStore, Fault, Writer};

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

/// Name of the stored text with the hash of the token that all nodes accept.
const FIRST_TOKEN_HASH_TEXT_NAME: &str = "first_token";
/// Name of the stored text with the layout version.
const LAYOUT_TEXT_NAME: &str = "layout";
/// Name of the stored text with the namespace of task ids.
const TASK_ID_NAMESPACE_TEXT_NAME: &str = "task_id_namespace";
/// Name of the stored text with the salt of hashes.
const SALT_TEXT_NAME: &str = "salt";
/// Layout version that this version reads and writes.
const CURRENT_LAYOUT: u32 = 4;

/// The Redis store. Cheap to clone; all clones are the same store.
pub type RedisStore = BackendStore<Redis>;

/// The part of a [`RedisStore`] beside its writer: readers, notifications, health checks and units of work.
#[derive(Clone, Debug)]
pub struct Redis {
    reader_pool: ReaderPool,
    writer: Writer<RedisTables>,
    notifier: Arc<PeerNotifier>,
    background_jobs: Arc<BackgroundJobs>,
    endpoint: Arc<Endpoint>,
    health: Arc<Health>,
    unit_of_work_runner: UnitOfWorkRunner,
}

impl Redis {
    /// Connects to Redis, and creates the store if there is none.
    pub async fn open(url: &str, now: Timestamp) -> Result<RedisStore, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let writer = start_writer(endpoint.clone(), now).await?;
        let notifier = Arc::new(PeerNotifier::default());
        writer.set_commit_hook(notifier.clone());
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
        Ok(BackendStore::new(writer, redis))
    }

    /// Reads the clock of the Redis server, without changing anything there. Pass the time of this clock to
    /// [`Redis::open`], because the machine's own may be off.
    pub async fn read_clock(url: &str) -> Result<Timestamp, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let address = endpoint.display_location();
        let read = move || {
            let mut reader = SnapshotReader::new(endpoint);
            reader.connect_if_needed().and_then(|()| reader.read_server_time())
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(read) => read.map_err(|fault| error::open_error_from_fault(&address, fault)),
            Err(error) => Err(OpenError::OpenFailed { address, source: error.into() }),
        }
    }

    /// Returns the hash of the token that all nodes accept: that of the first node, or this one if none was stored
    /// yet.
    pub async fn share_first_token_hash(&self, sha256: &str) -> pointsman_core::store::StoreResult<String> {
        self.writer.get_or_init_named_text(FIRST_TOKEN_HASH_TEXT_NAME, sha256).await
    }

    /// Returns the numbers of commits, of written rows and of sent notifications since the store was opened.
    pub fn write_counts(&self) -> (u64, u64, u64) {
        let status = self.writer.status();
        (status.commit_count(), status.rows_written(), self.notifier.sent_message_count())
    }

    fn start_background_jobs(&self, monitor: HealthMonitor) {
        let Self { reader_pool, writer, notifier, endpoint, .. } = self;
        let job_handles = [
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
            tokio::spawn(outbox::drain_outbox(endpoint.clone(), writer.clone())),
            tokio::spawn(outbox::requeue_objects_of_dead_workers(endpoint.clone())),
            tokio::spawn(monitor.run()),
        ];
        self.background_jobs.add_handles(job_handles);
    }
}

/// Starts the writer on a blocking thread, because its connection blocks.
async fn start_writer(endpoint: Arc<Endpoint>, now: Timestamp) -> Result<Writer<RedisTables>, OpenError> {
    let address = endpoint.display_location();
    let started = tokio::task::spawn_blocking(move || open_writer(endpoint, now)).await;
    started.map_err(|error| OpenError::OpenFailed { address, source: error.into() })?
}

fn open_writer(endpoint: Arc<Endpoint>, now: Timestamp) -> Result<Writer<RedisTables>, OpenError> {
    let address = endpoint.display_location();
    let to_open_error = |fault: Fault| error::open_error_from_fault(&address, fault);
    let mut tables =
        RedisTables::new(BlockingConnection::new(endpoint.clone()), Keys::new(endpoint.key_prefix()));
    tables.caller_time.record_reported_time(now);
    if !tables.load_store_state_if_exists().map_err(to_open_error)? {
        check_layout_if_stored(&mut tables, &address)?;
        tables.create_store(&initial_texts()).map_err(to_open_error)?;
        tables.load_store_state_if_exists().map_err(to_open_error)?;
    }
    check_layout(&mut tables, &address)?;
    let started = Writer::start(RedisBackend::new(tables), "redis-writer", now);
    started.map_err(Fault::from).and_then(|started| started).map_err(to_open_error)
}

/// Checks that this version of Pointsman supports the stored layout.
fn check_layout(tables: &mut RedisTables, address: &str) -> Result<(), OpenError> {
    let layout = tables
        .overlay
        .read_named_number(LAYOUT_TEXT_NAME)
        .map_err(|fault| error::open_error_from_fault(address, fault))?;
    unsupported_layout_error(u32::try_from(layout).unwrap_or(u32::MAX), address).map_or(Ok(()), Err)
}

/// Checks the layout version, if one is stored, before a store is created: a store of another layout may keep its state
/// under another key, and must not be overwritten.
fn check_layout_if_stored(tables: &mut RedisTables, address: &str) -> Result<(), OpenError> {
    let layout = tables
        .overlay
        .read_named_text(LAYOUT_TEXT_NAME)
        .map_err(|fault| error::open_error_from_fault(address, fault))?;
    if layout.is_some() { check_layout(tables, address) } else { Ok(()) }
}

/// Returns the error for a layout version that this version of Pointsman does not support; `None` if it supports it.
fn unsupported_layout_error(found: u32, address: &str) -> Option<OpenError> {
    let address = address.into();
    match found.cmp(&CURRENT_LAYOUT) {
        Ordering::Greater => Some(OpenError::LayoutTooNew { address, found, supported: CURRENT_LAYOUT }),
        Ordering::Less => Some(OpenError::LayoutTooOld { address, found, supported: CURRENT_LAYOUT }),
        Ordering::Equal => None,
    }
}

/// Returns names and values of the texts that a new store starts with.
fn initial_texts() -> [(&'static str, String); 3] {
    let random = || RandomState::new().build_hasher().finish();
    [
        (LAYOUT_TEXT_NAME, CURRENT_LAYOUT.to_string()),
        (TASK_ID_NAMESPACE_TEXT_NAME, (random() >> 4).to_string()),
        (SALT_TEXT_NAME, random().to_string()),
    ]
}
