//! Number of commands per operation: many items per command, and none for unchanged rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use futures::future::join_all;
use pointsman_core::Timestamp;
use pointsman_core::journal::Retention;
use pointsman_core::store::{AuditEntry, ClaimRequest, Claimant, Store};
use pointsman_store_conformance::fixture::{
    KEEP_EVERYTHING, NewEventExt, RegistrationBuilder, START_TIME, emit_batch, expect_ok, finished_attempt,
    new_event, secs, success,
};
use pointsman_testing::{RedisServer, RedisSettings};

async fn open(server: &RedisServer) -> Arc<dyn Store> {
    Arc::new(pointsman_store_redis::Redis::open(&server.url(), START_TIME).await.unwrap())
}

/// Returns how often commands were called, also by scripts.
fn count_calls(server: &RedisServer, names: &[&str]) -> u64 {
    let info = server.run_command(&["INFO", "commandstats"]).unwrap().text().unwrap();
    let count_calls_of = |name: &&str| -> u64 {
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    };
    names.iter().map(count_calls_of).sum()
}

/// Returns the number of bytes that the server has sent.
fn count_sent_bytes(server: &RedisServer) -> u64 {
    let info = server.run_command(&["INFO", "stats"]).unwrap().text().unwrap();
    info.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap().parse().unwrap()
}

fn audit_entry(n: usize) -> AuditEntry {
    let at = START_TIME.plus(secs(n as u64));
    AuditEntry {
        at,
        actor: "ann".into(),
        action: "pause".into(),
        target: "index".into(),
        detail: "x".repeat(100),
    }
}

async fn prune_until_done(store: &dyn Store, now: Timestamp) {
    let history = Retention { max_age: secs(10), ..KEEP_EVERYTHING };
    while expect_ok(store.prune(KEEP_EVERYTHING, history, std::time::Duration::MAX, now).await).has_more {}
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_tasks_are_deleted_with_few_commands() {
    const TASKS: usize = 400;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let (store, registration) =
        (open(&server).await, RegistrationBuilder::single_handler().unordered("index"));
    expect_ok(store.register(registration.build(), START_TIME).await);
    let node = expect_ok(store.join_node("first", START_TIME).await);
    expect_ok(store.append(vec![emit_batch(vec![new_event("record"); TASKS])], None, START_TIME).await);
    let claim = ClaimRequest {
        claimant: Claimant::Node(node),
        handlers: Arc::new(registration.handler_names()),
        max_tasks: TASKS,
    };
    let claimed = expect_ok(store.claim_tasks(claim, START_TIME).await).tasks;
    assert_eq!(claimed.len(), TASKS);
    let ends = claimed.iter().map(|task| finished_attempt(task, success())).collect();
    expect_ok(store.finish_attempts(ends, None, START_TIME).await);
    let before = count_calls(&server, &["del", "unlink", "zrem"]);
    prune_until_done(&*store, START_TIME.plus(secs(60))).await;
    let calls = count_calls(&server, &["del", "unlink", "zrem"]) - before;
    assert!(calls < TASKS as u64 / 4, "{calls} commands for {TASKS} tasks");
    assert!(server.run_command(&["KEYS", "pointsman:archived-task*"]).unwrap().texts().is_empty());
    store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_audit_entries_are_not_read_by_pruning() {
    const ENTRIES: usize = 2_000;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let store = open(&server).await;
    for batch in (0..ENTRIES).collect::<Vec<_>>().chunks(100) {
        join_all(batch.iter().map(|n| store.append_audit_entry(audit_entry(*n))))
            .await
            .into_iter()
            .for_each(expect_ok);
    }
    // The first prune reads which entry is the first; later ones remember it.
    prune_until_done(&*store, START_TIME.plus(secs(12))).await;
    let before = count_sent_bytes(&server);
    prune_until_done(&*store, START_TIME.plus(secs(13))).await;
    let bytes_sent = count_sent_bytes(&server) - before;
    let remaining = async || -> Vec<i64> {
        expect_ok(store.list_audit_entries(None, ENTRIES).await).iter().map(|(n, _)| *n).collect()
    };
    assert!(remaining().await.into_iter().eq((4..=ENTRIES as i64).rev()));
    assert!(
        bytes_sent < 25 * ENTRIES as u64,
        "{bytes_sent} bytes, where all entries have more than {}",
        100 * ENTRIES
    );
    prune_until_done(&*store, START_TIME.plus(secs(1_310))).await;
    assert!(remaining().await.into_iter().eq((1_301..=ENTRIES as i64).rev()));
    expect_ok(store.append_audit_entry(audit_entry(ENTRIES)).await);
    prune_until_done(&*store, START_TIME.plus(secs(10 + ENTRIES as u64))).await;
    assert_eq!(remaining().await, [ENTRIES as i64 + 1]);
    prune_until_done(&*store, START_TIME.plus(secs(100 + ENTRIES as u64))).await;
    assert_eq!(remaining().await, [0; 0]);
    store.close();
}

/// A node that has no lanes cached fetches the heads of many lanes with few commands.
#[tokio::test(flavor = "multi_thread")]
async fn emits_fetch_lane_heads_of_many_objects_together() {
    const OBJECTS: usize = 200;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let (store, registration) = (open(&server).await, RegistrationBuilder::single_handler());
    expect_ok(store.register(registration.build(), START_TIME).await);
    let events =
        || (0..OBJECTS).map(|n| new_event("record").with_key(&format!("object:{n}"))).collect::<Vec<_>>();
    expect_ok(store.append(vec![emit_batch(events())], None, START_TIME).await);
    let other = open(&server).await;
    let before = count_calls(&server, &["hget", "hmget"]);
    expect_ok(other.append(vec![emit_batch(events())], None, START_TIME).await);
    let calls = count_calls(&server, &["hget", "hmget"]) - before;
    assert!(calls < OBJECTS as u64 / 4, "{calls} commands for {OBJECTS} lanes");
    other.close();
    store.close();
}

/// Nodes that write alternately publish invalidations, and keep all other cache entries.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_not_written_by_peers_stay_cached() {
    const OBJECTS: usize = 50;
    const ROUNDS: usize = 20;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let nodes = [open(&server).await, open(&server).await];
    expect_ok(nodes[0].register(RegistrationBuilder::single_handler().build(), START_TIME).await);
    let round = async || {
        for (node, name) in nodes.iter().zip(["one", "other"]) {
            let events = (0..OBJECTS).map(|n| new_event("record").with_key(&format!("{name}:{n}")));
            expect_ok(node.append(vec![emit_batch(events.collect::<Vec<_>>())], None, START_TIME).await);
        }
    };
    round().await;
    round().await;
    let before = count_calls(&server, &["zrange"]);
    for _ in 0..ROUNDS {
        round().await;
    }
    let fetches = count_calls(&server, &["zrange"]) - before;
    assert!(fetches < OBJECTS as u64, "{fetches} lanes were fetched in {ROUNDS} rounds of {OBJECTS} objects");
    nodes.iter().for_each(|node| node.close());
}
