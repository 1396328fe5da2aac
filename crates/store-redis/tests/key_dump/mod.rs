//! Comparison of stores on Redis, key by key.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use pointsman_testing::{RedisReply, shared_redis, unique_key_prefix};

/// Returns all keys of a store with their contents, sorted.
fn dump_keys(prefix: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut redis = shared_redis().unwrap().connect().unwrap();
    let mut dumped = BTreeMap::new();
    for key in redis.run_command(&["KEYS", &format!("{prefix}*")]).unwrap().texts() {
        let key_type = redis.run_command(&["TYPE", &key]).unwrap().text().unwrap();
        let (command, has_pairs): (&[&str], bool) = match key_type.as_str() {
            "string" => (&["GET", &key], false),
            "hash" => (&["HGETALL", &key], true),
            "zset" => (&["ZRANGE", &key, "0", "-1", "WITHSCORES"], true),
            "stream" => (&["XRANGE", &key, "-", "+"], false),
            "list" => (&["LRANGE", &key, "0", "-1"], false),
            other => panic!("{key} is a {other}"),
        };
        let mut flat = Vec::new();
        flatten_reply(redis.run_command(command).unwrap(), &mut flat);
        if has_pairs {
            let mut joined: Vec<Vec<u8>> = flat.chunks(2).map(|pair| pair.join(&b'=')).collect();
            joined.sort();
            flat = joined;
        }
        dumped.insert(key[prefix.len()..].to_string(), flat);
    }
    dumped
}

fn flatten_reply(reply: RedisReply, flat: &mut Vec<Vec<u8>>) {
    match reply {
        RedisReply::Bytes(bytes) => flat.push(bytes),
        RedisReply::List(list) => list.into_iter().for_each(|reply| flatten_reply(reply, flat)),
        RedisReply::Nil | RedisReply::Number(_) | RedisReply::Error(_) => panic!("{reply:?}"),
    }
}

/// Like [`dump_keys`], but without keys that a copy does not preserve (commits and nodes), and without rows that mean the same
/// as a missing row.
fn dump_comparable_keys(prefix: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut dumped = dump_keys(prefix);
    let commit_keys = ["pointsman:store-state", "pointsman:commit-records", "pointsman:invalidation-records"];
    dumped.retain(|key, _| !commit_keys.contains(&key.as_str()) && !is_node_key(key));
    for (name, default_row) in
        [("pointsman:handler-gaps", &b"=[]"[..]), ("pointsman:queue-counts", &b"=\0\0\0\0\0\0"[..])]
    {
        if let Some(rows) = dumped.get_mut(name) {
            rows.retain(|row| !row.ends_with(default_row));
        }
    }
    dumped.retain(|_, rows| !rows.is_empty());
    dumped
}

/// Asserts that the stores with two prefixes have the same keys and contents, except for some keys; returns how many keys
/// were compared.
pub(crate) fn assert_same_keys_and_contents(expected: &str, found: &str, excluded_keys: &[&str]) -> usize {
    let (mut expected, mut found) = (dump_comparable_keys(expected), dump_comparable_keys(found));
    [&mut expected, &mut found]
        .into_iter()
        .for_each(|dumped| dumped.retain(|key, _| !excluded_keys.contains(&key.as_str())));
    let keys = |dumped: &BTreeMap<String, _>| dumped.keys().cloned().collect::<Vec<String>>();
    assert_eq!(keys(&found), keys(&expected));
    for ((key, expected), (_, found)) in expected.iter().zip(&found) {
        let text = |rows: &Vec<Vec<u8>>| {
            rows.iter().map(|row| row.escape_ascii().to_string()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(text(found), text(expected), "{key}");
    }
    found.len()
}

/// Returns whether a key belongs to running nodes, not to the contents of the store.
fn is_node_key(key: &str) -> bool {
    key == "pointsman:nodes" || key.starts_with("pointsman:write-lock") || key.starts_with("event.worker:")
}

/// Copies the keys of a store to a new prefix, without those of running nodes.
pub(crate) fn copy_store_keys(prefix: &str) -> String {
    let (mut redis, copy) = (shared_redis().unwrap().connect().unwrap(), unique_key_prefix());
    for key in redis.run_command(&["KEYS", &format!("{prefix}*")]).unwrap().texts() {
        let name = &key[prefix.len()..];
        if !is_node_key(name) {
            redis.run_command(&["COPY", &key, &format!("{copy}{name}")]).unwrap();
        }
    }
    copy
}
