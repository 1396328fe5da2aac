//! The PostgreSQL store: any number of nodes on one database.
//!
//! ```text
//!   node ── writer ──▶ take the turn … all that is waiting … COMMIT ──▶ next node
//!        ◀─ readers ── a pool, each read in one transaction, never in the writers' way
//!        ◀─ watch ──── LISTEN: what the others' commits have brought
//! ```
//!
//! What is decided lies in `pointsman-store`; here is how its tables are kept. Writers come one after the other: the lock
//! on the one row of `pointsman.turn` is the right to write, so that ids become visible in their order and nothing is
//! decided on what another is about to change. A writer that finds that others have written reads what they changed,
//! which each commit tells in a row of `pointsman.version` (`tables/sequencer.rs`).
//!
//! - `tables/` is a transaction of the writer: what it will look at is fetched at its beginning, what it writes is held
//!   back and sent together. `link.rs` is its connection, `backend.rs` hands it to the writer.
//! - `read/` is all that reads, over `pool.rs`.
//! - `watch.rs` wakes the other nodes and is woken by them, `outbox.rs` and `drainer.rs` journal what was emitted in SQL,
//!   `sweep.rs` drops what is forgotten.
//! - `unit/` lets a program put its own writes and its events into one transaction.
//! - `connect.rs`, `tls.rs` and `session.rs` are connections; `migrate.rs` brings the schema forward,
//!   `rights.rs` is what our role may do there, `inventory.rs` what must be there.
//! - `doctor.rs` looks at a database and at what may keep a store from working well there.
//! - `transfer/` is the database as something that is moved, or moved to.
//! - Every statement is a file in `sql/` that says what it is for.

mod backend;
mod connect;
pub mod doctor;
mod documented_tables;
mod error;
mod migrate;
mod notifications;
mod outbox;
mod outbox_drainer;
mod partitions;
mod pool;
mod privileges;
mod read;
mod rows;
mod schema_objects;
mod session;
mod store_copy;
mod tables;
mod tls;
mod unit_of_work;
mod writer_connection;

use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_store::beside::Beside;
use pointsman_store::clock::CallerTime;
use pointsman_store::news::News;
use pointsman_store::{Fault, Keeper, Writer};

use backend::PgBackend;
use outbox::RefusedRows;
use pool::{MAX_READERS, Pool};
use tables::PgTables;
use unit_of_work::UnitOfWorkPool;

pub use connect::Endpoint;
pub use error::OpenError;
pub use store_copy::PgStoreCopy;

/// Under which name `pointsman.meta` keeps it.
const FIRST_TOKEN_NAME: &str = "first_token";

/// The PostgreSQL store. Cheap to clone; all clones are the same store.
pub type PostgresStore = Keeper<Postgres>;

/// A database of PostgreSQL, as its readers see it.
#[derive(Clone, Debug)]
pub struct Postgres {
    pool: Pool,
    units_of_work: UnitOfWorkPool,
    writer: Writer<PgTables>,
    caller_time: Arc<CallerTime>,
    notifier: Arc<News>,
    background_jobs: Arc<Beside>,
    endpoint: Arc<Endpoint>,
    refused_rows: Arc<RefusedRows>,
}

impl Postgres {
    /// Connects to the database, making the schema if there is none and bringing it forward if it is older.
    pub async fn open(url: &str, now: Timestamp) -> Result<PostgresStore, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let (pool, units_of_work) =
            (Pool::new(endpoint.clone(), MAX_READERS), UnitOfWorkPool::new(endpoint.clone()));
        let session =
            pool.connect().await.map_err(|error| OpenError::from_connect_error(&endpoint, &error))?;
        migrate::migrate(&session, &endpoint, migrate::NEWEST_LAYOUT).await?;
        migrate::check_schema_complete(&session, &endpoint).await?;
        pool.add_idle(session);
        let caller_time = Arc::new(CallerTime::starting(now));
        let writer = start_writer(pool.clone(), endpoint.address(), caller_time.clone(), now).await?;
        let notifier = Arc::new(News::default());
        writer.overhear(notifier.clone());
        let background_jobs = Arc::new(Beside::default());
        let postgres = Self {
            pool,
            units_of_work,
            writer: writer.clone(),
            caller_time,
            notifier,
            background_jobs,
            endpoint,
            refused_rows: Arc::default(),
        };
        postgres.start_background_jobs();
        Ok(Keeper::new(writer, postgres))
    }

    /// Reads the clock of the database server, without changing anything there. Pass the time of this clock
    /// to [`Postgres::open`], because the machine's own may be off.
    pub async fn read_clock(url: &str) -> Result<Timestamp, OpenError> {
        let endpoint = Endpoint::parse(url)?;
        let read_failed =
            |error: Fault| OpenError::OpenFailed { address: endpoint.address(), reason: error.to_string() };
        let session = endpoint
            .connect_with_timeout()
            .await
            .map_err(|error| OpenError::from_connect_error(&endpoint, &error))?;
        read::read_clock(&session).await.map_err(read_failed)
    }

    /// Brings the schema forward as far as an earlier version would have, and answers which layout is the newest. For
    /// tests.
    #[doc(hidden)]
    pub async fn migrate_to(url: &str, layout: usize) -> Result<usize, OpenError> {
        let endpoint = Endpoint::parse(url)?;
        let session = endpoint
            .connect_with_timeout()
            .await
            .map_err(|error| OpenError::from_connect_error(&endpoint, &error))?;
        migrate::migrate(&session, &endpoint, layout).await?;
        Ok(migrate::NEWEST_LAYOUT)
    }

    /// The hash of the token that all nodes on this database accept: that of the first of them, or this one if none has
    /// left any.
    pub async fn share_first_token_hash(&self, sha256: &str) -> pointsman_core::store::Result<String> {
        self.writer.first_text(FIRST_TOKEN_NAME, sha256).await
    }

    /// How many commits there were since it was opened, how many rows they changed, and how many times others were
    /// woken.
    pub fn write_counts(&self) -> (u64, u64, u64) {
        let work = self.writer.work();
        (work.commits(), work.rows(), self.notifier.sent())
    }

    /// Drops what is forgotten, without waiting for the next time; answers how many slices.
    pub async fn drop_expired_partitions(&self) -> Result<u64, String> {
        partitions::drop_expired(&self.endpoint).await.map_err(|fault| fault.to_string())
    }

    fn start_background_jobs(&self) {
        let Self { pool, writer, caller_time, notifier, endpoint, .. } = self;
        let mut jobs = vec![
            tokio::spawn(notifications::send_notifications(Arc::downgrade(notifier), pool.clone())),
            tokio::spawn(notifications::poll_for_changes(notifier.clone(), pool.clone(), writer.clone())),
            tokio::spawn(partitions::run_periodically(endpoint.clone())),
            tokio::spawn(outbox_drainer::run_drainer(
                notifier.clone(),
                pool.clone(),
                writer.clone(),
                caller_time.clone(),
                self.refused_rows.clone(),
            )),
        ];
        if let Some(direct) = endpoint.listen_endpoint() {
            jobs.push(tokio::spawn(notifications::listen_for_notifications(
                notifier.clone(),
                direct.clone(),
                writer.clone(),
            )));
        }
        self.background_jobs.run(jobs);
    }
}

/// The writer's connection belongs to the writer's thread, which waits for it as no task may.
async fn start_writer(
    pool: Pool,
    address: String,
    caller_time: Arc<CallerTime>,
    now: Timestamp,
) -> Result<Writer<PgTables>, OpenError> {
    let to_open_error = |reason: String| OpenError::OpenFailed { address: address.clone(), reason };
    let started = tokio::task::spawn_blocking(move || -> pointsman_store::Result<_> {
        let tables = PgTables::new(pool, caller_time)?;
        tables.open()?;
        Writer::start(PgBackend::new(tables), "postgres-writer", now)?
    });
    let started = started.await.map_err(|error| to_open_error(error.to_string()))?;
    started.map_err(|fault| match fault {
        Fault::Damaged(what) => OpenError::Damaged(what),
        Fault::Database(error) => to_open_error(error::describe_error(&error)),
    })
}
