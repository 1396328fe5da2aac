//! The write lock: waiting nodes get it in order of arrival.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::redis_location::{RawClient, RedisLocation};

const BEGIN_TRANSACTION_LUA: &str = include_str!("../src/lua/begin_transaction.lua");
const COMMIT_LUA: &str = include_str!("../src/lua/commit.lua");
const COMMON_SCRIPT_KEYS: [&str; 5] =
    ["store-state", "commit-records", "write-lock", "write-lock:waiting", "invalidation-records"];

/// Requests the lock; returns whether it was acquired.
fn try_acquire_write_lock(client: &mut RawClient, node: &str) -> bool {
    let names = COMMON_SCRIPT_KEYS.into_iter().chain(["write-lock:requested"]);
    let keys: Vec<String> = names.map(|name| format!(":pointsman:{name}")).collect();
    let args = ["EVAL", BEGIN_TRANSACTION_LUA, "6"]
        .into_iter()
        .chain(keys.iter().map(String::as_str))
        .chain([node, "60000", ""]);
    client.run_command(&args.collect::<Vec<_>>()).list()[0].number().unwrap() == 1
}

/// Releases the lock; returns the next owner.
fn release_write_lock(client: &mut RawClient, node: &str) -> Option<String> {
    let names = COMMON_SCRIPT_KEYS.into_iter().chain(["write-lock:wake:"]);
    let keys: Vec<String> = names.map(|name| format!(":pointsman:{name}")).collect();
    let prefix = client.prefix.clone();
    let args = ["EVAL", COMMIT_LUA, "6"].into_iter().chain(keys.iter().map(String::as_str));
    let args = args.chain([node, "60000", "", "", "", "", &prefix, "", "0"]);
    client.run_command(&args.collect::<Vec<_>>());
    client.query_text(&["GET", ":pointsman:write-lock"])
}

/// The order of arrival also counts for nodes that arrive in the same second, whatever their names are: otherwise one of three
/// busy nodes would hardly ever get the lock.
#[test]
fn longest_waiting_node_gets_the_write_lock_next() {
    let mut client = RedisLocation::on_shared_server().connect();
    for round in 0..5 {
        assert!(try_acquire_write_lock(&mut client, "b"));
        assert!(
            !try_acquire_write_lock(&mut client, "c")
                && !try_acquire_write_lock(&mut client, "a")
                && !try_acquire_write_lock(&mut client, "c")
        );
        assert_eq!(release_write_lock(&mut client, "b").as_deref(), Some("c"), "in round {round}");
        assert!(try_acquire_write_lock(&mut client, "c") && !try_acquire_write_lock(&mut client, "b"));
        assert_eq!(release_write_lock(&mut client, "c").as_deref(), Some("a"));
        assert_eq!(release_write_lock(&mut client, "a").as_deref(), Some("b"));
        assert!(try_acquire_write_lock(&mut client, "b"));
        assert_eq!(release_write_lock(&mut client, "b"), None);
    }
}

#[test]
fn waiting_nodes_stay_in_order_and_vanished_nodes_are_removed() {
    let mut client = RedisLocation::on_shared_server().connect();
    assert!(
        try_acquire_write_lock(&mut client, "a")
            && !try_acquire_write_lock(&mut client, "gone")
            && !try_acquire_write_lock(&mut client, "waiting")
    );
    // Both have waited for a minute, and one has not repeated its request for 30 seconds.
    let seconds: i64 = client.query_texts(&["TIME"])[0].parse().unwrap();
    let [minute_ago, long_ago] = [60, 30].map(|ago| ((seconds - ago) * 1_000_000).to_string());
    client.run_command(&[
        "ZADD",
        ":pointsman:write-lock:waiting",
        &minute_ago,
        "gone",
        &minute_ago,
        "waiting",
    ]);
    client.run_command(&["ZADD", ":pointsman:write-lock:requested", &long_ago, "gone"]);
    assert!(!try_acquire_write_lock(&mut client, "late"));
    assert_eq!(
        client.query_texts(&["ZRANGE", ":pointsman:write-lock:waiting", "0", "-1"]),
        ["waiting", "late"]
    );
    assert_eq!(release_write_lock(&mut client, "a").as_deref(), Some("waiting"));
}

/// Nodes that waited before all nodes were stopped do not delay others.
#[test]
fn waiting_list_expires_when_no_node_waits() {
    let mut client = RedisLocation::on_shared_server().connect();
    assert!(try_acquire_write_lock(&mut client, "a") && !try_acquire_write_lock(&mut client, "b"));
    for key in [":pointsman:write-lock:waiting", ":pointsman:write-lock:requested"] {
        assert!((1..=3000).contains(&client.query_integer(&["PTTL", key])));
    }
    assert_eq!(release_write_lock(&mut client, "a").as_deref(), Some("b"));
    assert!(try_acquire_write_lock(&mut client, "b"));
    assert_eq!(
        client.query_integer(&["EXISTS", ":pointsman:write-lock:waiting", ":pointsman:write-lock:requested"]),
        0
    );
}
