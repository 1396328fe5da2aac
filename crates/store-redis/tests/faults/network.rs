//! Connections that are cut, frozen, or lose replies.

use std::time::Instant;

use futures::future::join_all;
use pointsman_core::store::{Journal, StoreError};
use pointsman_store_conformance::fixture::{NewEventExt, new_event};
use pointsman_testing::{FaultProxy, RedisServer, RedisSettings, Rng};
use tokio::time::timeout;

use crate::common::invariants::InvariantMonitor;
use crate::common::load::Load;
use crate::common::redis_location::RedisLocation;
use crate::common::test_node::TestNode;
use crate::common::{TEST_TIMEOUT, wait_until};

const PRODUCER_COUNT: u64 = 6;

/// Starts a server and a proxy in front of it; also returns the URL through the proxy.
fn start_proxied_server() -> (RedisServer, FaultProxy, RedisLocation, String) {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let (location, proxied_url) =
        (RedisLocation::on_server_without_prefix(&server), server.url_through_proxy(&proxy).unwrap());
    (server, proxy, location, proxied_url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_are_replaced_without_errors() {
    let (_server, proxy, location, proxied_url) = start_proxied_server();
    let load = Load::start(&location, &proxied_url, PRODUCER_COUNT).await;
    let other_load = Load::start(&location, &location.url, 2).await;
    let monitor = InvariantMonitor::start(&location);
    let mut rng = Rng::new(1);
    for _ in 0..25 {
        load.wait_for_acknowledged(1 + rng.next_below(60)).await;
        proxy.close_connections();
    }
    load.wait_for_acknowledged(100).await;
    assert_eq!((load.refused_count(), other_load.refused_count()), (0, 0));
    Load::stop_and_verify([load, other_load], &location).await;
    monitor.stop_and_assert_no_violations();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_without_reply_are_applied_at_most_once() {
    let (_server, proxy, location, proxied_url) = start_proxied_server();
    let load = Load::start(&location, &proxied_url, PRODUCER_COUNT).await;
    let other_load = Load::start(&location, &location.url, 2).await;
    let monitor = InvariantMonitor::start(&location);
    let mut rng = Rng::new(2);
    for _ in 0..10 {
        load.wait_for_acknowledged(1 + rng.next_below(60)).await;
        proxy.set_drop_replies(true);
        load.wait_for_refused(1).await;
        proxy.set_drop_replies(false);
    }
    load.wait_for_acknowledged(100).await;
    assert_eq!(other_load.refused_count(), 0, "a node with a working connection is not affected");
    Load::stop_and_verify([load, other_load], &location).await;
    monitor.stop_and_assert_no_violations();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_over_a_frozen_connection_time_out() {
    let (_server, proxy, location, proxied_url) = start_proxied_server();
    let load = Load::start(&location, &format!("{proxied_url}?connect_timeout=2"), PRODUCER_COUNT).await;
    let other_node = TestNode::open(&location).await;
    load.wait_for_acknowledged(50).await;
    proxy.set_frozen(true);
    let reads = join_all((0..4).map(|_| load.node().store.read_journal_range()));
    let emits = async {
        for _ in 0..20 {
            // An emit may have to wait until the write lock of the frozen node expires.
            other_node.emit(new_event("other")).await;
        }
    };
    // Pushes succeed; direct emits are refused.
    let (reads, (), ()) =
        tokio::join!(timeout(TEST_TIMEOUT, reads), emits, load.wait_for_refused(PRODUCER_COUNT as usize));
    for read in reads.unwrap() {
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    }
    proxy.set_frozen(false);
    load.wait_for_acknowledged(100).await;
    wait_until("the node can read again", async || load.node().store.read_journal_range().await.is_ok())
        .await;
    Load::stop_and_verify([load], &location).await;
    other_node.close().await;
}

/// Commands that are sent together wait for one timeout, not for one each.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pipelined_commands_time_out_once() {
    let (_server, proxy, _, proxied_url) = start_proxied_server();
    let node = TestNode::open_url(&format!("{proxied_url}?connect_timeout=2")).await;
    node.emit(new_event("a").with_key("o")).await;
    // Concurrent reads open more connections, which are frozen, too.
    join_all((0..4).map(|_| node.store.read_journal_range())).await;
    proxy.set_frozen(true);
    let frozen = Instant::now();
    let one = async { (node.store.read_journal_range().await.is_err(), frozen.elapsed()) };
    let many = async { (node.try_emit(new_event("a").with_key("p")).await.is_err(), frozen.elapsed()) };
    let ((read, one), (emit, many)) = tokio::join!(one, many);
    assert!(read && emit && many < 2 * one, "one command: {one:?}, many: {many:?}");
    proxy.set_frozen(false);
    wait_until("the node can write again", async || {
        node.try_emit(new_event("a").with_key("p")).await.is_ok()
    })
    .await;
    node.close().await;
}
