//! The cluster suite: several nodes on one Redis.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "key_dump/mod.rs"]
mod key_dump;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::store_copy::copy_store;
use pointsman_store_conformance::Harness;
use pointsman_store_conformance::cluster::{self, assert_store_consistent};
use pointsman_store_redis::{Redis, RedisStoreCopy};
use pointsman_testing::{shared_redis, unique_key_prefix};

/// Opens every store with the same prefix.
struct SharedPrefixCluster {
    prefix: String,
    open_stores: Mutex<Vec<Arc<dyn Store>>>,
}

impl SharedPrefixCluster {
    async fn new() -> Self {
        Self { prefix: unique_key_prefix(), open_stores: Mutex::default() }
    }

    fn url(&self) -> String {
        store_url_with_prefix(&self.prefix)
    }
}

fn store_url_with_prefix(prefix: &str) -> String {
    shared_redis().unwrap().url_with_prefix(prefix)
}

impl Drop for SharedPrefixCluster {
    fn drop(&mut self) {
        self.open_stores.lock().unwrap().drain(..).for_each(|store| store.close());
    }
}

#[async_trait]
impl Harness for SharedPrefixCluster {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Redis::open(&self.url(), now).await.unwrap());
        self.open_stores.lock().unwrap().push(store.clone());
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        self.open_empty(now).await
    }
}

#[async_trait]
impl cluster::TestCluster for SharedPrefixCluster {
    /// Copies the store and compares the keys: a copy rebuilds all indexes from the rows, so they must equal the original's.
    async fn assert_consistent(&self) {
        let verifier = Redis::open(&self.url(), Timestamp::MIN).await.unwrap();
        assert_store_consistent(&verifier).await;
        verifier.close();
        let prefix = self.prefix.clone();
        let compared = tokio::task::spawn_blocking(move || {
            let (original, copy) = (key_dump::copy_store_keys(&prefix), unique_key_prefix());
            let (mut source, mut target) = (
                RedisStoreCopy::open_source(&store_url_with_prefix(&original)).unwrap(),
                RedisStoreCopy::open_target(&store_url_with_prefix(&copy)).unwrap(),
            );
            copy_store(&mut source, &mut target, &mut |_| {}).unwrap();
            // A copy omits expired events, which may still be stored in the source.
            let journal_keys =
                ["pointsman:journal", "pointsman:event-number-samples", "pointsman:caused-events"];
            key_dump::assert_same_keys_and_contents(&original, &copy, &journal_keys)
        });
        assert!(compared.await.unwrap() > 5);
    }
}

pointsman_store_conformance::cluster_suite!(SharedPrefixCluster::new());
