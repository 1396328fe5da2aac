//! One database, for tests with the suite's helpers that also check the tables in SQL.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_postgres::Postgres;
use pointsman_testing::shared_postgres;

/// A new database, on which every store is opened.
pub(crate) struct SingleDatabase {
    pub(crate) url: String,
}

impl SingleDatabase {
    pub(crate) fn new() -> Self {
        Self { url: shared_postgres().unwrap().create_database().unwrap() }
    }

    /// Runs SQL outside of the store; returns the rows, their values as text and NULL as `-`.
    pub(crate) fn query(&self, sql: &str) -> Vec<Vec<String>> {
        let rows = shared_postgres().unwrap().query(self.url.rsplit('/').next().unwrap(), sql).unwrap();
        rows.into_iter()
            .map(|row| row.into_iter().map(|value| value.unwrap_or("-".into())).collect())
            .collect()
    }
}

#[async_trait]
impl Harness for SingleDatabase {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        Arc::new(Postgres::open(&self.url, now).await.unwrap())
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        self.open_empty(now).await
    }
}
