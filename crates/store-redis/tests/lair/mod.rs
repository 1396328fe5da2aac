//! Where a store lies: in a file, in a database, or under a prefix of keys.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::transfer::Movable;
use pointsman_store_conformance::moving::{self, Refusal};
use pointsman_store_postgres::{PgMove, Postgres};
use pointsman_store_redis::{Redis, RedisStoreCopy};
use pointsman_store_sqlite::{Sqlite, SqliteMove};
use pointsman_testing::{RedisConnection, Reply, fresh_prefix, shared, shared_redis};
use tempfile::TempDir;

pub(crate) type Movers = moving::Movers<Lair>;

/// A kind of place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    File,
    Database,
    Keys,
}

#[derive(Clone, Debug)]
pub(crate) enum Lair {
    /// Its path, and the folder that goes with it.
    File(PathBuf, Arc<TempDir>),
    /// A URL.
    Database(String),
    /// What keys begin with on the server that all tests share.
    Keys(String),
}

impl Lair {
    /// A prefix under which there is nothing.
    pub(crate) fn keys() -> Self {
        Self::Keys(fresh_prefix())
    }

    pub(crate) fn prefix(&self) -> &str {
        match self {
            Self::Keys(prefix) => prefix,
            Self::File(..) | Self::Database(_) => panic!("{self:?} is no Redis"),
        }
    }

    pub(crate) fn url(&self) -> String {
        shared_redis().unwrap().url_under(self.prefix())
    }

    /// A key of this store.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }
}

#[async_trait]
impl moving::Lair for Lair {
    type Kind = Kind;
    const HERE: Kind = Kind::Keys;
    const ELSEWHERE: Kind = Kind::File;

    async fn empty(kind: Kind) -> Self {
        match kind {
            Kind::File => {
                let folder = tempfile::tempdir().unwrap();
                Self::File(folder.path().join("store.db"), Arc::new(folder))
            }
            Kind::Database => Self::Database(shared().unwrap().create_database().unwrap()),
            Kind::Keys => Self::keys(),
        }
    }

    async fn try_open(&self, now: Timestamp) -> Result<Arc<dyn Store>, Refusal> {
        Ok(match self {
            Self::File(path, _) => Arc::new(Sqlite::open(path, now)?),
            Self::Database(url) => Arc::new(Postgres::open(url, now).await?),
            Self::Keys(_) => Arc::new(Redis::open(&self.url(), now).await?),
        })
    }

    fn try_source(&self) -> Result<Box<dyn Movable>, Refusal> {
        Ok(match self {
            Self::File(path, _) => Box::new(SqliteMove::source(path)?),
            Self::Database(url) => Box::new(PgMove::source(url)?),
            Self::Keys(_) => Box::new(RedisStoreCopy::source(&self.url())?),
        })
    }

    fn try_target(&self) -> Result<Box<dyn Movable>, Refusal> {
        Ok(match self {
            Self::File(path, _) => Box::new(SqliteMove::target(path)?),
            Self::Database(url) => Box::new(PgMove::target(url)?),
            Self::Keys(_) => Box::new(RedisStoreCopy::target(&self.url())?),
        })
    }
}

/// A connection to the server that all tests share.
pub(crate) fn redis() -> RedisConnection {
    shared_redis().unwrap().connect().unwrap()
}

pub(crate) fn say(words: &[&str]) -> Reply {
    redis().command(words).unwrap()
}
