//! The invariant check finds every kind of violation.

use pointsman_store_conformance::cluster::{TestCluster as _, join_nodes};
use pointsman_store_conformance::fixture::*;

use crate::common::invariants::{INVARIANT_QUERIES, find_violations};
use crate::common::test_cluster::PgTestCluster;

/// The name of an invariant, and a change that violates it.
const VIOLATING_STATEMENTS: [(&str, &str); 21] = [
    ("wrong counters of queues", "UPDATE pointsman.queue SET ready = ready + 1 WHERE id = 1"),
    ("wrong counters of queues", "UPDATE pointsman.task SET phase = 6 WHERE phase = 5"),
    ("tasks without a queue", "UPDATE pointsman.task SET queue = 99 WHERE phase = 3"),
    ("numbers beyond the last assigned one", "UPDATE pointsman.commit_version SET last_fence = 0"),
    ("numbers beyond the last assigned one", "UPDATE pointsman.commit_version SET last_task = 1"),
    ("numbers beyond the last assigned one", "UPDATE pointsman.commit_version SET last_archive_number = 0"),
    ("gaps in the numbers of events", "DELETE FROM pointsman.journal WHERE number = 2"),
    (
        "gaps in the numbers of events",
        "UPDATE pointsman.commit_version SET journaled_events = journaled_events + 1",
    ),
    ("events with descending ids", "UPDATE pointsman.journal SET id = 1 WHERE number = 3"),
    ("wrong links to the previous event of an object", "UPDATE pointsman.journal SET prev = NULL"),
    ("lanes with two tasks that run or can run", "UPDATE pointsman.task SET phase = 3 WHERE phase = 0"),
    (
        "lanes whose first task is blocked",
        "UPDATE pointsman.task SET phase = 0 WHERE lane_position IS NOT NULL",
    ),
    ("tasks that wait for a missing synchronous task", "UPDATE pointsman.task SET sync = false"),
    ("tasks without their event", "UPDATE pointsman.task SET event = 7"),
    ("events with missing tasks", "DELETE FROM pointsman.history"),
    ("tasks and orders that do not refer to each other", "UPDATE pointsman.orders SET task = NULL"),
    ("locks without a fence or an owner", "UPDATE pointsman.task SET fence = NULL WHERE phase = 5"),
    ("locks without a fence or an owner", "UPDATE pointsman.task SET node = NULL WHERE phase = 5"),
    ("locks of nodes that have left", "UPDATE pointsman.node SET gone = true"),
    ("fences of two tasks", "UPDATE pointsman.task SET fence = 1, phase = 5"),
    (
        "tasks that are both active and archived",
        "UPDATE pointsman.history SET seq = (SELECT max(seq) FROM pointsman.task)",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_invariant_violation_is_found() {
    let cluster = PgTestCluster::new().await;
    let registration = RegistrationBuilder::single_handler()
        .route("note", &["check!", "notify"])
        .chain("/c", "a=first>done done");
    let [node] = join_nodes(&cluster, registration).await;
    for key in ["a", "a", "a", "b"] {
        node.emit(new_event("record").with_key(key)).await;
    }
    node.emit(new_event("note")).await;
    node.try_add_order(new_order("/c,1")).await.unwrap();
    node.succeed(&node.claim_one().await).await;
    node.claim_one().await;
    cluster.assert_consistent().await;

    let mut client = cluster.connect_client().await;
    for (name, violation) in VIOLATING_STATEMENTS {
        let transaction = client.transaction().await.unwrap();
        let changed = transaction.execute(violation, &[]).await.unwrap();
        let found = find_violations(&transaction).await;
        assert!(
            changed > 0 && found.iter().any(|description| description.starts_with(name)),
            "{violation}: {found:#?}"
        );
        transaction.rollback().await.unwrap();
    }
    assert!(
        INVARIANT_QUERIES
            .iter()
            .all(|(name, _)| VIOLATING_STATEMENTS.iter().any(|(violated, _)| violated == name))
    );
}
