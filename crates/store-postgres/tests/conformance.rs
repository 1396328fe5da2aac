//! The PostgreSQL store passes the one suite, on a real server.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::Admin;

/// Databases of its own, dropped with it. The last one made is the one that is reopened.
struct Databases {
    server: &'static Admin,
    made: Mutex<Vec<String>>,
}

impl Databases {
    fn new() -> Self {
        let server = pointsman_testing::shared().expect("a server for the tests");
        Self { server, made: Mutex::default() }
    }

    async fn open(&self, url: &str, now: Timestamp) -> PostgresStore {
        Postgres::open(url, now).await.unwrap_or_else(|fault| panic!("the database opens: {fault}"))
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        for url in self.made.lock().unwrap().drain(..) {
            let name = url.rsplit('/').next().unwrap_or_default();
            let _ = self.server.query("postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

#[async_trait]
impl Harness for Databases {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        let url = self.server.create_database().expect("a new database");
        self.made.lock().unwrap().push(url.clone());
        Arc::new(self.open(&url, now).await)
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let url = self.made.lock().unwrap().last().cloned().expect("one was made");
        Arc::new(self.open(&url, now).await)
    }
}

pointsman_store_conformance::suite!(Databases::new());
