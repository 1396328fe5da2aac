//! The store of a configuration, opened.

use std::io;
use std::sync::Arc;

use pointsman_core::store::{Store, StoreError};
use pointsman_engine::TimeSource;
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_store_redis::{Redis, RedisStore};
use pointsman_store_sqlite::{Sqlite, SqliteStore};

use crate::auth::{self, FirstToken};
use crate::config::StoreUrl;
use crate::server::StartError;

/// A store that is open, as what it is.
#[derive(Debug)]
pub(crate) enum Opened {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
    Redis(RedisStore),
}

impl Opened {
    /// Opens the store. The clock of a server is measured first, so that nothing is written by a clock that is off.
    pub(crate) async fn open(url: &StoreUrl, time: &TimeSource) -> Result<Self, StartError> {
        match url.clone() {
            StoreUrl::Sqlite { path } => {
                let now = time.now();
                sqlite(move || Sqlite::open(path, now)).await
            }
            StoreUrl::SqliteMemory => {
                let now = time.now();
                sqlite(move || Sqlite::in_memory(now)).await
            }
            StoreUrl::Postgres(url) => Self::postgres(url.whole(), time).await.map_err(StartError::Postgres),
            StoreUrl::Redis(url) => Self::redis(url.whole(), time).await.map_err(StartError::Redis),
        }
    }

    async fn postgres(url: &str, time: &TimeSource) -> Result<Self, pointsman_store_postgres::OpenError> {
        time.measure(async || Postgres::read_clock(url).await.map(Some)).await?;
        Postgres::open(url, time.now()).await.map(Self::Postgres)
    }

    async fn redis(url: &str, time: &TimeSource) -> Result<Self, pointsman_store_redis::OpenError> {
        time.measure(async || Redis::read_clock(url).await.map(Some)).await?;
        Redis::open(url, time.now()).await.map(Self::Redis)
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::Redis(store) => Arc::new(store.clone()),
        }
    }

    /// The token for a server that has no other. What is kept of it lies where all who share the store find it.
    pub(crate) async fn first_token(&self, url: &StoreUrl) -> Result<FirstToken, StartError> {
        let mine = auth::fresh();
        let sha256 = auth::to_hex(&mine.def.sha256);
        match self {
            Self::Postgres(store) => {
                let what = "pointsman.meta does not hold a token's hash under first_token; delete that row to get a new \
                            token";
                shared(mine, store.first_token(&sha256).await, what)
            }
            Self::Redis(store) => {
                let what = "pointsman:texts does not hold a token's hash under first_token; HDEL that field to get a new \
                            token";
                shared(mine, store.first_token(&sha256).await, what)
            }
            Self::Sqlite(_) => match url {
                StoreUrl::Sqlite { path } => auth::beside(path).map_err(StartError::Token),
                StoreUrl::SqliteMemory | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => Ok(mine),
            },
        }
    }
}

async fn sqlite(
    open: impl FnOnce() -> Result<SqliteStore, pointsman_store_sqlite::OpenError> + Send + 'static,
) -> Result<Opened, StartError> {
    let opened = tokio::task::spawn_blocking(open).await;
    let opened = opened.map_err(|error| StartError::Engine(StoreError::Damaged(error.to_string())))?;
    opened.map(Opened::Sqlite).map_err(StartError::Store)
}

/// The one token of all nodes on a database: made by whichever came first, which alone can tell it. `what` is told if it
/// keeps something else.
fn shared(
    mine: FirstToken,
    kept: Result<String, StoreError>,
    what: &'static str,
) -> Result<FirstToken, StartError> {
    let Some(sha256) = auth::from_hex(&kept.map_err(StartError::Engine)?) else {
        return Err(StartError::Token(io::Error::new(io::ErrorKind::InvalidData, what)));
    };
    match sha256 == mine.def.sha256 {
        true => Ok(mine),
        false => Ok(FirstToken::kept(sha256)),
    }
}
