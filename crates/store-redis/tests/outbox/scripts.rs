//! The scripts by themselves, for what hardly ever happens.

use crate::common::redis_location::{RawClient, RedisLocation, outbox_event};

const BEGIN: &str = include_str!("../../src/lua/begin_transaction.lua");
const COMMIT: &str = include_str!("../../src/lua/commit.lua");
const CLAIM_OBJECTS: &str = include_str!("../../src/lua/claim_objects.lua");

const VERSION_BEFORE: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 1, 1, 1, 1, 1, 1];
const VERSION_AFTER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 5, 2, 2, 2, 2, 2, 2, 2, 2];

/// Commits by hand: what was taken out of outboxes (object, holder, id, number of events), and commands. Each is the
/// number of its words and its words.
fn run_commit(client: &mut RawClient, fences: &[[&str; 4]], writes: &[&[&str]]) -> String {
    run_commit_with_invalidation(client, "", fences, writes)
}

/// The same, with what it tells of what it wrote.
fn run_commit_with_invalidation(
    client: &mut RawClient,
    touched: &str,
    fences: &[[&str; 4]],
    writes: &[&[&str]],
) -> String {
    let mut words: Vec<Vec<u8>> = ["EVAL", COMMIT, "6"].map(|word| word.as_bytes().to_vec()).into();
    let names = [
        "store-state",
        "commit-records",
        "write-lock",
        "write-lock:waiting",
        "invalidation-records",
        "write-lock:wake:",
    ];
    words.extend(names.iter().map(|name| format!(":pointsman:{name}").into_bytes()));
    words.extend(["me", "3000"].map(|word| word.as_bytes().to_vec()));
    words.extend([VERSION_BEFORE.to_vec(), VERSION_AFTER.to_vec(), VERSION_AFTER.to_vec(), touched.into()]);
    words.extend([client.prefix.clone(), String::new(), fences.len().to_string()].map(String::into_bytes));
    words.extend(fences.iter().flatten().map(|word| word.as_bytes().to_vec()));
    for write in writes {
        words.push(write.len().to_string().into_bytes());
        words.extend(write.iter().map(|word| word.as_bytes().to_vec()));
    }
    client.text_reply(&words).unwrap()
}

/// A place where the last commit was `BEFORE`.
fn client_at_version_before() -> RawClient {
    let mut client = RedisLocation::on_shared_server().connect();
    client.command(&[b"SET".as_slice(), b":pointsman:store-state", &VERSION_BEFORE]);
    client.command(&[b"LPUSH".as_slice(), b":pointsman:commit-records", &VERSION_BEFORE]);
    client
}

fn marker_key(client: &mut RawClient) -> String {
    client.key("mark")
}

/// Scripts are not rolled back. So what could fail is looked at before anything is written.
#[test]
fn commit_acknowledging_missing_events_writes_nothing() {
    let mut client = client_at_version_before();
    let mark = marker_key(&mut client);
    client.set_owner("w", "o", Some((&outbox_event("a", 0), "7")));
    let queued = outbox_event("a", 1);
    client.command(&["LPUSH", ":o:events", &queued]);
    let writes: [&[&str]; 2] = [&["SET", &mark, "1"], &["acknowledge", "o", "", "", "set aside\n"]];
    assert_eq!(run_commit(&mut client, &[["o", "w", "7", "3"]], &writes), "fenced");
    let left = (
        client.integer_reply(&["LLEN", ":o:events"]),
        client.integer_reply(&["LLEN", ":event.worker:w:event"]),
    );
    assert_eq!((left, client.integer_reply(&["EXISTS", ":mark"])), ((1, 1), 0));
    let writes: [&[&str]; 2] = [&["SET", &mark, "1"], &["acknowledge", "o", "", "aside "]];
    assert_eq!(run_commit(&mut client, &[["o", "w", "7", "2"]], &writes), "committed");
    assert_eq!(client.text_replies(&["LRANGE", ":events.set.aside", "0", "-1"]), [format!("aside {queued}")]);
    assert_eq!(
        (client.integer_reply(&["EXISTS", ":mark"]), client.integer_reply(&["LLEN", ":o:events"])),
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
        let mark = marker_key(&mut client);
        client.set_owner("w", "o", Some((&outbox_event("a", 0), "7")));
        assert_eq!(run_commit(&mut client, &[fence], &[&["SET", &mark, "1"]]), "fenced", "{fence:?}");
        assert_eq!(client.integer_reply(&["EXISTS", ":mark"]), 0);
    }
}

/// Its answer was lost, and others have committed since.
#[test]
fn resent_commit_is_recognised_by_its_nonce() {
    let mut client = client_at_version_before();
    let key = client.key("list");
    let write: [&[&str]; 1] = [&["RPUSH", &key, "1"]];
    assert_eq!(run_commit(&mut client, &[], &write), "committed");
    assert_eq!(run_commit(&mut client, &[], &write), "committed");
    for n in 6..16 {
        let later = [[0, 0, 0, 0, 0, 0, 0, n], [n; 8]].concat();
        client.command(&[b"SET".as_slice(), b":pointsman:store-state", &later]);
        client.command(&[b"LPUSH".as_slice(), b":pointsman:commit-records", &later]);
        assert_eq!(run_commit(&mut client, &[], &write), "committed", "it is known among what was told");
    }
    assert_eq!(client.integer_reply(&["LLEN", ":list"]), 1);
    let other = [[0, 0, 0, 0, 0, 0, 0, 5], [9; 8]].concat();
    client.command(&[b"DEL".as_slice(), b":pointsman:commit-records"]);
    client.command(&[b"LPUSH".as_slice(), b":pointsman:commit-records", &other]);
    client.command(&[b"SET".as_slice(), b":pointsman:store-state", &other]);
    assert_eq!(run_commit(&mut client, &[], &write), "conflict", "that was another of the same number");
}

#[test]
fn invalidation_records_of_recent_commits_are_kept() {
    let touched = |client: &mut RawClient| {
        client.text_replies(&["LRANGE", ":pointsman:invalidation-records", "0", "-1"])
    };
    let mut client = client_at_version_before();
    (0..20).for_each(|n| {
        drop(client.command(&["LPUSH", ":pointsman:invalidation-records", &format!("before {n}")]))
    });
    assert_eq!(run_commit_with_invalidation(&mut client, "mine", &[], &[]), "committed");
    let kept = touched(&mut client);
    assert_eq!((kept.len(), kept[0].as_str(), kept[1].as_str()), (16, "mine", "before 19"));
    let mut client = client_at_version_before();
    client.command(&["LPUSH", ":pointsman:invalidation-records", "before"]);
    assert_eq!(run_commit(&mut client, &[], &[]), "committed");
    assert_eq!(touched(&mut client), [""; 0], "one that does not tell makes the others worthless");
    let mut client = client_at_version_before();
    client.command(&["SET", ":pointsman:invalidation-records", "somebody else's"]);
    assert_eq!(
        run_commit_with_invalidation(&mut client, "mine", &[], &[]),
        "committed",
        "nothing depends on it"
    );
    assert_eq!(touched(&mut client), ["mine"]);
}

#[test]
fn nodes_slightly_behind_receive_invalidation_records() {
    let mut client = RedisLocation::on_shared_server().connect();
    let point = [[0, 0, 0, 0, 0, 0, 0, 20], [7; 8]].concat();
    client.command(&[b"SET".as_slice(), b":pointsman:store-state", &point]);
    (0..16).for_each(|n| drop(client.command(&["LPUSH", ":pointsman:invalidation-records", &n.to_string()])));
    let names = [
        "store-state",
        "commit-records",
        "write-lock",
        "write-lock:waiting",
        "invalidation-records",
        "write-lock:requested",
    ];
    let keys = names.map(|name| format!(":pointsman:{name}"));
    let told = |client: &mut RawClient, known: &str| {
        let words = ["EVAL", BEGIN, "6"].into_iter().chain(keys.iter().map(String::as_str));
        let answer = client.command(&words.chain(["me", "3000", known]).collect::<Vec<_>>());
        answer.list()[2].clone().list().len()
    };
    assert_eq!(["20", "19", "4", "3", ""].map(|known| told(&mut client, known)), [0, 1, 16, 0, 0]);
    client.command(&["SET", ":pointsman:invalidation-records", "somebody else's"]);
    assert_eq!(told(&mut client, "19"), 0);
}

fn claim_objects(client: &mut RawClient, workers: &[&str]) -> Vec<String> {
    claim_objects_with_limit(client, "1000", workers)
}

/// The same, with so many names looked at.
fn claim_objects_with_limit(client: &mut RawClient, names: &str, workers: &[&str]) -> Vec<String> {
    let prefix = client.prefix.clone();
    let words = ["EVAL", CLAIM_OBJECTS, "1", ":objects.with.events", &prefix, "15000", names];
    client.text_replies(&words.iter().chain(workers).collect::<Vec<_>>())
}

#[test]
fn claim_returns_objects_already_owned() {
    let mut client = RedisLocation::on_shared_server().connect();
    client.set_owner("b", "o", Some((&outbox_event("a", 0), "7")));
    client.set_heartbeat("b");
    assert_eq!(claim_objects(&mut client, &["a", "b", "c"]), ["b", "o"]);
    assert_eq!(claim_objects(&mut client, &["a", "b", "c"]), ["b", "o"], "asked again, it is told the same");
}

#[test]
fn object_is_owned_by_one_worker() {
    let mut client = RedisLocation::on_shared_server().connect();
    client.push_events("o", &[outbox_event("a", 0)]);
    client.push_events("o", &[outbox_event("a", 1)]);
    client.push_events("p", &[outbox_event("a", 2)]);
    client.push_events("o", &[outbox_event("a", 3)]);
    assert_eq!(claim_objects(&mut client, &["a", "b", "c"]), ["a", "o", "b", "p"]);
    assert_eq!(client.integer_reply(&["EXISTS", ":objects.with.events", ":event.worker:c:object"]), 0);
}

#[test]
fn claim_limit_does_not_hide_owned_objects() {
    let mut client = RedisLocation::on_shared_server().connect();
    client.set_heartbeat("other");
    client.set_owner("other", "busy", None);
    client.set_owner("b", "o", None);
    client.command(&["LPUSH", ":objects.with.events", "busy", "busy", "busy", "busy", "busy", "free"]);
    assert_eq!(claim_objects_with_limit(&mut client, "3", &["a", "b", "c"]), ["b", "o"]);
    assert_eq!(claim_objects_with_limit(&mut client, "3", &["a", "b", "c"]), ["a", "free", "b", "o"]);
    assert_eq!(client.list_keys("event.worker:*:object").len(), 3);
}
