//! The location of a store: a SQLite file or a PostgreSQL database.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::store_copy::CopyEndpoint;
use pointsman_store_conformance::copy::{self, LocationOpenError};
use pointsman_store_postgres::{PgStoreCopy, Postgres};
use pointsman_store_sqlite::{Sqlite, SqliteStoreCopy};
use tempfile::TempDir;

use crate::common::test_database::PooledTestDatabase;

pub(crate) type CopyHarness = copy::CopyOnReopenHarness<TestStoreLocation>;

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LocationKind {
    File,
    Database,
}

/// The location of a store of a test.
#[derive(Clone, Debug)]
pub(crate) enum TestStoreLocation {
    /// The path, and the temporary folder.
    File(PathBuf, Arc<TempDir>),
    /// The URL, and the reused test database.
    Database(String, Option<Arc<PooledTestDatabase>>),
}

impl TestStoreLocation {
    /// A new database, for state that other tests must not find.
    pub(crate) fn new_database() -> Self {
        Self::Database(pointsman_testing::shared_postgres().unwrap().create_database().unwrap(), None)
    }

    pub(crate) fn database_url(&self) -> &str {
        match self {
            Self::Database(url, _) => url,
            Self::File(..) => panic!("{self:?} is no database"),
        }
    }
}

#[async_trait]
impl copy::StoreLocation for TestStoreLocation {
    type Kind = LocationKind;
    const TESTED_KIND: LocationKind = LocationKind::Database;
    const OTHER_KIND: LocationKind = LocationKind::File;

    async fn create_empty(kind: LocationKind) -> Self {
        match kind {
            LocationKind::File => {
                let folder = tempfile::tempdir().unwrap();
                Self::File(folder.path().join("store.db"), Arc::new(folder))
            }
            LocationKind::Database => {
                let database = PooledTestDatabase::acquire().await;
                Self::Database(database.url().into(), Some(Arc::new(database)))
            }
        }
    }

    async fn try_open(&self, now: Timestamp) -> Result<Arc<dyn Store>, LocationOpenError> {
        Ok(match self {
            Self::File(path, _) => Arc::new(Sqlite::open(path, now)?),
            Self::Database(url, _) => Arc::new(Postgres::open(url, now).await?),
        })
    }

    fn try_open_source(&self) -> Result<Box<dyn CopyEndpoint>, LocationOpenError> {
        Ok(match self {
            Self::File(path, _) => Box::new(SqliteStoreCopy::open_source(path)?),
            Self::Database(url, _) => Box::new(PgStoreCopy::open_source(url)?),
        })
    }

    fn try_open_target(&self) -> Result<Box<dyn CopyEndpoint>, LocationOpenError> {
        Ok(match self {
            Self::File(path, _) => Box::new(SqliteStoreCopy::open_target(path)?),
            Self::Database(url, _) => Box::new(PgStoreCopy::open_target(url)?),
        })
    }
}
