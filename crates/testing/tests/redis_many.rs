//! Many Redis: a cluster comes up and survives the loss of a master, sentinels put another one in its place.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use pointsman_testing::{RedisCluster, RedisSentinel};

#[test]
fn a_cluster_serves_each_key_where_it_belongs() {
    let cluster = RedisCluster::start().unwrap();
    let ports: Vec<u16> = (0..3).map(|number| cluster.node(number).unwrap().port()).collect();
    let [one, two, three] = ports[..] else { panic!("a cluster has three masters") };
    assert_eq!(cluster.url(), format!("redis+cluster://127.0.0.1:{one},127.0.0.1:{two},127.0.0.1:{three}"));
    let keys: Vec<String> = (0..30).map(|n| format!("key-{n}")).collect();
    let owners: BTreeSet<usize> = keys.iter().map(|key| cluster.owner_of(key).unwrap()).collect();
    assert_eq!(owners.len(), 3);
    for key in &keys {
        let owner = cluster.owner_of(key).unwrap();
        cluster.node(owner).unwrap().command(&["SET", key, "here"]).unwrap();
        let moved = cluster.node((owner + 1) % 3).unwrap().command(&["GET", key]).unwrap_err();
        assert!(moved.to_string().contains(&format!("127.0.0.1:{}", ports[owner])), "{moved}");
    }
    cluster.kill(0).unwrap();
    cluster.start_again(0).unwrap();
    assert_eq!(keys.iter().map(|key| cluster.owner_of(key).unwrap()).collect::<BTreeSet<_>>(), owners);
}

#[test]
fn a_replica_takes_the_place_of_a_killed_master() {
    let cluster = RedisCluster::start_with_replicas().unwrap();
    let owner = cluster.owner_of("key").unwrap();
    let mut connection = cluster.node(owner).unwrap().admin().connect().unwrap();
    connection.command(&["SET", "key", "kept"]).unwrap();
    assert_eq!(connection.command(&["WAIT", "1", "30000"]).unwrap().number(), Some(1));
    cluster.kill(owner).unwrap();
    cluster.wait_for_owner("key", owner + 3).unwrap();
    let kept = cluster.node(owner + 3).unwrap().command(&["GET", "key"]).unwrap();
    assert_eq!(kept.text().as_deref(), Some("kept"));
}

#[test]
fn sentinels_name_the_replica_when_the_master_is_gone() {
    let sentinel = RedisSentinel::start().unwrap();
    assert!(
        sentinel.url().starts_with("redis+sentinel://127.0.0.1:") && sentinel.url().ends_with("/mymaster")
    );
    let mut connection = sentinel.master().unwrap().admin().connect().unwrap();
    connection.command(&["SET", "key", "kept"]).unwrap();
    assert_eq!(connection.command(&["WAIT", "1", "30000"]).unwrap().number(), Some(1));
    let old = sentinel.kill_master().unwrap();
    let new = sentinel.wait_for_failover(old).unwrap();
    assert_eq!(sentinel.master_port().unwrap(), new.port());
    assert_ne!(new.port(), old.port());
    assert_eq!(new.command(&["GET", "key"]).unwrap().text().as_deref(), Some("kept"));
    new.command(&["SET", "key", "new"]).unwrap();
    sentinel.rejoin(old).unwrap();
    assert_eq!(old.command(&["GET", "key"]).unwrap().text().as_deref(), Some("new"));
}
