//! Several nodes on one store: they race, and agree. [`company!`](crate::company) makes a test of each behaviour.

mod agree;
mod chorus;
pub mod orders;
pub mod pruning;
pub mod racing;
mod suite;
pub mod walk;

pub use agree::agrees;
use async_trait::async_trait;
pub use chorus::Choir;

use crate::Harness;
use crate::world::{Plan, World};

/// A place that every store is opened on, as one more node; the first finds it empty.
#[async_trait]
pub trait Cluster: Harness {
    /// Panics if what lies there does not agree with itself.
    async fn audit(&self);
}

/// So many nodes that are set up alike.
pub async fn nodes<const N: usize>(cluster: &dyn Cluster, plan: Plan) -> [World<'_>; N] {
    let mut nodes = Vec::with_capacity(N);
    for _ in 0..N {
        nodes.push(World::new(cluster, plan.clone()).await);
    }
    nodes.try_into().unwrap_or_else(|_| unreachable!("as many as were asked for"))
}
