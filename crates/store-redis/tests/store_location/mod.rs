//! Locations of stores: a SQLite file, a PostgreSQL database, or a key prefix on Redis.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::store_copy::CopyEndpoint;
pub(crate) use pointsman_store::store_kind::StoreKind;
use pointsman_store_conformance::copy::{self, LocationOpenError};
use pointsman_store_postgres::{PgStoreCopy, Postgres};
use pointsman_store_redis::{Redis, RedisStoreCopy};
use pointsman_store_sqlite::{Sqlite, SqliteStoreCopy};
use pointsman_testing::{RedisConnection, RedisReply, shared_postgres, shared_redis, unique_key_prefix};
use tempfile::TempDir;

pub(crate) type AnyStoreCopyOnReopenHarness = copy::CopyOnReopenHarness<TestStoreLocation>;

/// Where a store of a test is.
#[derive(Clone, Debug)]
pub(crate) enum TestStoreLocation {
    /// The path of the file, and its temporary folder.
    Sqlite(PathBuf, Arc<TempDir>),
    /// The URL of a database.
    Postgres(String),
    /// The key prefix on the server that all tests share.
    Redis(String),
}

impl TestStoreLocation {
    /// Returns an unused prefix on Redis.
    pub(crate) fn empty_redis() -> Self {
        Self::Redis(unique_key_prefix())
    }

    pub(crate) fn key_prefix(&self) -> &str {
        match self {
            Self::Redis(prefix) => prefix,
            Self::Sqlite(..) | Self::Postgres(_) => panic!("{self:?} is not on Redis"),
        }
    }

    pub(crate) fn redis_url(&self) -> String {
        shared_redis().unwrap().url_with_prefix(self.key_prefix())
    }

    /// Returns a key of this store.
    pub(crate) fn prefixed_key(&self, name: &str) -> String {
        format!("{}{name}", self.key_prefix())
    }
}

#[async_trait]
impl copy::StoreLocation for TestStoreLocation {
    type Kind = StoreKind;
    const TESTED_KIND: StoreKind = StoreKind::Redis;
    const OTHER_KIND: StoreKind = StoreKind::Sqlite;

    async fn create_empty(kind: StoreKind) -> Self {
        match kind {
            StoreKind::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                Self::Sqlite(folder.path().join("store.db"), Arc::new(folder))
            }
            StoreKind::Postgres => Self::Postgres(shared_postgres().unwrap().create_database().unwrap()),
            StoreKind::Redis => Self::empty_redis(),
        }
    }

    async fn try_open(&self, now: Timestamp) -> Result<Arc<dyn Store>, LocationOpenError> {
        Ok(match self {
            Self::Sqlite(path, _) => Arc::new(Sqlite::open(path, now)?),
            Self::Postgres(url) => Arc::new(Postgres::open(url, now).await?),
            Self::Redis(_) => Arc::new(Redis::open(&self.redis_url(), now).await?),
        })
    }

    fn try_open_source(&self) -> Result<Box<dyn CopyEndpoint>, LocationOpenError> {
        Ok(match self {
            Self::Sqlite(path, _) => Box::new(SqliteStoreCopy::open_source(path)?),
            Self::Postgres(url) => Box::new(PgStoreCopy::open_source(url)?),
            Self::Redis(_) => Box::new(RedisStoreCopy::open_source(&self.redis_url())?),
        })
    }

    fn try_open_target(&self) -> Result<Box<dyn CopyEndpoint>, LocationOpenError> {
        Ok(match self {
            Self::Sqlite(path, _) => Box::new(SqliteStoreCopy::open_target(path)?),
            Self::Postgres(url) => Box::new(PgStoreCopy::open_target(url)?),
            Self::Redis(_) => Box::new(RedisStoreCopy::open_target(&self.redis_url())?),
        })
    }
}

/// Connects to the server that all tests share.
pub(crate) fn connect_shared_redis() -> RedisConnection {
    shared_redis().unwrap().connect().unwrap()
}

pub(crate) fn run_redis_command(args: &[&str]) -> RedisReply {
    connect_shared_redis().run_command(args).unwrap()
}
