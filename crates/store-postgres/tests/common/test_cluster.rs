//! Support for several nodes on one database.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::{Harness, cluster};
use pointsman_store_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

use super::invariants::assert_invariants;
use super::test_database::PooledTestDatabase;

/// A database on which every store is opened.
pub(crate) struct PgTestCluster {
    database: PooledTestDatabase,
    open_stores: Mutex<Vec<Arc<dyn Store>>>,
}

impl PgTestCluster {
    pub(crate) async fn new() -> Self {
        Self { database: PooledTestDatabase::acquire().await, open_stores: Mutex::default() }
    }

    pub(crate) fn url(&self) -> &str {
        self.database.url()
    }

    /// Connects to the database outside of the nodes.
    pub(crate) async fn connect_client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Closes all nodes.
    pub(crate) fn close(&self) {
        self.open_stores.lock().unwrap().drain(..).for_each(|store| store.close());
    }
}

/// Closes the nodes before the database is returned to the pool.
impl Drop for PgTestCluster {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Harness for PgTestCluster {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(self.url(), now).await.unwrap());
        self.open_stores.lock().unwrap().push(store.clone());
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        self.open_empty(now).await
    }
}

#[async_trait]
impl cluster::TestCluster for PgTestCluster {
    async fn assert_consistent(&self) {
        assert_invariants(self.url()).await;
    }
}
