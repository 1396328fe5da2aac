//! Opens the store that a configuration names.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::store::{Store, StoreResult};
use pointsman_engine::TimeSource;

use crate::auth::{self, FirstToken};
use crate::config::StoreUrl;
use crate::server::StartOrReloadError;

/// An open store.
pub(crate) struct OpenedStore {
    store: Arc<dyn Store>,
    /// Stores the hash of the first token for all nodes. `None` for SQLite, which has one node.
    first_token_hash_store: Option<Arc<dyn FirstTokenHashStore>>,
}

/// A database that several nodes share and that stores the hash of their first token.
#[async_trait]
trait FirstTokenHashStore: Send + Sync {
    /// The message of the error for a stored value that is not a hash.
    fn corrupt_hash_message(&self) -> &'static str;

    /// Stores the hash if there is none, and returns the stored one.
    async fn get_or_store_hash(&self, sha256: &str) -> StoreResult<String>;
}

#[cfg(feature = "postgres")]
#[async_trait]
impl FirstTokenHashStore for pointsman_store_postgres::PostgresStore {
    fn corrupt_hash_message(&self) -> &'static str {
        "pointsman.meta does not contain a token's hash under first_token; delete that row to get a new token"
    }

    async fn get_or_store_hash(&self, sha256: &str) -> StoreResult<String> {
        self.database().share_first_token_hash(sha256).await
    }
}

#[cfg(feature = "redis")]
#[async_trait]
impl FirstTokenHashStore for pointsman_store_redis::RedisStore {
    fn corrupt_hash_message(&self) -> &'static str {
        "pointsman:texts does not contain a token's hash under first_token; HDEL that field to get a new token"
    }

    async fn get_or_store_hash(&self, sha256: &str) -> StoreResult<String> {
        self.database().share_first_token_hash(sha256).await
    }
}

impl OpenedStore {
    /// Opens the store. The clock of a database server is measured first, so that no timestamp is written by a local
    /// clock that is wrong.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres", feature = "redis")),
        allow(unused_variables, reason = "no store can be opened")
    )]
    pub(crate) async fn open(url: &StoreUrl, time: &TimeSource) -> Result<Self, StartOrReloadError> {
        match url.clone() {
            #[cfg(feature = "sqlite")]
            StoreUrl::Sqlite { path } => {
                let now = time.now();
                open_sqlite(move || pointsman_store_sqlite::Sqlite::open(path, now)).await
            }
            #[cfg(feature = "sqlite")]
            StoreUrl::SqliteMemory => {
                let now = time.now();
                open_sqlite(move || pointsman_store_sqlite::Sqlite::in_memory(now)).await
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => {
                open_postgres(url.full_url(), time).await.map_err(StartOrReloadError::Postgres)
            }
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => open_redis(url.full_url(), time).await.map_err(StartOrReloadError::Redis),
            #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
            missing => Err(missing.missing_feature_error().into()),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The token of a server without configured tokens. Its hash is stored with the store, so that all nodes share it.
    pub(crate) async fn find_or_create_first_token(
        &self,
        url: &StoreUrl,
    ) -> Result<FirstToken, StartOrReloadError> {
        if let StoreUrl::Sqlite { path } = url {
            return auth::load_or_create_first_token(path).map_err(StartOrReloadError::FirstToken);
        }
        let new_token = auth::generate_first_token();
        match &self.first_token_hash_store {
            Some(shared) => get_or_store_first_token(new_token, &**shared).await,
            None => Ok(new_token),
        }
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(
    open: impl FnOnce() -> Result<pointsman_store_sqlite::SqliteStore, pointsman_store_sqlite::OpenError>
    + Send
    + 'static,
) -> Result<OpenedStore, StartOrReloadError> {
    use pointsman_core::store::StoreError;

    let opened = tokio::task::spawn_blocking(open).await;
    let opened = opened.map_err(|error| StartOrReloadError::Engine(StoreError::damaged(error)))?;
    let store = opened.map_err(StartOrReloadError::Sqlite)?;
    Ok(OpenedStore { store: Arc::new(store), first_token_hash_store: None })
}

#[cfg(feature = "postgres")]
async fn open_postgres(
    url: &str,
    time: &TimeSource,
) -> Result<OpenedStore, pointsman_store_postgres::OpenError> {
    use pointsman_store_postgres::Postgres;

    time.measure_server_clock(async || Postgres::read_clock(url).await.map(Some)).await?;
    let store = Arc::new(Postgres::open(url, time.now()).await?);
    Ok(OpenedStore { store: store.clone(), first_token_hash_store: Some(store) })
}

#[cfg(feature = "redis")]
async fn open_redis(url: &str, time: &TimeSource) -> Result<OpenedStore, pointsman_store_redis::OpenError> {
    use pointsman_store_redis::Redis;

    time.measure_server_clock(async || Redis::read_clock(url).await.map(Some)).await?;
    let store = Arc::new(Redis::open(url, time.now()).await?);
    Ok(OpenedStore { store: store.clone(), first_token_hash_store: Some(store) })
}

/// Stores the hash of the new token as that of the first token, unless another node has stored one before. Returns the
/// new token, or the stored hash of the other node's token.
async fn get_or_store_first_token(
    new_token: FirstToken,
    shared: &dyn FirstTokenHashStore,
) -> Result<FirstToken, StartOrReloadError> {
    let sha256 = auth::encode_sha256_hex(&new_token.token_def.sha256);
    let stored_hash = shared.get_or_store_hash(&sha256).await.map_err(StartOrReloadError::Engine)?;
    let Some(sha256) = auth::decode_sha256_hex(&stored_hash) else {
        return Err(StartOrReloadError::FirstToken(io::Error::new(
            io::ErrorKind::InvalidData,
            shared.corrupt_hash_message(),
        )));
    };
    match sha256 == new_token.token_def.sha256 {
        true => Ok(new_token),
        false => Ok(FirstToken::from_hash(sha256)),
    }
}
