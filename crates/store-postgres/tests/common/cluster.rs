//! Several nodes on one database.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::{Harness, company};
use pointsman_store_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

use super::audit::audit;
use super::lent::Lent;

/// A database that every store is opened on.
pub(crate) struct Cluster {
    database: Lent,
    opened: Mutex<Vec<Arc<dyn Store>>>,
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        Self { database: Lent::any().await, opened: Mutex::default() }
    }

    pub(crate) fn url(&self) -> &str {
        self.database.url()
    }

    /// Somebody beside the nodes.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Ends all nodes.
    pub(crate) fn close(&self) {
        self.opened.lock().unwrap().drain(..).for_each(|store| store.close());
    }
}

/// Nobody writes to a database any more when it is given back.
impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Harness for Cluster {
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
impl company::Cluster for Cluster {
    async fn audit(&self) {
        audit(self.url()).await;
    }
}
