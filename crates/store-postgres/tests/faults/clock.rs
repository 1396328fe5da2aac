//! Nodes with differing clocks: each passes the server's time, and the store reads no other clock.

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{ClaimRequest, Claimant, Journal, Registry, RescueOptions, Store, TaskQueue};
use pointsman_store_conformance::fixture::{RegistrationBuilder, handler_name, new_emit_batch, new_event};
use pointsman_store_postgres::Postgres as Opened;
use pointsman_testing::remove_stale_faketime_files;

use crate::common::invariants::assert_invariants;
use crate::common::test_database::PooledTestDatabase;
use crate::common::test_load::now;

/// Environment variable with the database URL of the node process.
const URL_VARIABLE: &str = "NODE_WITH_ANOTHER_CLOCK";
const LEASE_DURATION: Duration = Duration::from_secs(30);

/// Runs in the node process: joins and rescues by the server's time, and prints its own time and the number of rescued
/// tasks.
async fn run_as_node(url: &str) {
    let server_time = Opened::read_clock(url).await.unwrap();
    let store = Opened::open(url, server_time).await.unwrap();
    let node = store.join_node("elsewhere", server_time).await.unwrap();
    assert!(store.read_store_server_clock().await.unwrap().is_some_and(|later| later >= server_time));
    let rescued = store.rescue_tasks(RescueOptions::full_sweep(LEASE_DURATION), server_time).await.unwrap();
    println!("\nat {} node {node} took {} tasks", now().micros(), rescued.freed_tasks_with_status.len());
    store.close();
}

/// Runs a node whose clock has this offset; returns the time of its clock.
fn run_node_with_clock(url: &str, offset: &str) -> i64 {
    remove_stale_faketime_files();
    let child = Command::new("faketime")
        .args(["-f", offset])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "clock::differing_clocks_do_not_expire_a_node", "--nocapture"])
        .env(URL_VARIABLE, url)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .output();
    let Output { stdout, stderr, .. } = child.expect("faketime is required: `apt-get install faketime`");
    let reply = String::from_utf8_lossy(&stdout);
    let line = reply.lines().find(|line| line.starts_with("at ")).unwrap_or_else(|| {
        panic!("the node did not print its result: {reply}{}", String::from_utf8_lossy(&stderr))
    });
    assert!(line.ends_with(" took 0 tasks"), "{line}");
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn differing_clocks_do_not_expire_a_node() {
    if let Ok(url) = std::env::var(URL_VARIABLE) {
        return run_as_node(&url).await;
    }
    let database = PooledTestDatabase::acquire().await;
    let store = Opened::open(database.url(), now()).await.unwrap();
    store
        .register_definitions(RegistrationBuilder::single_handler().unordered("index").build(), now())
        .await
        .unwrap();
    let node = store.join_node("here", now()).await.unwrap();
    store.append(vec![new_emit_batch([new_event("record")])], None, now()).await.unwrap();
    let handlers = Arc::new([handler_name("index")].into());
    let claim = ClaimRequest { claimant: Claimant::Node(node), handlers, max_tasks: 1 };
    assert_eq!(store.claim_tasks(claim, now()).await.unwrap().tasks.len(), 1);

    let ahead = run_node_with_clock(database.url(), "+45s") - now().micros();
    let behind = run_node_with_clock(database.url(), "-45s") - now().micros();
    assert!(ahead > 40_000_000 && behind < -40_000_000, "their clocks have no offset: {ahead} {behind}");

    let rescued = store.rescue_tasks(RescueOptions::full_sweep(LEASE_DURATION), now()).await.unwrap();
    assert_eq!(rescued.freed_tasks_with_status, []);
    let silent: Vec<_> =
        store.list_nodes().await.unwrap().into_iter().filter(|node| node.has_left_or_died).collect();
    assert!(silent.is_empty(), "{silent:?}");
    assert_invariants(database.url()).await;
    store.close();
}
