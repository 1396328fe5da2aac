//! A network connection that is cut, frozen, or loses replies.

use std::collections::BTreeSet;

use futures::future::join_all;
use pointsman_core::store::{Journal, Registry, Store, StoreError};
use pointsman_store_conformance::fixture::{NewEventExt, RegistrationBuilder, new_emit_batch, new_event};
use pointsman_store_postgres::Postgres as Opened;
use pointsman_testing::{FaultProxy, PostgresServer, Rng};
use tokio::time::timeout;

use crate::common::invariants::assert_invariants;
use crate::common::test_load::{TEST_TIMEOUT, TestLoad, now};
use crate::{connect, start_durable_server, wait_until_query_returns};

const EMITTER_COUNT: u64 = 8;

/// Starts a durable server behind a proxy; returns the URL of a database, direct and through the proxy.
fn start_server_with_proxy() -> (PostgresServer, FaultProxy, String, String) {
    let (server, url) = start_durable_server();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let proxied_url = server.url_through_proxy(&proxy, url.rsplit('/').next().unwrap()).unwrap();
    (server, proxy, url, proxied_url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_connections_are_cut_at_any_moment() {
    let (_server, proxy, url, proxied_url) = start_server_with_proxy();
    let (load, peer) = (TestLoad::start(&proxied_url, EMITTER_COUNT).await, TestLoad::start(&url, 2).await);
    let mut rng = Rng::new(1);
    for _ in 0..25 {
        load.wait_for_acknowledged_emits(1 + rng.next_below(60)).await;
        proxy.close_connections();
    }
    load.wait_for_acknowledged_emits(100).await;
    assert_eq!(peer.failed_emit_count(), 0, "the node with a direct connection is not affected");
    TestLoad::stop_and_check_all([load, peer], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_without_a_reply_exist_at_most_once() {
    let (_server, proxy, url, proxied_url) = start_server_with_proxy();
    let (load, peer) = (TestLoad::start(&proxied_url, EMITTER_COUNT).await, TestLoad::start(&url, 2).await);
    let mut rng = Rng::new(2);
    for _ in 0..15 {
        load.wait_for_acknowledged_emits(1 + rng.next_below(60)).await;
        proxy.set_drop_replies(true);
        load.wait_for_failed_emits(1).await;
        proxy.set_drop_replies(false);
    }
    load.wait_for_acknowledged_emits(100).await;
    assert_eq!(peer.failed_emit_count(), 0, "the node with a direct connection is not affected");
    TestLoad::stop_and_check_all([load, peer], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_event_is_journaled_although_the_reply_to_its_commit_is_lost() {
    let (_server, proxy, url, proxied_url) = start_server_with_proxy();
    let store = Opened::open(&proxied_url, now()).await.unwrap();
    store.register_definitions(RegistrationBuilder::single_handler().build(), now()).await.unwrap();
    let (lock_holder, observer) = (connect(&url).await, connect(&url).await);
    let mut ids = BTreeSet::new();
    for round in 1..=5 {
        let emit = |n: i64| {
            let event = new_event("record").with_key("a").with_value(&n.to_string());
            store.append(vec![new_emit_batch([event])], None, now())
        };
        let (receipts, _) = emit(2 * round).await.unwrap();
        let before = receipts[0].as_ref().unwrap().events[0].id;
        assert!(ids.insert(before.as_i64()));
        // The transaction has begun and waits for a lock; all following statements are sent, including the commit.
        lock_holder.batch_execute("BEGIN; LOCK TABLE pointsman.journal IN SHARE MODE").await.unwrap();
        let unlock = async {
            let count_waiting_sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            wait_until_query_returns(&observer, count_waiting_sql, 1).await;
            proxy.set_drop_replies(true);
            lock_holder.batch_execute("COMMIT").await.unwrap();
        };
        let (lost, ()) = tokio::join!(emit(2 * round + 1), unlock);
        assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
        proxy.set_drop_replies(false);
        let count_events_sql =
            format!("SELECT count(*) FROM pointsman.journal WHERE value = '{}'", 2 * round + 1);
        wait_until_query_returns(&observer, &count_events_sql, 1).await;
        let (receipts, _) = emit(0).await.unwrap();
        let next = &receipts[0].as_ref().unwrap().events[0];
        let between = next.prev.unwrap();
        assert!(before < between && between < next.id, "the event whose reply was lost is between them");
        assert!(ids.insert(between.as_i64()) && ids.insert(next.id.as_i64()));
        assert_invariants(&url).await;
    }
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_frozen_connection_fails_within_the_timeout() {
    let (_server, proxy, url, proxied_url) = start_server_with_proxy();
    let load = TestLoad::start(&proxied_url, EMITTER_COUNT).await;
    let peer = Opened::open(&url, now()).await.unwrap();
    load.wait_for_acknowledged_emits(50).await;
    proxy.set_frozen(true);
    // Emits, and reads on existing and on new connections.
    let reads = join_all((0..20).map(|_| load.store().read_journal_range()));
    let emits = async {
        for _ in 0..20 {
            // The peer may have to wait until the server ends the transaction of the frozen connection.
            peer.append(vec![new_emit_batch([new_event("other")])], None, now()).await.unwrap();
        }
    };
    let (reads, (), ()) =
        tokio::join!(timeout(TEST_TIMEOUT, reads), emits, load.wait_for_failed_emits(EMITTER_COUNT as usize));
    for read in reads.unwrap() {
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    }
    proxy.set_frozen(false);
    load.wait_for_acknowledged_emits(100).await;
    timeout(TEST_TIMEOUT, load.store().read_journal_range()).await.unwrap().unwrap();
    TestLoad::stop_and_check_all([load], &url).await;
    peer.close();
}
