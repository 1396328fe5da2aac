//! Several nodes on one database.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod invalidation;
mod invariant_check;

use common::test_cluster::PgTestCluster;
use pointsman_store_conformance::cluster::{TestCluster as _, join_nodes};
use pointsman_store_conformance::fixture::*;

pointsman_store_conformance::cluster_suite!(PgTestCluster::new());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_claim_leaves_the_task_to_peers() {
    let cluster = PgTestCluster::new().await;
    let [one, other] = join_nodes(&cluster, RegistrationBuilder::single_handler()).await;
    one.emit(new_event("record").with_key("a")).await;
    let observer = cluster.connect_client().await;
    observer.batch_execute("BEGIN; LOCK TABLE pointsman.task IN SHARE MODE").await.unwrap();
    let terminate_writer = async {
        let terminate_sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while observer.query(terminate_sql, &[]).await.unwrap().is_empty() {}
        observer.batch_execute("COMMIT").await.unwrap();
    };
    let (claimed, ()) = tokio::join!(one.store.claim_tasks(one.claim_request(1), one.now), terminate_writer);
    assert!(claimed.is_err());
    // The peer's claim gets the fence that the failed claim would have had.
    let task = other.claim_one().await;
    one.emit(new_event("record").with_key("b")).await;
    other.succeed(&task).await;
    cluster.assert_consistent().await;
}
