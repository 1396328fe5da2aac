//! Support for several nodes on one database.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::{Harness, company};
use pointsman_store_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

use super::invariants::check_invariants;
use super::test_database::TestDatabase;

/// A database on which every store is opened.
pub(crate) struct TestCluster {
    database: TestDatabase,
    opened: Mutex<Vec<Arc<dyn Store>>>,
}

impl TestCluster {
    pub(crate) async fn new() -> Self {
        Self { database: TestDatabase::acquire().await, opened: Mutex::default() }
    }

    pub(crate) fn url(&self) -> &str {
        self.database.url()
    }

    /// Connects to the database outside of the nodes.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Closes all nodes.
    pub(crate) fn close(&self) {
        self.opened.lock().unwrap().drain(..).for_each(|store| store.close());
    }
}

/// Closes the nodes before the database is returned to the pool.
impl Drop for TestCluster {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Harness for TestCluster {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(self.url(), now).await.unwrap());
        self.opened.lock().unwrap().push(store.clone());
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        self.fresh(now).await
    }
}

#[async_trait]
impl company::Cluster for TestCluster {
    async fn audit(&self) {
        check_invariants(self.url()).await;
    }
}
