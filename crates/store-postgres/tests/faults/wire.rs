//! A wire that is cut, frozen, or loses answers.

use std::collections::BTreeSet;

use futures::future::join_all;
use pointsman_core::store::{Journal, Registry, Store, StoreError};
use pointsman_store_conformance::world::{Draft, Plan, emission, event};
use pointsman_store_postgres::Postgres as Opened;
use pointsman_testing::{Chance, Postgres, Proxy};
use tokio::time::timeout;

use crate::common::audit::audit;
use crate::common::load::{Load, PATIENCE, now};
use crate::{connect, durable, until};

const EMITTERS: u64 = 8;

/// A durable server with a wire before it; the URL of a database on it, directly and over the wire.
fn wired() -> (Postgres, Proxy, String, String) {
    let (server, url) = durable();
    let proxy = Proxy::start(server.address()).unwrap();
    let wired = server.url_through(&proxy, url.rsplit('/').next().unwrap()).unwrap();
    (server, proxy, url, wired)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_connections_are_cut_at_any_moment() {
    let (_server, proxy, url, wired) = wired();
    let (load, neighbour) = (Load::start(&wired, EMITTERS).await, Load::start(&url, 2).await);
    let mut chance = Chance::new(1);
    for _ in 0..25 {
        load.acknowledged(1 + chance.below(60)).await;
        proxy.cut();
    }
    load.acknowledged(100).await;
    assert_eq!(neighbour.refusals(), 0, "another node's trouble is not its own");
    Load::end([load, neighbour], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_done_and_not_answered_is_there_at_most_once() {
    let (_server, proxy, url, wired) = wired();
    let (load, neighbour) = (Load::start(&wired, EMITTERS).await, Load::start(&url, 2).await);
    let mut chance = Chance::new(2);
    for _ in 0..15 {
        load.acknowledged(1 + chance.below(60)).await;
        proxy.drop_replies(true);
        load.refused(1).await;
        proxy.drop_replies(false);
    }
    load.acknowledged(100).await;
    assert_eq!(neighbour.refusals(), 0, "another node's trouble is not its own");
    Load::end([load, neighbour], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_whose_answer_is_lost_is_known_afterwards() {
    let (_server, proxy, url, wired) = wired();
    let store = Opened::open(&wired, now()).await.unwrap();
    store.register(Plan::simple().registration(), now()).await.unwrap();
    let (one, beside) = (connect(&url).await, connect(&url).await);
    let mut ids = BTreeSet::new();
    for round in 1..=5 {
        let emit = |n: i64| {
            let new = event("record").key("a").value(&n.to_string());
            store.append(vec![emission([new])], None, now())
        };
        let (receipts, _) = emit(2 * round).await.unwrap();
        let before = receipts[0].as_ref().unwrap().events[0].id;
        assert!(ids.insert(before.as_i64()));
        // The transaction has begun and waits where it writes; all that follows is with the server, the commit too.
        one.batch_execute("BEGIN; LOCK TABLE pointsman.journal IN SHARE MODE").await.unwrap();
        let unlock = async {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            until(&beside, waiting, 1).await;
            proxy.drop_replies(true);
            one.batch_execute("COMMIT").await.unwrap();
        };
        let (lost, ()) = tokio::join!(emit(2 * round + 1), unlock);
        assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
        proxy.drop_replies(false);
        let made = format!("SELECT count(*) FROM pointsman.journal WHERE value = '{}'", 2 * round + 1);
        until(&beside, &made, 1).await;
        let (receipts, _) = emit(0).await.unwrap();
        let next = &receipts[0].as_ref().unwrap().events[0];
        let between = next.prev.unwrap();
        assert!(before < between && between < next.id, "the one before it is the one that was not answered");
        assert!(ids.insert(between.as_i64()) && ids.insert(next.id.as_i64()));
        audit(&url).await;
    }
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_frozen_wire_is_answered_for_in_time() {
    let (_server, proxy, url, wired) = wired();
    let load = Load::start(&wired, EMITTERS).await;
    let neighbour = Opened::open(&url, now()).await.unwrap();
    load.acknowledged(50).await;
    proxy.freeze(true);
    // Emits, and reads on connections that are there and on new ones.
    let reads = join_all((0..20).map(|_| load.store().extent()));
    let emits = async {
        for _ in 0..20 {
            // It may have to wait until the server gives up the other's transaction.
            neighbour.append(vec![emission([event("other")])], None, now()).await.unwrap();
        }
    };
    let (reads, (), ()) = tokio::join!(timeout(PATIENCE, reads), emits, load.refused(EMITTERS as usize));
    for read in reads.unwrap() {
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    }
    proxy.freeze(false);
    load.acknowledged(100).await;
    timeout(PATIENCE, load.store().extent()).await.unwrap().unwrap();
    Load::end([load], &url).await;
    neighbour.close();
}
