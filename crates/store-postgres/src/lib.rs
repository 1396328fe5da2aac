//! The PostgreSQL store: any number of nodes on one database.
//!
//! ```text
//!   node ── writer ─────▶ write lock … all waiting jobs … COMMIT ──▶ next node
//!        ◀─ readers ───── a pool, each read in one transaction, never blocked by writers
//!        ◀─ listener ──── LISTEN: new events and work of the other nodes
//! ```
//!
//! The decisions are made in `pointsman-store`; this crate implements its tables. Writers are serialized: the lock on
//! the one row of `pointsman.write_lock` is the write lock, so that ids become visible in order and no decision is
//! based on data that another node is about to change. Each commit records what it changed in a row of
//! `pointsman.commit_version` (`tables/commit_version.rs`); a writer that finds commits of peers reads only that.
//!
//! - `tables/` is a transaction of the writer: its read set is fetched at the beginning, its writes are buffered and
//!   sent together. `writer_connection.rs` is its connection, `backend.rs` hands it to the writer.
//! - `read/` has all reads, over `pool.rs`.
//! - `notifications.rs` notifies the other nodes and listens to them, `outbox/` and `outbox_drainer.rs` journal the
//!   events emitted in SQL, `expired_partitions.rs` drops expired partitions.
//! - `unit_of_work/` lets a program commit its own writes and its events in one transaction.
//! - `connect.rs`, `tls.rs` and `session.rs` open and use connections; `migrate.rs` migrates the schema,
//!   `privileges.rs` checks the role's privileges on it, `schema_objects.rs` its completeness.
//! - `doctor.rs` examines a database for problems without changing it.
//! - `store_copy/` is the database as the source or the target of a store copy.
//! - `rows.rs` reads rows, and `column_arrays.rs` writes many at once, as `pointsman_store::columns` describes them.
//! - `sql/` has all queries, a file for each table or concern; `queries.rs` finds them by name.

mod backend;
mod column_arrays;
mod connect;
pub mod doctor;
mod documented_tables;
mod error;
mod expired_partitions;
mod migrate;
mod notifications;
mod outbox;
mod outbox_drainer;
mod pool;
mod privileges;
mod queries;
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
use pointsman_core::store::StoreResult;
use pointsman_store::background_jobs::BackgroundJobs;
use pointsman_store::caller_time_source::CallerTimeSource;
use pointsman_store::notifier::PeerNotifier;
use pointsman_store::{BackendStore, Fault, Writer};

use backend::PgBackend;
use outbox::RefusedRowTracker;
use pool::{MAX_CONCURRENT_READS, SessionPool};
use tables::PgTables;
use unit_of_work::UnitOfWorkPool;

pub use connect::Endpoint;
pub use error::OpenError;
#[doc(hidden)]
pub use migrate::{MIGRATIONS, Migration};
pub use store_copy::PgStoreCopy;

/// The name under which `pointsman.meta` stores the hash of the first token.
const FIRST_TOKEN_HASH_TEXT_NAME: &str = "first_token";

/// The PostgreSQL store. Cheap to clone; all clones are the same store.
pub type PostgresStore = BackendStore<Postgres>;

/// The PostgreSQL side of a store: connections, writer and background jobs.
#[derive(Clone, Debug)]
pub struct Postgres {
    session_pool: SessionPool,
    unit_of_work_pool: UnitOfWorkPool,
    writer: Writer<PgTables>,
    caller_time: Arc<CallerTimeSource>,
    notifier: Arc<PeerNotifier>,
    background_jobs: Arc<BackgroundJobs>,
    endpoint: Arc<Endpoint>,
    refused_row_tracker: Arc<RefusedRowTracker>,
}

impl Postgres {
    /// Connects to the database, and creates or migrates the schema.
    pub async fn open(url: &str, now: Timestamp) -> Result<PostgresStore, OpenError> {
        Self::open_with_migrations(url, MIGRATIONS, now).await
    }

    /// Opens a store with other migrations than those of this version. For tests.
    #[doc(hidden)]
    pub async fn open_with_migrations(
        url: &str,
        migrations: &[Migration],
        now: Timestamp,
    ) -> Result<PostgresStore, OpenError> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let (pool, unit_of_work_pool) =
            (SessionPool::new(endpoint.clone(), MAX_CONCURRENT_READS), UnitOfWorkPool::new(endpoint.clone()));
        let session =
            pool.connect().await.map_err(|error| OpenError::from_connect_error(&endpoint, error))?;
        migrate::migrate(&session, &endpoint, migrations).await?;
        migrate::check_schema_complete(&session, &endpoint).await?;
        pool.add_idle_session(session);
        let caller_time = Arc::new(CallerTimeSource::from_start_time(now));
        let writer = start_writer(pool.clone(), endpoint.address(), caller_time.clone(), now).await?;
        let notifier = Arc::new(PeerNotifier::default());
        writer.set_commit_hook(notifier.clone());
        let background_jobs = Arc::new(BackgroundJobs::default());
        let postgres = Self {
            session_pool: pool,
            unit_of_work_pool,
            writer: writer.clone(),
            caller_time,
            notifier,
            background_jobs,
            endpoint,
            refused_row_tracker: Arc::default(),
        };
        postgres.start_background_jobs();
        Ok(BackendStore::new(writer, postgres))
    }

    /// Reads the clock of the database server, without changing anything there. Pass the time of this clock
    /// to [`Postgres::open`], because the machine's own may be off.
    pub async fn read_clock(url: &str) -> Result<Timestamp, OpenError> {
        let endpoint = Endpoint::parse(url)?;
        let read_failed = |fault: Fault| error::to_open_error(endpoint.address(), fault);
        let session = endpoint
            .connect_with_timeout()
            .await
            .map_err(|error| OpenError::from_connect_error(&endpoint, error))?;
        read::read_clock(&session).await.map_err(read_failed)
    }

    /// Applies migrations to the schema without opening a store. For tests.
    #[doc(hidden)]
    pub async fn migrate(url: &str, migrations: &[Migration]) -> Result<(), OpenError> {
        let endpoint = Endpoint::parse(url)?;
        let session = endpoint
            .connect_with_timeout()
            .await
            .map_err(|error| OpenError::from_connect_error(&endpoint, error))?;
        migrate::migrate(&session, &endpoint, migrations).await?;
        Ok(())
    }

    /// Returns the hash of the token that all nodes on this database accept: the stored hash, or `sha256`, which is
    /// stored if there is none.
    pub async fn share_first_token_hash(&self, sha256: &str) -> pointsman_core::store::StoreResult<String> {
        self.writer.get_or_init_named_text(FIRST_TOKEN_HASH_TEXT_NAME, sha256).await
    }

    /// Returns the numbers of commits, of written rows and of sent notifications since the store was opened.
    pub fn count_commits_rows_and_notifications(&self) -> (u64, u64, u64) {
        let writer_status = self.writer.status();
        (writer_status.commit_count(), writer_status.rows_written(), self.notifier.sent_message_count())
    }

    /// Drops expired partitions now, without waiting for the next run; returns their number.
    pub async fn drop_expired_partitions(&self) -> StoreResult<u64> {
        expired_partitions::drop_expired(&self.endpoint).await.map_err(error::to_store_error)
    }

    /// Spawns the jobs that notify and listen, drain the outbox, and drop partitions.
    fn start_background_jobs(&self) {
        let Self { session_pool: pool, writer, caller_time, notifier, endpoint, .. } = self;
        let mut jobs = vec![
            tokio::spawn(notifications::send_notifications(Arc::downgrade(notifier), pool.clone())),
            tokio::spawn(notifications::poll_for_changes(notifier.clone(), pool.clone(), writer.clone())),
            tokio::spawn(expired_partitions::drop_expired_periodically(endpoint.clone())),
            tokio::spawn(outbox_drainer::run_drainer(
                notifier.clone(),
                pool.clone(),
                writer.clone(),
                caller_time.clone(),
                self.refused_row_tracker.clone(),
            )),
        ];
        if let Some(listen_endpoint) = endpoint.listen_endpoint() {
            jobs.push(tokio::spawn(notifications::listen_for_notifications(
                notifier.clone(),
                listen_endpoint.clone(),
                writer.clone(),
            )));
        }
        self.background_jobs.add_handles(jobs);
    }
}

/// Connects the writer and starts it on its own thread, because it blocks on its connection.
async fn start_writer(
    pool: SessionPool,
    address: String,
    caller_time: Arc<CallerTimeSource>,
    now: Timestamp,
) -> Result<Writer<PgTables>, OpenError> {
    let started = tokio::task::spawn_blocking(move || -> pointsman_store::TableResult<_> {
        let mut tables = PgTables::new(pool, caller_time)?;
        tables.open()?;
        Writer::start(PgBackend::new(tables), "postgres-writer", now)?
    });
    let started = started.await.map_err(Fault::from).and_then(|started| started);
    started.map_err(|fault| error::to_open_error(address, fault))
}
