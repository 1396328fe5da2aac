//! Opens the store that a configuration names.

use std::io;
use std::sync::Arc;

use pointsman_core::store::{Store, StoreError};
use pointsman_engine::TimeSource;
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_store_redis::{Redis, RedisStore};
use pointsman_store_sqlite::{Sqlite, SqliteStore};

use crate::auth::{self, FirstToken};
use crate::config::StoreUrl;
use crate::server::StartOrReloadError;

/// An open store of one of the backends.
#[derive(Debug)]
pub(crate) enum OpenedStore {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
    Redis(RedisStore),
}

impl OpenedStore {
    /// Opens the store. The clock of a database server is measured first, so that no timestamp is written by a local
    /// clock that is wrong.
    pub(crate) async fn open(url: &StoreUrl, time: &TimeSource) -> Result<Self, StartOrReloadError> {
        match url.clone() {
            StoreUrl::Sqlite { path } => {
                let now = time.now();
                open_sqlite(move || Sqlite::open(path, now)).await
            }
            StoreUrl::SqliteMemory => {
                let now = time.now();
                open_sqlite(move || Sqlite::in_memory(now)).await
            }
            StoreUrl::Postgres(url) => {
                Self::open_postgres(url.full_url(), time).await.map_err(StartOrReloadError::Postgres)
            }
            StoreUrl::Redis(url) => {
                Self::open_redis(url.full_url(), time).await.map_err(StartOrReloadError::Redis)
            }
        }
    }

    async fn open_postgres(
        url: &str,
        time: &TimeSource,
    ) -> Result<Self, pointsman_store_postgres::OpenError> {
        time.measure_server_clock(async || Postgres::read_clock(url).await.map(Some)).await?;
        Postgres::open(url, time.now()).await.map(Self::Postgres)
    }

    async fn open_redis(url: &str, time: &TimeSource) -> Result<Self, pointsman_store_redis::OpenError> {
        time.measure_server_clock(async || Redis::read_clock(url).await.map(Some)).await?;
        Redis::open(url, time.now()).await.map(Self::Redis)
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::Redis(store) => Arc::new(store.clone()),
        }
    }

    /// The token of a server without configured tokens. Its hash is stored with the store, so that all nodes share it.
    pub(crate) async fn find_or_create_first_token(
        &self,
        url: &StoreUrl,
    ) -> Result<FirstToken, StartOrReloadError> {
        let new_token = auth::generate_first_token();
        let sha256 = auth::encode_sha256_hex(&new_token.def.sha256);
        match self {
            Self::Postgres(store) => {
                let corrupt_hash_message = "pointsman.meta does not contain a token's hash under \
                            first_token; delete that row to get a new token";
                resolve_shared_first_token(
                    new_token,
                    store.database().share_first_token_hash(&sha256).await,
                    corrupt_hash_message,
                )
            }
            Self::Redis(store) => {
                let corrupt_hash_message = "pointsman:texts does not contain a token's hash under \
                            first_token; HDEL that field to get a new token";
                resolve_shared_first_token(
                    new_token,
                    store.database().share_first_token_hash(&sha256).await,
                    corrupt_hash_message,
                )
            }
            Self::Sqlite(_) => match url {
                StoreUrl::Sqlite { path } => {
                    auth::load_or_create_first_token(path).map_err(StartOrReloadError::FirstToken)
                }
                StoreUrl::SqliteMemory | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => Ok(new_token),
            },
        }
    }
}

async fn open_sqlite(
    open: impl FnOnce() -> Result<SqliteStore, pointsman_store_sqlite::OpenError> + Send + 'static,
) -> Result<OpenedStore, StartOrReloadError> {
    let opened = tokio::task::spawn_blocking(open).await;
    let opened = opened.map_err(|error| StartOrReloadError::Engine(StoreError::damaged(error)))?;
    opened.map(OpenedStore::Sqlite).map_err(StartOrReloadError::Sqlite)
}

/// The first token of all nodes on a database. The node that created it knows the token, the others only its hash.
/// `corrupt_hash_message` is the error if the stored value is not a hash.
fn resolve_shared_first_token(
    new_token: FirstToken,
    stored_hash: Result<String, StoreError>,
    corrupt_hash_message: &'static str,
) -> Result<FirstToken, StartOrReloadError> {
    let Some(sha256) = auth::decode_sha256_hex(&stored_hash.map_err(StartOrReloadError::Engine)?) else {
        return Err(StartOrReloadError::FirstToken(io::Error::new(
            io::ErrorKind::InvalidData,
            corrupt_hash_message,
        )));
    };
    match sha256 == new_token.def.sha256 {
        true => Ok(new_token),
        false => Ok(FirstToken::from_hash(sha256)),
    }
}
