//! Redis Cluster and Sentinel: both start, and promote a replica after the loss of a master.

// All of this file is test code; clippy recognizes only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use pointsman_testing::{RedisCluster, RedisSentinelGroup};

#[test]
fn a_cluster_serves_each_key_on_the_server_that_owns_its_slot() {
    let cluster = RedisCluster::start().unwrap();
    let ports: Vec<u16> = (0..3).map(|index| cluster.server(index).unwrap().port()).collect();
    let [one, two, three] = ports[..] else { panic!("a cluster has three masters") };
    assert_eq!(cluster.url(), format!("redis+cluster://127.0.0.1:{one},127.0.0.1:{two},127.0.0.1:{three}"));
    let keys: Vec<String> = (0..30).map(|n| format!("key-{n}")).collect();
    let owners: BTreeSet<usize> = keys.iter().map(|key| cluster.find_key_owner(key).unwrap()).collect();
    assert_eq!(owners.len(), 3);
    for key in &keys {
        let owner = cluster.find_key_owner(key).unwrap();
        cluster.server(owner).unwrap().run_command(&["SET", key, "here"]).unwrap();
        let redirect = cluster.server((owner + 1) % 3).unwrap().run_command(&["GET", key]).unwrap_err();
        assert!(redirect.to_string().contains(&format!("127.0.0.1:{}", ports[owner])), "{redirect}");
    }
    cluster.kill_server(0).unwrap();
    cluster.start_server_again(0).unwrap();
    assert_eq!(keys.iter().map(|key| cluster.find_key_owner(key).unwrap()).collect::<BTreeSet<_>>(), owners);
}

#[test]
fn a_replica_takes_over_from_a_killed_master() {
    let cluster = RedisCluster::start_with_replicas().unwrap();
    let owner = cluster.find_key_owner("key").unwrap();
    let mut connection = cluster.server(owner).unwrap().admin().connect().unwrap();
    connection.run_command(&["SET", "key", "kept"]).unwrap();
    assert_eq!(connection.run_command(&["WAIT", "1", "30000"]).unwrap().number(), Some(1));
    cluster.kill_server(owner).unwrap();
    cluster.wait_for_key_owner("key", owner + 3).unwrap();
    let kept = cluster.server(owner + 3).unwrap().run_command(&["GET", "key"]).unwrap();
    assert_eq!(kept.text().as_deref(), Some("kept"));
}

#[test]
fn sentinels_promote_the_replica_when_the_master_is_killed() {
    let group = RedisSentinelGroup::start().unwrap();
    assert!(group.url().starts_with("redis+sentinel://127.0.0.1:") && group.url().ends_with("/mymaster"));
    let mut connection = group.find_master().unwrap().admin().connect().unwrap();
    connection.run_command(&["SET", "key", "kept"]).unwrap();
    assert_eq!(connection.run_command(&["WAIT", "1", "30000"]).unwrap().number(), Some(1));
    let old = group.kill_master().unwrap();
    let new = group.wait_for_failover(old).unwrap();
    assert_eq!(group.master_port().unwrap(), new.port());
    assert_ne!(new.port(), old.port());
    assert_eq!(new.run_command(&["GET", "key"]).unwrap().text().as_deref(), Some("kept"));
    new.run_command(&["SET", "key", "new"]).unwrap();
    group.restart_as_replica(old).unwrap();
    assert_eq!(old.run_command(&["GET", "key"]).unwrap().text().as_deref(), Some("new"));
}
