//! A Redis Cluster: all keys are in one slot.

use pointsman_testing::RedisCluster;
use tokio::task::block_in_place;

use crate::WorkingNode;
use crate::common::redis_location::RedisLocation;
use crate::failover::{assert_journal_survives_failovers, wait_for_replica};

const PREFIX: &str = "{pointsman}:";

/// Returns the location of the keys on their current owner.
fn location_on_key_owner(cluster: &RedisCluster, owner: usize) -> RedisLocation {
    let admin = cluster.server(owner).unwrap().admin().clone();
    RedisLocation { admin, prefix: PREFIX.into(), url: cluster.url() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_operations_work_on_a_cluster() {
    let cluster = block_in_place(RedisCluster::start).unwrap();
    let owner = cluster.find_key_owner(PREFIX).unwrap();
    let location = location_on_key_owner(&cluster, owner);
    let [one, other] = [WorkingNode::open(&location).await, WorkingNode::open(&location).await];
    one.run_all_operations(&location, 0, 20).await;
    other.run_all_operations(&location, 20, 20).await;
    for number in (0..3).filter(|number| *number != owner) {
        let keys = cluster.server(number).unwrap().run_command(&["DBSIZE"]).unwrap();
        assert_eq!(keys.number(), Some(0), "all keys are in one slot");
    }
    one.node.close().await;
    other.node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn operations_continue_after_a_cluster_failover() {
    let cluster = block_in_place(RedisCluster::start_with_replicas).unwrap();
    let owner = cluster.find_key_owner(PREFIX).unwrap();
    let before = location_on_key_owner(&cluster, owner);
    let working = WorkingNode::open(&before).await;
    working.run_all_operations(&before, 0, 20).await;
    block_in_place(|| {
        wait_for_replica(&before);
        cluster.kill_server(owner).unwrap();
        cluster.wait_for_key_owner(PREFIX, owner + 3).unwrap();
    });
    working.wait_until_writable().await;
    working.run_all_operations(&location_on_key_owner(&cluster, owner + 3), 20, 20).await;
    working.node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn journal_is_complete_after_failovers_under_load() {
    let cluster = block_in_place(RedisCluster::start_with_replicas).unwrap();
    let master = cluster.find_key_owner(PREFIX).unwrap();
    let replica = master + 3;
    let fail_over = |from: usize, to: usize| {
        cluster.kill_server(from).unwrap();
        cluster.wait_for_key_owner(PREFIX, to).unwrap();
        cluster.start_server_again(from).unwrap();
        location_on_key_owner(&cluster, to)
    };
    let mut fail_over_to_replica = || fail_over(master, replica);
    let mut fail_back = || fail_over(replica, master);
    assert_journal_survives_failovers(
        location_on_key_owner(&cluster, master),
        &mut [&mut fail_over_to_replica, &mut fail_back],
    )
    .await;
}
