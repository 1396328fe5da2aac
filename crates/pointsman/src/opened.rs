//! The store of a bus, as what it is.

use std::path::Path;
use std::sync::Arc;

use pointsman_core::store::{Store, StoreError};
use pointsman_core::{EventId, NewEvent, Timestamp};
use pointsman_engine::TimeSource;
use pointsman_store::sql::{BoxError, Sql, TransactError};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_store_redis::{Endpoint, Redis, RedisStore};
use pointsman_store_sqlite::{Sqlite, SqliteStore};

use crate::builder::StartError;
use crate::emit::Emitted;
use crate::unit_of_work::Receipt;

#[derive(Clone, Debug)]
pub(crate) enum Opened {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
    Redis(RedisStore),
}

/// What became of the events of a unit of work.
pub(crate) enum Made {
    /// They stand in the journal.
    Journaled(Vec<Emitted>),
    /// They will, in their order.
    Left(Vec<Receipt>),
}

impl Opened {
    /// Opens the store. The clock of a server is measured first, so that nothing is written by a clock that is off.
    pub(crate) async fn open(url: &str, time: &TimeSource) -> Result<Self, StartError> {
        let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
        match (scheme, url.strip_prefix("sqlite:")) {
            ("postgres" | "postgresql", _) => {
                time.measure(async || Postgres::read_clock(url).await.map(Some)).await?;
                Ok(Self::Postgres(Postgres::open(url, time.now()).await?))
            }
            (redis, _) if Endpoint::has_scheme(redis) => {
                time.measure(async || Redis::read_clock(url).await.map(Some)).await?;
                Ok(Self::Redis(Redis::open(url, time.now()).await?))
            }
            (_, Some(":memory:")) => Ok(Self::Sqlite(Sqlite::in_memory(time.now())?)),
            (_, Some(path)) if !path.is_empty() => {
                Ok(Self::Sqlite(Sqlite::open(Path::new(path), time.now())?))
            }
            // What follows may hold a password.
            (scheme, _) => Err(StartError::NoSuchStore(scheme.into())),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::Redis(store) => Arc::new(store.clone()),
        }
    }

    /// Runs `work` and emits the events that it returns, in one transaction.
    pub(crate) async fn transact(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<Vec<NewEvent>, BoxError> + Send + 'static,
        now: Timestamp,
    ) -> Result<Made, TransactError> {
        match self {
            Self::Sqlite(store) => Ok(Made::Journaled(Emitted::all(store.transact(work, now).await?))),
            Self::Postgres(store) => {
                let receipts = store.transact(work).await?;
                Ok(Made::Left(receipts.into_iter().map(Receipt::new).collect()))
            }
            Self::Redis(store) => {
                store.transact(work).await?;
                Ok(Made::Left(vec![]))
            }
        }
    }

    /// The id of the event that a receipt stands for, if it has one.
    pub(crate) async fn event_of(&self, receipt: Receipt) -> Result<Option<EventId>, StoreError> {
        match self {
            // There are none: events of a unit of work are journaled with it, or left without.
            Self::Sqlite(_) | Self::Redis(_) => Ok(None),
            Self::Postgres(store) => store.event_of(receipt.uuid()).await,
        }
    }
}
