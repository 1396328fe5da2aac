//! The conformance suite on a real server.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_redis::Redis;
use pointsman_testing::{shared_redis, unique_key_prefix};

/// Opened stores, each with its own prefix. The last one is reopened.
#[derive(Default)]
struct RedisHarness(Mutex<Vec<OpenStore>>);

struct OpenStore {
    store: Arc<dyn Store>,
    url: String,
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        self.store.close();
    }
}

async fn open_store(url: &str, now: Timestamp) -> Arc<dyn Store> {
    let store = Redis::open(url, now).await;
    Arc::new(store.unwrap_or_else(|fault| panic!("could not open the store: {fault}")))
}

#[async_trait]
impl Harness for RedisHarness {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        // Stores without another reference are no longer used.
        self.0
            .lock()
            .expect("the mutex is not poisoned")
            .retain(|opened| Arc::strong_count(&opened.store) > 1);
        let url = shared_redis().expect("Redis starts").url_with_prefix(&unique_key_prefix());
        let store = open_store(&url, now).await;
        self.0.lock().expect("the mutex is not poisoned").push(OpenStore { store: store.clone(), url });
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let url = self.0.lock().expect("the mutex is not poisoned").last().map(|opened| opened.url.clone());
        let store = open_store(&url.expect("a store was opened"), now).await;
        if let Some(opened) = self.0.lock().expect("the mutex is not poisoned").last_mut() {
            opened.store = store.clone();
        }
        store
    }
}

pointsman_store_conformance::suite!(RedisHarness::default());
