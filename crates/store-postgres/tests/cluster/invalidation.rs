//! Caches of objects, and their invalidation by peers.

use std::time::Duration;

use pointsman_store_conformance::cluster::{TestCluster as _, join_nodes};
use pointsman_store_conformance::fixture::*;

use crate::common::test_cluster::PgTestCluster;

/// Returns how often nodes scanned the index of lanes, once their connections have ended: a connection reports its
/// statistics before it disappears.
async fn count_lane_index_scans(cluster: &PgTestCluster) -> i64 {
    let client = cluster.connect_client().await;
    let has_nodes_sql = "SELECT EXISTS (SELECT FROM pg_stat_activity
                                        WHERE datname = current_database() AND application_name = 'pointsman')";
    while client.query_one(has_nodes_sql, &[]).await.unwrap().get(0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let sql = "SELECT idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'pointsman' AND indexrelname = 'task_lane'";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_reuse_published_objects_without_lane_lookups() {
    const OBJECT_COUNT: usize = 10;
    const ROUNDS: usize = 40;
    let cluster = PgTestCluster::new().await;
    let before = count_lane_index_scans(&cluster).await;
    let nodes: [_; 2] = join_nodes(&cluster, RegistrationBuilder::single_handler()).await;
    let mut last = [None; OBJECT_COUNT];
    for round in 0..ROUNDS {
        let node = &nodes[round % 2];
        let events = (0..OBJECT_COUNT).map(|n| new_event("record").with_key(&format!("object:{n}")));
        let emitted = node.emit_in_one_batch(events.collect()).await.events;
        assert!(emitted.iter().map(|event| event.prev).eq(last), "round {round}");
        emitted.iter().zip(&mut last).for_each(|(event, last)| *last = Some(event.id));
        let claimed = node.claim(OBJECT_COUNT).await;
        assert_eq!(claimed.len(), OBJECT_COUNT, "round {round}: the lanes are empty");
        for task in &claimed {
            node.succeed(task).await;
        }
    }
    cluster.assert_consistent().await;
    cluster.close();
    let scans = count_lane_index_scans(&cluster).await - before;
    assert!((1..4 * OBJECT_COUNT as i64).contains(&scans), "{scans} in {ROUNDS} rounds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_is_dropped_after_a_lost_commit() {
    let cluster = PgTestCluster::new().await;
    let [node] = join_nodes(&cluster, RegistrationBuilder::single_handler()).await;
    let [first, _lost] = [
        node.emit(new_event("record").with_key("a")).await,
        node.emit(new_event("record").with_key("a")).await,
    ];
    // The server lost the last commit, and a peer has made another one with the same number.
    let observer = cluster.connect_client().await;
    observer.execute("UPDATE pointsman.object SET last_event = $1", &[&first.id.as_i64()]).await.unwrap();
    let updated =
        observer.execute("UPDATE pointsman.commit_version SET nonce = nonce + 1", &[]).await.unwrap();
    assert!(updated > 0);
    assert_eq!(node.emit(new_event("record").with_key("a")).await.prev, Some(first.id));
}

/// A store copy may contain objects without a number: those of which Redis stored only the last event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_without_a_number_gets_one_for_all_nodes() {
    const OBJECT_COUNT: usize = 5;
    let cluster = PgTestCluster::new().await;
    let nodes: [_; 2] = join_nodes(&cluster, RegistrationBuilder::single_handler()).await;
    let events = || {
        (0..OBJECT_COUNT).map(|n| new_event("record").with_key(&format!("object:{n}"))).collect::<Vec<_>>()
    };
    let mut last = nodes[0].emit_in_one_batch(events()).await.events;
    nodes[0].run_all_ready_tasks().await;
    let observer = cluster.connect_client().await;
    observer.execute("UPDATE pointsman.object SET number = 0", &[]).await.unwrap();
    observer.execute("UPDATE pointsman.commit_version SET nonce = nonce + 1", &[]).await.unwrap();
    for node in [&nodes[1], &nodes[0], &nodes[1]] {
        let emitted = node.emit_in_one_batch(events()).await.events;
        assert!(emitted.iter().map(|event| event.prev).eq(last.iter().map(|event| Some(event.id))));
        last = emitted;
    }
    let claimed = nodes[0].claim(3 * OBJECT_COUNT).await;
    assert_eq!(
        claimed.len(),
        OBJECT_COUNT,
        "one task of each object can run, whichever node numbered the object"
    );
    let numbers = "SELECT count(DISTINCT number) FROM pointsman.object WHERE number > 0";
    assert_eq!(observer.query_one(numbers, &[]).await.unwrap().get::<_, i64>(0), OBJECT_COUNT as i64);
    cluster.assert_consistent().await;
}
