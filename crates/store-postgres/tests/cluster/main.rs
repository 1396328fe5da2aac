//! Several nodes on one database.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
#[path = "../common/mod.rs"]
mod common;
mod known;

use common::cluster::Cluster;
use pointsman_store_conformance::company::{Cluster as _, nodes};
use pointsman_store_conformance::world::*;

pointsman_store_conformance::company!(Cluster::new());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_came_to_nothing_takes_nothing_from_others() {
    let cluster = Cluster::new().await;
    let [one, other] = nodes(&cluster, Plan::simple()).await;
    one.emit(event("record").key("a")).await;
    let beside = cluster.client().await;
    beside.batch_execute("BEGIN; LOCK TABLE pointsman.task IN SHARE MODE").await.unwrap();
    let ending_it = async {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while beside.query(end, &[]).await.unwrap().is_empty() {}
        beside.batch_execute("COMMIT").await.unwrap();
    };
    let (claimed, ()) = tokio::join!(one.store.claim(one.asking(1), one.now), ending_it);
    assert!(claimed.is_err());
    // It has the token that the other would have had.
    let task = other.claim_one().await;
    one.emit(event("record").key("b")).await;
    other.succeed(&task).await;
    cluster.audit().await;
}
