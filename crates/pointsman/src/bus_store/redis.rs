//! The bus on Redis.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_engine::TimeSource;
use pointsman_store::sql::TransactError;
use pointsman_store_redis::{Redis, RedisStore};

use super::{BusStore, UnitOfWorkEvents, UnitOfWorkFn};
use crate::builder::StartError;

pub(super) async fn open_store(url: &str, time_source: &TimeSource) -> Result<Arc<dyn BusStore>, StartError> {
    time_source.measure_server_clock(async || Redis::read_clock(url).await.map(Some)).await?;
    Ok(Arc::new(Redis::open(url, time_source.now()).await?))
}

#[async_trait]
impl BusStore for RedisStore {
    /// The events of a unit of work have no receipts on Redis.
    async fn run_unit_of_work(
        &self,
        work: UnitOfWorkFn,
        _now: Timestamp,
    ) -> Result<UnitOfWorkEvents, TransactError> {
        self.database().transact(work).await?;
        Ok(UnitOfWorkEvents::InOutbox(vec![]))
    }
}
