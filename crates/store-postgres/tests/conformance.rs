//! Runs the conformance suite on a real PostgreSQL server.

mod common;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use common::test_database::PooledTestDatabase;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_postgres::Postgres;

/// Open stores, each on its own database. Only the last one can be reopened.
#[derive(Default)]
struct TestStores(Mutex<Vec<StoreOnDatabase>>);

struct StoreOnDatabase {
    store: Arc<dyn Store>,
    database: PooledTestDatabase,
}

/// Closes the store before its database is returned to the pool.
impl Drop for StoreOnDatabase {
    fn drop(&mut self) {
        self.store.close();
    }
}

async fn open_store(url: &str, now: Timestamp) -> Arc<dyn Store> {
    let store = Postgres::open(url, now).await;
    Arc::new(store.unwrap_or_else(|fault| panic!("cannot open the store: {fault}")))
}

#[async_trait]
impl Harness for TestStores {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        // Close the stores that only this list still references: their tests have ended.
        self.0.lock().expect("nobody has panicked").retain(|opened| Arc::strong_count(&opened.store) > 1);
        let database = PooledTestDatabase::acquire().await;
        let store = open_store(database.url(), now).await;
        self.0.lock().expect("nobody has panicked").push(StoreOnDatabase { store: store.clone(), database });
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let url = self
            .0
            .lock()
            .expect("nobody has panicked")
            .last()
            .map(|opened| opened.database.url().to_string())
            .expect("a store was opened before");
        let store = open_store(&url, now).await;
        if let Some(opened) = self.0.lock().expect("nobody has panicked").last_mut() {
            opened.store = store.clone();
        }
        store
    }
}

pointsman_store_conformance::suite!(TestStores::default());
