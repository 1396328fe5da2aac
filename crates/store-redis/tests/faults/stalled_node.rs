//! A node that stalls during a transaction for longer than its write lock lasts.

use std::sync::Arc;

use pointsman_core::store::{ClaimRequest, Claimant, Registry, StoreError, TaskQueue};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_event, success,
};
use pointsman_testing::{RedisServer, RedisSettings};
use tokio::task::block_in_place;

use crate::common::command_proxy::{CommandFault, CommandProxy};
use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::now;
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};

const COMMIT_LUA: &str = include_str!("../../src/lua/commit.lua");

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn late_commit_of_a_stalled_node_is_refused() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let proxy = CommandProxy::start(server.address());
    let stalled = Arc::new(TestNode::open_url(&format!("redis://{}", proxy.address())).await);
    let other = TestNode::open(&location).await;
    let monitor = InvariantMonitor::start(&location);
    let mut client = location.connect();
    let commit = client.query_text(&["SCRIPT", "LOAD", COMMIT_LUA]).unwrap();
    stalled.emit(new_event("a").with_key("o").with_value("0")).await;
    let fault = proxy.arm(&commit, CommandFault::DelayCommand);
    let node = stalled.clone();
    let stalled_emit =
        tokio::spawn(async move { node.try_emit(new_event("a").with_key("o").with_value("9")).await });
    block_in_place(|| fault.wait_until_triggered());
    // The stalled node owns the write lock, and the other node waits until it expires.
    other.emit(new_event("a").with_key("o").with_value("1")).await;
    client.push_events("o", &[outbox_event_json("a", 2)]);
    other.wait_for_events(3).await;
    fault.release();
    let result = stalled_emit.await.unwrap();
    assert!(matches!(result, Err(StoreError::Unavailable(_))), "{result:?}");
    stalled.emit(new_event("a").with_key("o").with_value("3")).await;
    let events = other.read_journal().await;
    assert_eq!(event_values(&events), ["0", "1", "2", "3"]);
    assert_ids_and_prev_links(&events);
    wait_until_outbox_is_drained(&location).await;
    monitor.stop_and_assert_no_violations();
}

/// Another node has claimed the task meanwhile. A claim journals nothing, so only the commit version reveals the conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn late_claim_of_a_stalled_node_is_refused() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let proxy = CommandProxy::start(server.address());
    let stalled = Arc::new(TestNode::open_url(&format!("redis://{}", proxy.address())).await);
    let other = TestNode::open(&location).await;
    let commit = location.connect().query_text(&["SCRIPT", "LOAD", COMMIT_LUA]).unwrap();
    let mut claims = vec![];
    for node in [&*stalled, &other] {
        node.store.register_definitions(RegistrationBuilder::single_handler().build(), now()).await.unwrap();
        let claimant = Claimant::Node(node.store.join_node("one", now()).await.unwrap());
        claims.push(ClaimRequest {
            claimant,
            handlers: Arc::new([handler_name("index")].into()),
            max_tasks: 1,
        });
    }
    stalled.emit(new_event("record")).await;
    let fault = proxy.arm(&commit, CommandFault::DelayCommand);
    let (node, claim) = (stalled.clone(), claims.remove(0));
    let second_claim = claim.clone();
    let stalled_claim = tokio::spawn(async move { node.store.claim_tasks(claim, now()).await });
    block_in_place(|| fault.wait_until_triggered());
    let task = other.store.claim_tasks(claims.remove(0), now()).await.unwrap().tasks.remove(0);
    fault.release();
    let result = stalled_claim.await.unwrap();
    assert!(matches!(result, Err(StoreError::Unavailable(_))), "{result:?}");
    assert_eq!(stalled.store.claim_tasks(second_claim, now()).await.unwrap().tasks.len(), 0);
    other
        .store
        .finish_attempts(vec![finished_attempt(&task, success())], None, now())
        .await
        .unwrap()
        .0
        .remove(0)
        .unwrap();
}
