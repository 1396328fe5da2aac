//! Stores that send each call to the next of three nodes. Behaviours of one node must also hold when their calls are
//! spread over several nodes.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;

use super::TestCluster;
use crate::{DispatchingStore, Harness};

const NODES_PER_STORE: usize = 3;

/// Opens each store as a round-robin store over three more nodes on the same location.
#[allow(missing_debug_implementations, reason = "a cluster need not have one")]
pub struct RoundRobinHarness<'c>(pub &'c dyn TestCluster);

impl RoundRobinHarness<'_> {
    async fn open_round_robin_store(&self, now: Timestamp) -> Arc<dyn Store> {
        let mut nodes = Vec::with_capacity(NODES_PER_STORE);
        for _ in 0..NODES_PER_STORE {
            nodes.push(self.0.open_empty(now).await);
        }
        DispatchingStore::round_robin(nodes)
    }
}

#[async_trait]
impl Harness for RoundRobinHarness<'_> {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        self.open_round_robin_store(now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        self.open_round_robin_store(now).await
    }
}
