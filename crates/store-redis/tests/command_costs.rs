//! Number of commands per operation: many items per command, and none for unchanged rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use futures::future::join_all;
use pointsman_core::Timestamp;
use pointsman_core::journal::Retention;
use pointsman_core::store::{AuditEntry, ClaimRequest, Claimant, Store};
use pointsman_store_conformance::fixture::{
    KEEP_EVERYTHING, NewEventExt, RegistrationBuilder, START_TIME, expect_ok, finished_attempt,
    new_emit_batch, new_event, secs, success,
};
use pointsman_testing::{RedisServer, RedisSettings};

async fn open_store(server: &RedisServer) -> Arc<dyn Store> {
    Arc::new(pointsman_store_redis::Redis::open(&server.url(), START_TIME).await.unwrap())
}

/// Returns how often commands were called, also by scripts.
fn count_command_calls(server: &RedisServer, names: &[&str]) -> u64 {
    let info = server.run_command(&["INFO", "commandstats"]).unwrap().text().unwrap();
    let count_calls_of = |name: &&str| -> u64 {
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    };
    names.iter().map(count_calls_of).sum()
}

/// Returns the number of bytes that the server has sent.
fn count_bytes_sent_by_server(server: &RedisServer) -> u64 {
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
    while expect_ok(
        store.prune_events_tasks_and_objects(KEEP_EVERYTHING, history, std::time::Duration::MAX, now).await,
    )
    .has_more
    {}
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_tasks_are_deleted_with_few_commands() {
    const TASK_COUNT: usize = 400;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let (store, registration) =
        (open_store(&server).await, RegistrationBuilder::single_handler().unordered("index"));
    expect_ok(store.register_definitions(registration.build(), START_TIME).await);
    let node = expect_ok(store.join_node("first", START_TIME).await);
    expect_ok(
        store.append(vec![new_emit_batch(vec![new_event("record"); TASK_COUNT])], None, START_TIME).await,
    );
    let claim = ClaimRequest {
        claimant: Claimant::Node(node),
        handlers: Arc::new(registration.handler_names()),
        max_tasks: TASK_COUNT,
    };
    let claimed = expect_ok(store.claim_tasks(claim, START_TIME).await).tasks;
    assert_eq!(claimed.len(), TASK_COUNT);
    let ends = claimed.iter().map(|task| finished_attempt(task, success())).collect();
    expect_ok(store.finish_attempts(ends, None, START_TIME).await);
    let before = count_command_calls(&server, &["del", "unlink", "zrem"]);
    prune_until_done(&*store, START_TIME.plus(secs(60))).await;
    let calls = count_command_calls(&server, &["del", "unlink", "zrem"]) - before;
    assert!(calls < TASK_COUNT as u64 / 4, "{calls} commands for {TASK_COUNT} tasks");
    assert!(server.run_command(&["KEYS", "pointsman:archived-task*"]).unwrap().texts().is_empty());
    store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_audit_entries_are_not_read_by_pruning() {
    const ENTRY_COUNT: usize = 2_000;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let store = open_store(&server).await;
    for batch in (0..ENTRY_COUNT).collect::<Vec<_>>().chunks(100) {
        join_all(batch.iter().map(|n| store.append_audit_entry(audit_entry(*n))))
            .await
            .into_iter()
            .for_each(expect_ok);
    }
    // The first prune reads which entry is the first; later ones have it cached.
    prune_until_done(&*store, START_TIME.plus(secs(12))).await;
    let before = count_bytes_sent_by_server(&server);
    prune_until_done(&*store, START_TIME.plus(secs(13))).await;
    let bytes_sent = count_bytes_sent_by_server(&server) - before;
    let remaining = async || -> Vec<i64> {
        expect_ok(store.list_audit_entries(None, ENTRY_COUNT).await).iter().map(|(n, _)| *n).collect()
    };
    assert!(remaining().await.into_iter().eq((4..=ENTRY_COUNT as i64).rev()));
    assert!(
        bytes_sent < 25 * ENTRY_COUNT as u64,
        "{bytes_sent} bytes, where all entries have more than {}",
        100 * ENTRY_COUNT
    );
    prune_until_done(&*store, START_TIME.plus(secs(1_310))).await;
    assert!(remaining().await.into_iter().eq((1_301..=ENTRY_COUNT as i64).rev()));
    expect_ok(store.append_audit_entry(audit_entry(ENTRY_COUNT)).await);
    prune_until_done(&*store, START_TIME.plus(secs(10 + ENTRY_COUNT as u64))).await;
    assert_eq!(remaining().await, [ENTRY_COUNT as i64 + 1]);
    prune_until_done(&*store, START_TIME.plus(secs(100 + ENTRY_COUNT as u64))).await;
    assert_eq!(remaining().await, [0; 0]);
    store.close();
}

/// A node that has no lanes cached fetches the heads of many lanes with few commands.
#[tokio::test(flavor = "multi_thread")]
async fn emits_fetch_lane_heads_of_many_objects_together() {
    const OBJECT_COUNT: usize = 200;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let (store, registration) = (open_store(&server).await, RegistrationBuilder::single_handler());
    expect_ok(store.register_definitions(registration.build(), START_TIME).await);
    let events = || {
        (0..OBJECT_COUNT).map(|n| new_event("record").with_key(&format!("object:{n}"))).collect::<Vec<_>>()
    };
    expect_ok(store.append(vec![new_emit_batch(events())], None, START_TIME).await);
    let other = open_store(&server).await;
    let before = count_command_calls(&server, &["hget", "hmget"]);
    expect_ok(other.append(vec![new_emit_batch(events())], None, START_TIME).await);
    let calls = count_command_calls(&server, &["hget", "hmget"]) - before;
    assert!(calls < OBJECT_COUNT as u64 / 4, "{calls} commands for {OBJECT_COUNT} lanes");
    other.close();
    store.close();
}

/// Nodes that write alternately publish invalidations, and keep all other cache entries.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_not_written_by_peers_stay_cached() {
    const OBJECT_COUNT: usize = 50;
    const ROUND_COUNT: usize = 20;
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let nodes = [open_store(&server).await, open_store(&server).await];
    expect_ok(nodes[0].register_definitions(RegistrationBuilder::single_handler().build(), START_TIME).await);
    let round = async || {
        for (node, name) in nodes.iter().zip(["one", "other"]) {
            let events = (0..OBJECT_COUNT).map(|n| new_event("record").with_key(&format!("{name}:{n}")));
            expect_ok(node.append(vec![new_emit_batch(events.collect::<Vec<_>>())], None, START_TIME).await);
        }
    };
    round().await;
    round().await;
    let before = count_command_calls(&server, &["zrange"]);
    for _ in 0..ROUND_COUNT {
        round().await;
    }
    let fetches = count_command_calls(&server, &["zrange"]) - before;
    assert!(
        fetches < OBJECT_COUNT as u64,
        "{fetches} lanes were fetched in {ROUND_COUNT} rounds of {OBJECT_COUNT} objects"
    );
    nodes.iter().for_each(|node| node.close());
}
