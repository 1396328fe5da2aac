//! The store of a bus, by its concrete type.

use std::path::Path;
use std::sync::Arc;

use pointsman_core::store::{Store, StoreError};
use pointsman_core::{EventId, NewEvent, Timestamp};
use pointsman_engine::TimeSource;
use pointsman_store::sql::{BoxError, SqlTransaction, TransactError};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_store_redis::{Endpoint, Redis, RedisStore};
use pointsman_store_sqlite::{Sqlite, SqliteStore};

use crate::builder::StartError;
use crate::emit::EmittedEvent;
use crate::unit_of_work::EventReceipt;

/// The open store of a bus.
#[derive(Clone, Debug)]
pub(crate) enum BusStore {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
    Redis(RedisStore),
}

/// The events of a committed unit of work.
pub(crate) enum UnitOfWorkEvents {
    /// The commit journaled them.
    Journaled(Vec<EmittedEvent>),
    /// The commit left them in the outbox; a node journals them in order.
    InOutbox(Vec<EventReceipt>),
}

impl BusStore {
    /// Opens the store. The clock of a database server is measured first, so that nothing is written with a wrong time.
    pub(crate) async fn open(url: &str, time_source: &TimeSource) -> Result<Self, StartError> {
        let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
        match (scheme, url.strip_prefix("sqlite:")) {
            ("postgres" | "postgresql", _) => {
                time_source.measure_server_clock(async || Postgres::read_clock(url).await.map(Some)).await?;
                Ok(Self::Postgres(Postgres::open(url, time_source.now()).await?))
            }
            (scheme, _) if Endpoint::is_redis_scheme(scheme) => {
                time_source.measure_server_clock(async || Redis::read_clock(url).await.map(Some)).await?;
                Ok(Self::Redis(Redis::open(url, time_source.now()).await?))
            }
            (_, Some(":memory:")) => Ok(Self::Sqlite(Sqlite::in_memory(time_source.now())?)),
            (_, Some(path)) if !path.is_empty() => {
                Ok(Self::Sqlite(Sqlite::open(Path::new(path), time_source.now())?))
            }
            // The rest of the URL may contain a password.
            (scheme, _) => Err(StartError::UnknownStoreKind(scheme.into())),
        }
    }

    pub(crate) fn to_dyn_store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::Redis(store) => Arc::new(store.clone()),
        }
    }

    /// Runs `work` and emits the events that it returns, in one transaction.
    pub(crate) async fn transact(
        &self,
        work: impl FnOnce(&mut dyn SqlTransaction) -> Result<Vec<NewEvent>, BoxError> + Send + 'static,
        now: Timestamp,
    ) -> Result<UnitOfWorkEvents, TransactError> {
        match self {
            Self::Sqlite(store) => Ok(UnitOfWorkEvents::Journaled(EmittedEvent::from_receipt(
                store.database().transact(work, now).await?,
            ))),
            Self::Postgres(store) => {
                let receipts = store.database().transact(work).await?;
                Ok(UnitOfWorkEvents::InOutbox(receipts.into_iter().map(EventReceipt::new).collect()))
            }
            Self::Redis(store) => {
                store.database().transact(work).await?;
                Ok(UnitOfWorkEvents::InOutbox(vec![]))
            }
        }
    }

    /// The id of a receipt's event, once it is journaled.
    pub(crate) async fn find_event_id_of_receipt(
        &self,
        receipt: EventReceipt,
    ) -> Result<Option<EventId>, StoreError> {
        match self {
            // No receipts exist: SQLite journals the events with the commit, Redis takes them without receipts.
            Self::Sqlite(_) | Self::Redis(_) => Ok(None),
            Self::Postgres(store) => store.database().find_event_of_receipt(receipt.uuid()).await,
        }
    }
}
