//! The bus on SQLite.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_engine::TimeSource;
use pointsman_store::sql::TransactError;
use pointsman_store_sqlite::{Sqlite, SqliteStore};

use super::{BusStore, UnitOfWorkEvents, UnitOfWorkFn};
use crate::builder::StartError;
use crate::emit::EmittedEvent;

/// Opens the file at `path`, or a store in memory for `:memory:`.
pub(super) fn open_store(path: &str, time_source: &TimeSource) -> Result<Arc<dyn BusStore>, StartError> {
    let store = match path {
        ":memory:" => Sqlite::in_memory(time_source.now())?,
        path => Sqlite::open(Path::new(path), time_source.now())?,
    };
    Ok(Arc::new(store))
}

#[async_trait]
impl BusStore for SqliteStore {
    async fn run_unit_of_work(
        &self,
        work: UnitOfWorkFn,
        now: Timestamp,
    ) -> Result<UnitOfWorkEvents, TransactError> {
        let receipt = self.database().transact(work, now).await?;
        Ok(UnitOfWorkEvents::Journaled(EmittedEvent::from_receipt(receipt)))
    }
}
