//! Behaviours of several nodes on one store. [`cluster_suite!`](crate::cluster_suite) creates a test for each.

mod consistency;
pub mod orders;
pub mod pruning;
pub mod racing;
pub mod random_walk;
mod round_robin_harness;
mod suite;

use async_trait::async_trait;
pub use consistency::assert_store_consistent;
pub use round_robin_harness::RoundRobinHarness;

use crate::Harness;
use crate::fixture::{RegistrationBuilder, StoreFixture};

/// A harness whose stores are all opened on the same location, each as one more node; the first finds it empty.
#[async_trait]
pub trait TestCluster: Harness {
    /// Panics if the stored data is inconsistent.
    async fn assert_consistent(&self);
}

/// Opens `N` nodes with the same registration on one store.
pub async fn join_nodes<const N: usize>(
    cluster: &dyn TestCluster,
    registration: RegistrationBuilder,
) -> [StoreFixture<'_>; N] {
    let mut nodes = Vec::with_capacity(N);
    for _ in 0..N {
        nodes.push(StoreFixture::new(cluster, registration.clone()).await);
    }
    nodes.try_into().unwrap_or_else(|_| unreachable!("N nodes were opened"))
}
