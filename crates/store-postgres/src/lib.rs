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
mod documented;
mod drainer;
mod error;
mod inventory;
mod link;
mod migrate;
mod outbox;
mod pool;
mod read;
mod rights;
mod rows;
mod session;
mod sweep;
mod tables;
mod tls;
mod transfer;
mod unit;
mod watch;

use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_store::beside::Beside;
use pointsman_store::clock::CallerTime;
use pointsman_store::news::News;
use pointsman_store::{Fault, Keeper, Writer};

use backend::PgBackend;
use outbox::RefusedRows;
use pool::{Pool, READERS};
use tables::PgTables;
use unit::Units;

pub use connect::Endpoint;
pub use error::OpenError;
pub use transfer::PgMove;

/// Under which name `pointsman.meta` keeps it.
const FIRST_TOKEN: &str = "first_token";

/// The PostgreSQL store. Cheap to clone; all clones are the same store.
pub type PostgresStore = Keeper<Postgres>;

/// A database of PostgreSQL, as its readers see it.
#[derive(Clone, Debug)]
pub struct Postgres {
    pool: Pool,
    units: Units,
    writer: Writer<PgTables>,
    time: Arc<CallerTime>,
    news: Arc<News>,
    beside: Arc<Beside>,
    endpoint: Arc<Endpoint>,
    refused: Arc<RefusedRows>,
}

impl Postgres {
    /// Connects to the database, making the schema if there is none and bringing it forward if it is older.
    pub async fn open(url: &str, now: Timestamp) -> Result<PostgresStore, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let (pool, units) = (Pool::new(endpoint.clone(), READERS), Units::new(endpoint.clone()));
        let session = pool.connect().await.map_err(|error| OpenError::unconnected(&endpoint, &error))?;
        migrate::migrate(&session, &endpoint, migrate::KNOWN).await?;
        migrate::check(&session, &endpoint).await?;
        pool.keep(session);
        let time = Arc::new(CallerTime::starting(now));
        let writer = start_writer(pool.clone(), endpoint.place(), time.clone(), now).await?;
        let news = Arc::new(News::default());
        writer.overhear(news.clone());
        let beside = Arc::new(Beside::default());
        let postgres = Self {
            pool,
            units,
            writer: writer.clone(),
            time,
            news,
            beside,
            endpoint,
            refused: Arc::default(),
        };
        postgres.run_beside();
        Ok(Keeper::new(writer, postgres))
    }

    /// Reads the clock of the database server, without changing anything there. Pass the time of this clock
    /// to [`Postgres::open`], because the machine's own may be off.
    pub async fn read_clock(url: &str) -> Result<Timestamp, OpenError> {
        let endpoint = Endpoint::parse(url)?;
        let unread = |error: Fault| OpenError::Failed { at: endpoint.place(), reason: error.to_string() };
        let session =
            endpoint.connect_in_time().await.map_err(|error| OpenError::unconnected(&endpoint, &error))?;
        read::clock(&session).await.map_err(unread)
    }

    /// Brings the schema forward as far as an earlier version would have, and answers which layout is the newest. For
    /// tests.
    #[doc(hidden)]
    pub async fn migrate_to(url: &str, layout: usize) -> Result<usize, OpenError> {
        let endpoint = Endpoint::parse(url)?;
        let session =
            endpoint.connect_in_time().await.map_err(|error| OpenError::unconnected(&endpoint, &error))?;
        migrate::migrate(&session, &endpoint, layout).await?;
        Ok(migrate::KNOWN)
    }

    /// The hash of the token that all nodes on this database accept: that of the first of them, or this one if none has
    /// left any.
    pub async fn first_token(&self, sha256: &str) -> pointsman_core::store::Result<String> {
        self.writer.first_text(FIRST_TOKEN, sha256).await
    }

    /// How many commits there were since it was opened, how many rows they changed, and how many times others were
    /// woken.
    pub fn work(&self) -> (u64, u64, u64) {
        let work = self.writer.work();
        (work.commits(), work.rows(), self.news.sent())
    }

    /// Drops what is forgotten, without waiting for the next time; answers how many slices.
    pub async fn sweep(&self) -> Result<u64, String> {
        sweep::sweep(&self.endpoint).await.map_err(|fault| fault.to_string())
    }

    fn run_beside(&self) {
        let Self { pool, writer, time, news, endpoint, .. } = self;
        let mut tasks = vec![
            tokio::spawn(watch::tell(Arc::downgrade(news), pool.clone())),
            tokio::spawn(watch::look(news.clone(), pool.clone(), writer.clone())),
            tokio::spawn(sweep::run(endpoint.clone())),
            tokio::spawn(drainer::run(
                news.clone(),
                pool.clone(),
                writer.clone(),
                time.clone(),
                self.refused.clone(),
            )),
        ];
        if let Some(direct) = endpoint.for_listening() {
            tasks.push(tokio::spawn(watch::listen(news.clone(), direct.clone(), writer.clone())));
        }
        self.beside.run(tasks);
    }
}

/// The writer's connection belongs to the writer's thread, which waits for it as no task may.
async fn start_writer(
    pool: Pool,
    at: String,
    time: Arc<CallerTime>,
    now: Timestamp,
) -> Result<Writer<PgTables>, OpenError> {
    let failed = |reason: String| OpenError::Failed { at: at.clone(), reason };
    let started = tokio::task::spawn_blocking(move || -> pointsman_store::Result<_> {
        let tables = PgTables::new(pool, time)?;
        tables.open()?;
        Writer::start(PgBackend::new(tables), "postgres-writer", now)?
    });
    let started = started.await.map_err(|error| failed(error.to_string()))?;
    started.map_err(|fault| match fault {
        Fault::Damaged(what) => OpenError::Damaged(what),
        Fault::Database(error) => failed(error::describe(&error)),
    })
}
