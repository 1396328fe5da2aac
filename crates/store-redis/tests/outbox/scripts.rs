//! Calls of scripts with chosen arguments, for cases that nodes hardly ever cause.

use crate::common::redis_location::{RawClient, RedisLocation, outbox_event_json};

const BEGIN_TRANSACTION_LUA: &str = include_str!("../../src/lua/begin_transaction.lua");
const COMMIT_LUA: &str = include_str!("../../src/lua/commit.lua");
const CLAIM_OBJECTS_LUA: &str = include_str!("../../src/lua/claim_objects.lua");

const VERSION_BEFORE: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 1, 1, 1, 1, 1, 1];
const VERSION_AFTER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 5, 2, 2, 2, 2, 2, 2, 2, 2];

/// Runs `commit.lua` with outbox fences (object, owner, id, number of events) and write commands.
fn run_commit_script(client: &mut RawClient, fences: &[[&str; 4]], writes: &[&[&str]]) -> String {
    run_commit_script_with_invalidation(client, "", fences, writes)
}

/// Runs `commit.lua` like [`run_commit_script`], with an invalidation record.
fn run_commit_script_with_invalidation(
    client: &mut RawClient,
    invalidation: &str,
    fences: &[[&str; 4]],
    writes: &[&[&str]],
) -> String {
    let mut args: Vec<Vec<u8>> = ["EVAL", COMMIT_LUA, "6"].map(|arg| arg.as_bytes().to_vec()).into();
    let names = [
        "store-state",
        "commit-records",
        "write-lock",
        "write-lock:waiting",
        "invalidation-records",
        "write-lock:wake:",
    ];
    args.extend(names.iter().map(|name| format!(":pointsman:{name}").into_bytes()));
    args.extend(["me", "3000"].map(|arg| arg.as_bytes().to_vec()));
    args.extend([
        VERSION_BEFORE.to_vec(),
        VERSION_AFTER.to_vec(),
        VERSION_AFTER.to_vec(),
        invalidation.into(),
    ]);
    args.extend([client.prefix.clone(), String::new(), fences.len().to_string()].map(String::into_bytes));
    args.extend(fences.iter().flatten().map(|arg| arg.as_bytes().to_vec()));
    for write in writes {
        args.push(write.len().to_string().into_bytes());
        args.extend(write.iter().map(|arg| arg.as_bytes().to_vec()));
    }
    client.query_text(&args).unwrap()
}

/// Returns a client of a store whose last commit is `VERSION_BEFORE`.
fn client_at_version_before() -> RawClient {
    let mut client = RedisLocation::on_shared_server().connect();
    client.run_command(&[b"SET".as_slice(), b":pointsman:store-state", &VERSION_BEFORE]);
    client.run_command(&[b"LPUSH".as_slice(), b":pointsman:commit-records", &VERSION_BEFORE]);
    client
}

/// Returns the full name of a key that shows whether a commit has written anything.
fn marker_key(client: &mut RawClient) -> String {
    client.prefixed_key("marker")
}

/// Scripts are not rolled back, so a commit checks everything that could fail before it writes.
#[test]
fn commit_acknowledging_missing_events_writes_nothing() {
    let mut client = client_at_version_before();
    let marker = marker_key(&mut client);
    client.set_object_owner("w", "o", Some((&outbox_event_json("a", 0), "7")));
    let queued = outbox_event_json("a", 1);
    client.run_command(&["LPUSH", ":o:events", &queued]);
    let writes: [&[&str]; 2] = [&["SET", &marker, "1"], &["acknowledge", "o", "", "", "set aside\n"]];
    assert_eq!(run_commit_script(&mut client, &[["o", "w", "7", "3"]], &writes), "fenced");
    let remaining = (
        client.query_integer(&["LLEN", ":o:events"]),
        client.query_integer(&["LLEN", ":event.worker:w:event"]),
    );
    assert_eq!((remaining, client.query_integer(&["EXISTS", ":marker"])), ((1, 1), 0));
    let writes: [&[&str]; 2] = [&["SET", &marker, "1"], &["acknowledge", "o", "", "aside "]];
    assert_eq!(run_commit_script(&mut client, &[["o", "w", "7", "2"]], &writes), "committed");
    assert_eq!(client.query_texts(&["LRANGE", ":events.set.aside", "0", "-1"]), [format!("aside {queued}")]);
    assert_eq!(
        (client.query_integer(&["EXISTS", ":marker"]), client.query_integer(&["LLEN", ":o:events"])),
        (1, 0)
    );
}

#[test]
fn commit_is_refused_if_the_outbox_has_changed() {
    for fence in [
        ["o", "v", "7", "1"],
        ["o", "w", "8", "1"],
        ["o", "w", "", "1"],
        ["o", "", "", "1"],
        ["p", "w", "", "0"],
    ] {
        let mut client = client_at_version_before();
        let marker = marker_key(&mut client);
        client.set_object_owner("w", "o", Some((&outbox_event_json("a", 0), "7")));
        assert_eq!(
            run_commit_script(&mut client, &[fence], &[&["SET", &marker, "1"]]),
            "fenced",
            "{fence:?}"
        );
        assert_eq!(client.query_integer(&["EXISTS", ":marker"]), 0);
    }
}

/// A node resends a commit if the reply was lost; other commits may have followed.
#[test]
fn resent_commit_is_recognised_by_its_nonce() {
    let mut client = client_at_version_before();
    let prefixed_key = client.prefixed_key("list");
    let write: [&[&str]; 1] = [&["RPUSH", &prefixed_key, "1"]];
    assert_eq!(run_commit_script(&mut client, &[], &write), "committed");
    assert_eq!(run_commit_script(&mut client, &[], &write), "committed");
    for n in 6..16 {
        let later = [[0, 0, 0, 0, 0, 0, 0, n], [n; 8]].concat();
        client.run_command(&[b"SET".as_slice(), b":pointsman:store-state", &later]);
        client.run_command(&[b"LPUSH".as_slice(), b":pointsman:commit-records", &later]);
        assert_eq!(run_commit_script(&mut client, &[], &write), "committed", "its commit record is found");
    }
    assert_eq!(client.query_integer(&["LLEN", ":list"]), 1);
    let other = [[0, 0, 0, 0, 0, 0, 0, 5], [9; 8]].concat();
    client.run_command(&[b"DEL".as_slice(), b":pointsman:commit-records"]);
    client.run_command(&[b"LPUSH".as_slice(), b":pointsman:commit-records", &other]);
    client.run_command(&[b"SET".as_slice(), b":pointsman:store-state", &other]);
    assert_eq!(
        run_commit_script(&mut client, &[], &write),
        "conflict",
        "the commit record with this version has another nonce"
    );
}

#[test]
fn invalidation_records_of_recent_commits_are_kept() {
    let read_records = |client: &mut RawClient| {
        client.query_texts(&["LRANGE", ":pointsman:invalidation-records", "0", "-1"])
    };
    let mut client = client_at_version_before();
    (0..20).for_each(|n| {
        drop(client.run_command(&["LPUSH", ":pointsman:invalidation-records", &format!("before {n}")]))
    });
    assert_eq!(run_commit_script_with_invalidation(&mut client, "mine", &[], &[]), "committed");
    let records = read_records(&mut client);
    assert_eq!((records.len(), records[0].as_str(), records[1].as_str()), (16, "mine", "before 19"));
    let mut client = client_at_version_before();
    client.run_command(&["LPUSH", ":pointsman:invalidation-records", "before"]);
    assert_eq!(run_commit_script(&mut client, &[], &[]), "committed");
    assert_eq!(read_records(&mut client), [""; 0], "a commit without a record deletes the older ones");
    let mut client = client_at_version_before();
    client.run_command(&["SET", ":pointsman:invalidation-records", "not a list"]);
    assert_eq!(
        run_commit_script_with_invalidation(&mut client, "mine", &[], &[]),
        "committed",
        "a wrong type is replaced"
    );
    assert_eq!(read_records(&mut client), ["mine"]);
}

#[test]
fn nodes_slightly_behind_receive_invalidation_records() {
    let mut client = RedisLocation::on_shared_server().connect();
    let version = [[0, 0, 0, 0, 0, 0, 0, 20], [7; 8]].concat();
    client.run_command(&[b"SET".as_slice(), b":pointsman:store-state", &version]);
    (0..16).for_each(|n| {
        drop(client.run_command(&["LPUSH", ":pointsman:invalidation-records", &n.to_string()]))
    });
    let names = [
        "store-state",
        "commit-records",
        "write-lock",
        "write-lock:waiting",
        "invalidation-records",
        "write-lock:requested",
    ];
    let keys = names.map(|name| format!(":pointsman:{name}"));
    let count_records = |client: &mut RawClient, cached_version: &str| {
        let args = ["EVAL", BEGIN_TRANSACTION_LUA, "6"].into_iter().chain(keys.iter().map(String::as_str));
        let reply = client.run_command(&args.chain(["me", "3000", cached_version]).collect::<Vec<_>>());
        reply.list()[2].clone().list().len()
    };
    assert_eq!(["20", "19", "4", "3", ""].map(|cached| count_records(&mut client, cached)), [0, 1, 16, 0, 0]);
    client.run_command(&["SET", ":pointsman:invalidation-records", "not a list"]);
    assert_eq!(count_records(&mut client, "19"), 0);
}

fn claim_objects(client: &mut RawClient, workers: &[&str]) -> Vec<String> {
    claim_objects_with_limit(client, "1000", workers)
}

/// Runs `claim_objects.lua` with a limit on the queued names that are read.
fn claim_objects_with_limit(client: &mut RawClient, max_names: &str, workers: &[&str]) -> Vec<String> {
    let prefix = client.prefix.clone();
    let args = ["EVAL", CLAIM_OBJECTS_LUA, "1", ":objects.with.events", &prefix, "15000", max_names];
    client.query_texts(&args.iter().chain(workers).collect::<Vec<_>>())
}

#[test]
fn claim_returns_objects_already_owned() {
    let mut client = RedisLocation::on_shared_server().connect();
    client.set_object_owner("b", "o", Some((&outbox_event_json("a", 0), "7")));
    client.set_worker_heartbeat("b");
    assert_eq!(claim_objects(&mut client, &["a", "b", "c"]), ["b", "o"]);
    assert_eq!(claim_objects(&mut client, &["a", "b", "c"]), ["b", "o"], "a repeated call returns the same");
}

#[test]
fn object_is_owned_by_one_worker() {
    let mut client = RedisLocation::on_shared_server().connect();
    client.push_events("o", &[outbox_event_json("a", 0)]);
    client.push_events("o", &[outbox_event_json("a", 1)]);
    client.push_events("p", &[outbox_event_json("a", 2)]);
    client.push_events("o", &[outbox_event_json("a", 3)]);
    assert_eq!(claim_objects(&mut client, &["a", "b", "c"]), ["a", "o", "b", "p"]);
    assert_eq!(client.query_integer(&["EXISTS", ":objects.with.events", ":event.worker:c:object"]), 0);
}

#[test]
fn claim_limit_does_not_hide_owned_objects() {
    let mut client = RedisLocation::on_shared_server().connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "busy", None);
    client.set_object_owner("b", "o", None);
    client.run_command(&["LPUSH", ":objects.with.events", "busy", "busy", "busy", "busy", "busy", "free"]);
    assert_eq!(claim_objects_with_limit(&mut client, "3", &["a", "b", "c"]), ["b", "o"]);
    assert_eq!(claim_objects_with_limit(&mut client, "3", &["a", "b", "c"]), ["a", "free", "b", "o"]);
    assert_eq!(client.list_keys("event.worker:*:object").len(), 3);
}
