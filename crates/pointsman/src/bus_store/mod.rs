//! The store of a bus: opened by its URL, if its feature is enabled.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::store::{Store, StoreError};
use pointsman_core::{EventId, NewEvent, Timestamp};
use pointsman_engine::TimeSource;
use pointsman_store::sql::{BoxError, SqlTransaction, TransactError};
use pointsman_store::store_kind::StoreKind;

use crate::builder::StartError;
use crate::emit::EmittedEvent;
use crate::unit_of_work::EventReceipt;

/// What a unit of work does in its transaction; the events that it returns are emitted with the commit.
pub(crate) type UnitOfWorkFn =
    Box<dyn FnOnce(&mut dyn SqlTransaction) -> Result<Vec<NewEvent>, BoxError> + Send>;

/// The open store of a bus.
#[async_trait]
pub(crate) trait BusStore: Store {
    /// Runs `work` and emits the events that it returns, in one transaction.
    async fn run_unit_of_work(
        &self,
        work: UnitOfWorkFn,
        now: Timestamp,
    ) -> Result<UnitOfWorkEvents, TransactError>;

    /// The id of a receipt's event, once it is journaled. Stores other than PostgreSQL give no receipts.
    async fn find_event_id_of_receipt(&self, _receipt: EventReceipt) -> Result<Option<EventId>, StoreError> {
        Ok(None)
    }
}

/// The events of a committed unit of work.
pub(crate) enum UnitOfWorkEvents {
    /// The commit journaled the events.
    #[cfg_attr(
        not(feature = "sqlite"),
        allow(dead_code, reason = "only SQLite journals events with the commit")
    )]
    Journaled(Vec<EmittedEvent>),
    /// The commit left the events in the outbox; a node journals them in order.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "redis")),
        allow(dead_code, reason = "SQLite has no outbox")
    )]
    InOutbox(Vec<EventReceipt>),
}

/// Opens a store. The clock of a database server is measured first, so that nothing is written with a wrong time.
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "redis")),
    allow(unused_variables, reason = "no store can be opened")
)]
pub(crate) async fn open_store(url: &str, time_source: &TimeSource) -> Result<Arc<dyn BusStore>, StartError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    // The rest of the URL may contain a password.
    let unknown_kind = || StartError::UnknownStoreKind(scheme.into());
    match StoreKind::from_scheme(scheme).ok_or_else(unknown_kind)? {
        #[cfg(feature = "sqlite")]
        StoreKind::Sqlite => {
            let path =
                url.strip_prefix("sqlite:").filter(|path| !path.is_empty()).ok_or_else(unknown_kind)?;
            sqlite::open_store(path, time_source)
        }
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => postgres::open_store(url, time_source).await,
        #[cfg(feature = "redis")]
        StoreKind::Redis => redis::open_store(url, time_source).await,
        #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
        missing => Err(pointsman_store::store_kind::MissingStoreFeature(missing).into()),
    }
}
