//! A master behind sentinels.

use pointsman_testing::{RedisSentinelGroup, RedisServer};
use tokio::task::block_in_place;

use crate::WorkingNode;
use crate::common::redis_location::RedisLocation;
use crate::failover::{assert_journal_survives_failovers, wait_for_replica};

fn master_location(sentinel: &RedisSentinelGroup, master: &RedisServer) -> RedisLocation {
    RedisLocation { admin: master.admin().clone(), prefix: String::new(), url: sentinel.url() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn operations_continue_after_a_sentinel_failover() {
    let sentinel = block_in_place(RedisSentinelGroup::start).unwrap();
    let master = sentinel.find_master().unwrap();
    let before = master_location(&sentinel, master);
    let working = WorkingNode::open(&before).await;
    working.run_all_operations(&before, 0, 20).await;
    let next = block_in_place(|| {
        wait_for_replica(&before);
        let old = sentinel.kill_master().unwrap();
        sentinel.wait_for_failover(old).unwrap()
    });
    working.wait_until_writable().await;
    working.run_all_operations(&master_location(&sentinel, next), 20, 20).await;
    working.node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn journal_is_complete_after_failovers_under_load() {
    let sentinel = block_in_place(RedisSentinelGroup::start).unwrap();
    let first = master_location(&sentinel, sentinel.find_master().unwrap());
    let mut fail_over_to_replica = || {
        let killed = sentinel.kill_master().unwrap();
        let next = sentinel.wait_for_failover(killed).unwrap();
        sentinel.restart_as_replica(killed).unwrap();
        master_location(&sentinel, next)
    };
    let mut fail_back = || {
        let killed = sentinel.kill_master().unwrap();
        master_location(&sentinel, sentinel.wait_for_failover(killed).unwrap())
    };
    assert_journal_survives_failovers(first, &mut [&mut fail_over_to_replica, &mut fail_back]).await;
}
