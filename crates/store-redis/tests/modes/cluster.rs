//! A Redis Cluster: all keys are in one slot.

use pointsman_testing::RedisCluster;
use tokio::task::block_in_place;

use crate::Working;
use crate::common::place::Place;
use crate::failover::{keeps_its_history, wait_for_replica};

const PREFIX: &str = "{pointsman}:";

/// Where the keys are now.
fn place(cluster: &RedisCluster, owner: usize) -> Place {
    let admin = cluster.node(owner).unwrap().admin().clone();
    Place { admin, prefix: PREFIX.into(), url: cluster.url() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_of_it_works_on_a_cluster() {
    let cluster = block_in_place(RedisCluster::start).unwrap();
    let owner = cluster.owner_of(PREFIX).unwrap();
    let place = place(&cluster, owner);
    let [one, other] = [Working::open(&place).await, Working::open(&place).await];
    one.does_all(&place, 0, 20).await;
    other.does_all(&place, 20, 20).await;
    for number in (0..3).filter(|number| *number != owner) {
        let keys = cluster.node(number).unwrap().command(&["DBSIZE"]).unwrap();
        assert_eq!(keys.number(), Some(0), "all keys are in one slot");
    }
    one.node.close().await;
    other.node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_goes_on_where_a_replica_takes_the_place_of_its_master() {
    let cluster = block_in_place(RedisCluster::start_with_replicas).unwrap();
    let owner = cluster.owner_of(PREFIX).unwrap();
    let before = place(&cluster, owner);
    let working = Working::open(&before).await;
    working.does_all(&before, 0, 20).await;
    block_in_place(|| {
        wait_for_replica(&before);
        cluster.kill(owner).unwrap();
        cluster.wait_for_owner(PREFIX, owner + 3).unwrap();
    });
    working.goes_on().await;
    working.does_all(&place(&cluster, owner + 3), 20, 20).await;
    working.node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn history_is_whole_after_failovers_under_load() {
    let cluster = block_in_place(RedisCluster::start_with_replicas).unwrap();
    let master = cluster.owner_of(PREFIX).unwrap();
    let replica = master + 3;
    let fail_over = |from: usize, to: usize| {
        cluster.kill(from).unwrap();
        cluster.wait_for_owner(PREFIX, to).unwrap();
        cluster.start_again(from).unwrap();
        place(&cluster, to)
    };
    let mut forth = || fail_over(master, replica);
    let mut back = || fail_over(replica, master);
    keeps_its_history(place(&cluster, master), &mut [&mut forth, &mut back]).await;
}
