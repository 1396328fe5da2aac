//! The bus on PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::store::StoreError;
use pointsman_core::{EventId, Timestamp};
use pointsman_engine::TimeSource;
use pointsman_store::sql::TransactError;
use pointsman_store_postgres::{Postgres, PostgresStore};

use super::{BusStore, UnitOfWorkEvents, UnitOfWorkFn};
use crate::builder::StartError;
use crate::unit_of_work::EventReceipt;

pub(super) async fn open_store(url: &str, time_source: &TimeSource) -> Result<Arc<dyn BusStore>, StartError> {
    time_source.measure_server_clock(async || Postgres::read_clock(url).await.map(Some)).await?;
    Ok(Arc::new(Postgres::open(url, time_source.now()).await?))
}

#[async_trait]
impl BusStore for PostgresStore {
    async fn run_unit_of_work(
        &self,
        work: UnitOfWorkFn,
        _now: Timestamp,
    ) -> Result<UnitOfWorkEvents, TransactError> {
        let receipts = self.database().transact(work).await?;
        Ok(UnitOfWorkEvents::InOutbox(receipts.into_iter().map(EventReceipt::new).collect()))
    }

    async fn find_event_id_of_receipt(&self, receipt: EventReceipt) -> Result<Option<EventId>, StoreError> {
        self.database().find_event_of_receipt(receipt.uuid()).await
    }
}
