//! Several nodes on one Redis.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_conformance::company::{self, agrees};
use pointsman_store_redis::Redis;
use pointsman_testing::{fresh_prefix, shared_redis};

/// A prefix that every store is opened under.
struct Cluster {
    url: String,
    opened: Mutex<Vec<Arc<dyn Store>>>,
}

impl Cluster {
    async fn new() -> Self {
        let url = shared_redis().unwrap().url_under(&fresh_prefix());
        Self { url, opened: Mutex::default() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.opened.lock().unwrap().drain(..).for_each(|store| store.close());
    }
}

#[async_trait]
impl Harness for Cluster {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Redis::open(&self.url, now).await.unwrap());
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
        let witness = Redis::open(&self.url, Timestamp::MIN).await.unwrap();
        agrees(&witness).await;
        witness.close();
    }
}

pointsman_store_conformance::company!(Cluster::new());
