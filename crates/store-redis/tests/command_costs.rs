//! Number of commands per operation: many items per command, and none for unchanged rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use futures::future::join_all;
use pointsman_core::Timestamp;
use pointsman_core::journal::Retention;
use pointsman_core::store::{Claim, Claimant, Deed, Store};
use pointsman_store_conformance::world::{
    BEGINNING, Draft, EVERYTHING, Plan, emission, ending, event, must, secs, succeeded,
};
use pointsman_testing::{Redis, RedisSettings};

async fn open(server: &Redis) -> Arc<dyn Store> {
    Arc::new(pointsman_store_redis::Redis::open(&server.url(), BEGINNING).await.unwrap())
}

/// Returns how often commands were called, also by scripts.
fn count_calls(server: &Redis, names: &[&str]) -> u64 {
    let told = server.command(&["INFO", "commandstats"]).unwrap().text().unwrap();
    let calls_of = |name: &&str| -> u64 {
        let line = told.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    };
    names.iter().map(calls_of).sum()
}

/// Returns the number of bytes that the server has sent.
fn count_sent_bytes(server: &Redis) -> u64 {
    let told = server.command(&["INFO", "stats"]).unwrap().text().unwrap();
    told.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap().parse().unwrap()
}

fn audit_entry(n: usize) -> Deed {
    let at = BEGINNING.plus(secs(n as u64));
    Deed { at, by: "ann".into(), action: "pause".into(), what: "index".into(), detail: "x".repeat(100) }
}

async fn prune_all(store: &dyn Store, now: Timestamp) {
    let history = Retention { age: secs(10), ..EVERYTHING };
    while must(store.prune(EVERYTHING, history, std::time::Duration::MAX, now).await).more {}
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_tasks_are_deleted_with_few_commands() {
    const TASKS: usize = 400;
    let server = Redis::start(RedisSettings::default()).unwrap();
    let (store, plan) = (open(&server).await, Plan::simple().free("index"));
    must(store.register(plan.registration(), BEGINNING).await);
    let node = must(store.join("first", BEGINNING).await);
    must(store.append(vec![emission(vec![event("record"); TASKS])], None, BEGINNING).await);
    let claim = Claim { by: Claimant::Node(node), handlers: Arc::new(plan.names()), max: TASKS };
    let claimed = must(store.claim(claim, BEGINNING).await).tasks;
    assert_eq!(claimed.len(), TASKS);
    let ends = claimed.iter().map(|task| ending(task, succeeded())).collect();
    must(store.finish(ends, None, BEGINNING).await);
    let before = count_calls(&server, &["del", "unlink", "zrem"]);
    prune_all(&*store, BEGINNING.plus(secs(60))).await;
    let calls = count_calls(&server, &["del", "unlink", "zrem"]) - before;
    assert!(calls < TASKS as u64 / 4, "{calls} commands for {TASKS} tasks");
    assert!(server.command(&["KEYS", "pointsman:ended*"]).unwrap().texts().is_empty());
    store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_audit_entries_are_not_read_by_pruning() {
    const DEEDS: usize = 2_000;
    let server = Redis::start(RedisSettings::default()).unwrap();
    let store = open(&server).await;
    for some in (0..DEEDS).collect::<Vec<_>>().chunks(100) {
        join_all(some.iter().map(|n| store.note(audit_entry(*n)))).await.into_iter().for_each(must);
    }
    // Where they begin is looked up once.
    prune_all(&*store, BEGINNING.plus(secs(12))).await;
    let before = count_sent_bytes(&server);
    prune_all(&*store, BEGINNING.plus(secs(13))).await;
    let for_one = count_sent_bytes(&server) - before;
    let left =
        async || -> Vec<i64> { must(store.deeds(None, DEEDS).await).iter().map(|(n, _)| *n).collect() };
    assert!(left().await.into_iter().eq((4..=DEEDS as i64).rev()));
    assert!(for_one < 25 * DEEDS as u64, "{for_one} bytes, where all deeds have more than {}", 100 * DEEDS);
    prune_all(&*store, BEGINNING.plus(secs(1_310))).await;
    assert!(left().await.into_iter().eq((1_301..=DEEDS as i64).rev()));
    must(store.note(audit_entry(DEEDS)).await);
    prune_all(&*store, BEGINNING.plus(secs(10 + DEEDS as u64))).await;
    assert_eq!(left().await, [DEEDS as i64 + 1]);
    prune_all(&*store, BEGINNING.plus(secs(100 + DEEDS as u64))).await;
    assert_eq!(left().await, [0; 0]);
    store.close();
}

/// Those who come first in the lanes of many objects are fetched at once, by a node that knows none of them.
#[tokio::test(flavor = "multi_thread")]
async fn emits_fetch_lane_heads_of_many_objects_together() {
    const OBJECTS: usize = 200;
    let server = Redis::start(RedisSettings::default()).unwrap();
    let (store, plan) = (open(&server).await, Plan::simple());
    must(store.register(plan.registration(), BEGINNING).await);
    let events = || (0..OBJECTS).map(|n| event("record").key(&format!("object:{n}"))).collect::<Vec<_>>();
    must(store.append(vec![emission(events())], None, BEGINNING).await);
    let other = open(&server).await;
    let before = count_calls(&server, &["hget", "hmget"]);
    must(other.append(vec![emission(events())], None, BEGINNING).await);
    let calls = count_calls(&server, &["hget", "hmget"]) - before;
    assert!(calls < OBJECTS as u64 / 4, "{calls} commands for {OBJECTS} lanes");
    other.close();
    store.close();
}

/// Nodes that write in turns tell each other what they wrote, and know the rest still.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_not_written_by_peers_stay_cached() {
    const OBJECTS: usize = 50;
    const ROUNDS: usize = 20;
    let server = Redis::start(RedisSettings::default()).unwrap();
    let nodes = [open(&server).await, open(&server).await];
    must(nodes[0].register(Plan::simple().registration(), BEGINNING).await);
    let round = async || {
        for (node, name) in nodes.iter().zip(["one", "other"]) {
            let events = (0..OBJECTS).map(|n| event("record").key(&format!("{name}:{n}")));
            must(node.append(vec![emission(events.collect::<Vec<_>>())], None, BEGINNING).await);
        }
    };
    round().await;
    round().await;
    let before = count_calls(&server, &["zrange"]);
    for _ in 0..ROUNDS {
        round().await;
    }
    let lookups = count_calls(&server, &["zrange"]) - before;
    assert!(
        lookups < OBJECTS as u64,
        "{lookups} lanes were looked up in {ROUNDS} rounds of {OBJECTS} objects"
    );
    nodes.iter().for_each(|node| node.close());
}
