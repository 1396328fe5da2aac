//! The conformance suite on a real server.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_redis::Redis;
use pointsman_testing::{shared_redis, unique_key_prefix};

/// FreshStores that were opened, each under a prefix of its own. The last one is the one that is reopened.
#[derive(Default)]
struct FreshStores(Mutex<Vec<OpenStore>>);

struct OpenStore {
    store: Arc<dyn Store>,
    url: String,
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        self.store.close();
    }
}

async fn open(url: &str, now: Timestamp) -> Arc<dyn Store> {
    let store = Redis::open(url, now).await;
    Arc::new(store.unwrap_or_else(|fault| panic!("the store opens: {fault}")))
}

#[async_trait]
impl Harness for FreshStores {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        // Those that only we still have are done with.
        self.0.lock().expect("nobody has panicked").retain(|opened| Arc::strong_count(&opened.store) > 1);
        let url = shared_redis().expect("Redis starts").url_with_prefix(&unique_key_prefix());
        let store = open(&url, now).await;
        self.0.lock().expect("nobody has panicked").push(OpenStore { store: store.clone(), url });
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let url = self.0.lock().expect("nobody has panicked").last().map(|opened| opened.url.clone());
        let store = open(&url.expect("one was opened"), now).await;
        if let Some(opened) = self.0.lock().expect("nobody has panicked").last_mut() {
            opened.store = store.clone();
        }
        store
    }
}

pointsman_store_conformance::suite!(FreshStores::default());
