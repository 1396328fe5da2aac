//! Creates the stores of a run: in a folder, on a PostgreSQL server or on a Redis server.

mod postgres_databases;
mod redis_key_prefixes;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use pointsman_core::store::Store;
use pointsman_store::WriterStatus;
use pointsman_store_postgres::Postgres;
use pointsman_store_redis::Redis;
use pointsman_store_sqlite::Sqlite;
use tempfile::TempDir;

use crate::baseline::Baseline;
pub(crate) use postgres_databases::BenchDatabases;
use postgres_databases::PostgresBenchServer;
use redis_key_prefixes::BenchKeyPrefixes;

/// The kind of store that is measured, and its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreTarget {
    #[default]
    Sqlite,
    /// The server at this URL; without a URL, a server that is started for the run.
    Postgres { url: Option<String> },
    /// The server at this URL; without a URL, a server that is started for the run.
    Redis { url: Option<String> },
}

/// The folder or the server of a whole run.
pub(crate) enum RunEnvironment {
    SqliteFolder(PathBuf),
    PostgresServer(Box<PostgresBenchServer>),
    RedisServer(Box<redis_key_prefixes::RedisBenchServer>),
}

impl RunEnvironment {
    pub(crate) fn connect_or_start(options: &crate::BenchOptions) -> anyhow::Result<Self> {
        match &options.store_target {
            StoreTarget::Sqlite => Ok(Self::SqliteFolder(options.dir.clone())),
            StoreTarget::Postgres { url } => {
                Ok(Self::PostgresServer(Box::new(PostgresBenchServer::connect_or_start(url.as_deref())?)))
            }
            StoreTarget::Redis { url } => Ok(Self::RedisServer(Box::new(
                redis_key_prefixes::RedisBenchServer::connect_or_start(url.as_deref())?,
            ))),
        }
    }

    /// Returns a factory for the stores of one measurement. Dropping it removes the stores.
    pub(crate) fn new_store_factory(&self) -> anyhow::Result<StoreFactory> {
        match self {
            Self::SqliteFolder(dir) => Ok(StoreFactory::Sqlite(tempfile::tempdir_in(dir)?)),
            Self::PostgresServer(server) => Ok(StoreFactory::Postgres(server.new_database_set())),
            Self::RedisServer(server) => Ok(StoreFactory::Redis(server.new_key_prefix_set())),
        }
    }
}

/// Creates and opens the stores of one measurement, by name.
pub(crate) enum StoreFactory {
    Sqlite(TempDir),
    Postgres(BenchDatabases),
    Redis(BenchKeyPrefixes),
}

/// A store, and the counters of its writer since it was opened.
#[derive(Clone)]
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) writer_status: Arc<WriterStatus>,
}

impl StoreFactory {
    /// Opens the store of this name, and creates it if it does not exist. On a server it can be opened more than once at a
    /// time.
    pub(crate) async fn open_store(&self, name: &str) -> anyhow::Result<OpenedStore> {
        let now = pointsman_engine::machine_clock_now();
        match self {
            Self::Sqlite(dir) => {
                let store = Sqlite::open(dir.path().join(name), now)?;
                let writer_status = store.writer().status();
                Ok(OpenedStore { store: Arc::new(store), writer_status })
            }
            Self::Postgres(databases) => {
                let store = Postgres::open(&databases.get_or_create_database(name)?, now).await?;
                let writer_status = store.writer().status();
                Ok(OpenedStore { store: Arc::new(store), writer_status })
            }
            Self::Redis(key_prefixes) => {
                let store = Redis::open(&key_prefixes.store_url(name), now).await?;
                let writer_status = store.writer().status();
                Ok(OpenedStore { store: Arc::new(store), writer_status })
            }
        }
    }

    /// Opens a database with the store's own tables, for the baseline. The store creates them, so that both sides always
    /// have the same tables.
    pub(crate) async fn open_baseline(&self) -> anyhow::Result<Baseline> {
        const BASELINE_STORE_NAME: &str = "bare";
        self.open_store(BASELINE_STORE_NAME).await?.store.close();
        match self {
            Self::Sqlite(dir) => Baseline::open_sqlite(&dir.path().join(BASELINE_STORE_NAME)),
            Self::Postgres(databases) => {
                Baseline::open_postgres(databases.connect(BASELINE_STORE_NAME).await?).await
            }
            Self::Redis(key_prefixes) => Ok(Baseline::open_redis(
                key_prefixes.connect()?,
                key_prefixes.get_or_create_prefix(BASELINE_STORE_NAME),
            )),
        }
    }

    /// Writes all data of a store to disk, so that pending writes do not disturb the next measurement.
    pub(crate) async fn flush_to_disk(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(dir) => Ok(File::open(dir.path().join(name))?.sync_all()?),
            Self::Postgres(databases) => databases.vacuum_and_checkpoint(name).await,
            // Redis replies after the data are on disk.
            Self::Redis(_) => Ok(()),
        }
    }
}
