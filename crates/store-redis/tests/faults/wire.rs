//! A wire that is cut, frozen, or loses answers.

use std::time::Instant;

use futures::future::join_all;
use pointsman_core::store::{Journal, StoreError};
use pointsman_store_conformance::world::{Draft, event};
use pointsman_testing::{Chance, Proxy, Redis, RedisSettings};
use tokio::time::timeout;

use crate::common::invariants::Watch;
use crate::common::load::Load;
use crate::common::node::Node;
use crate::common::place::Place;
use crate::common::{PATIENCE, until};

const ACTORS: u64 = 6;

/// A server with a wire before it, and its URL over the wire.
fn wired() -> (Redis, Proxy, Place, String) {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let (place, wired) = (Place::whole(&server), server.url_through(&proxy).unwrap());
    (server, proxy, place, wired)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_are_cut_at_any_moment_are_replaced_unnoticed() {
    let (_server, proxy, place, wired) = wired();
    let load = Load::start(&place, &wired, ACTORS).await;
    let neighbour = Load::start(&place, &place.url, 2).await;
    let watch = Watch::start(&place);
    let mut chance = Chance::new(1);
    for _ in 0..25 {
        load.acknowledged(1 + chance.below(60)).await;
        proxy.cut();
    }
    load.acknowledged(100).await;
    assert_eq!((load.refusals(), neighbour.refusals()), (0, 0));
    Load::end([load, neighbour], &place).await;
    watch.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_done_and_not_answered_is_there_at_most_once() {
    let (_server, proxy, place, wired) = wired();
    let load = Load::start(&place, &wired, ACTORS).await;
    let neighbour = Load::start(&place, &place.url, 2).await;
    let watch = Watch::start(&place);
    let mut chance = Chance::new(2);
    for _ in 0..10 {
        load.acknowledged(1 + chance.below(60)).await;
        proxy.drop_replies(true);
        load.refused(1).await;
        proxy.drop_replies(false);
    }
    load.acknowledged(100).await;
    assert_eq!(neighbour.refusals(), 0, "another node's trouble is not its own");
    Load::end([load, neighbour], &place).await;
    watch.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_frozen_wire_is_answered_for_in_time() {
    let (_server, proxy, place, wired) = wired();
    let load = Load::start(&place, &format!("{wired}?connect_timeout=2"), ACTORS).await;
    let neighbour = Node::open(&place).await;
    load.acknowledged(50).await;
    proxy.freeze(true);
    let reads = join_all((0..4).map(|_| load.node().store.extent()));
    let emits = async {
        for _ in 0..20 {
            // It may have to wait until the other's turn has run out.
            neighbour.emit(event("other")).await;
        }
    };
    // Pushes go on; what is emitted directly is refused.
    let (reads, (), ()) = tokio::join!(timeout(PATIENCE, reads), emits, load.refused(ACTORS as usize));
    for read in reads.unwrap() {
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    }
    proxy.freeze(false);
    load.acknowledged(100).await;
    until("it can be read again", async || load.node().store.extent().await.is_ok()).await;
    Load::end([load], &place).await;
    neighbour.close().await;
}

/// However much was asked at once, silence is waited for once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_questions_are_given_up_as_soon_as_one() {
    let (_server, proxy, _, wired) = wired();
    let node = Node::at(&format!("{wired}?connect_timeout=2")).await;
    node.emit(event("a").key("o")).await;
    // More connections than the node needs for itself.
    join_all((0..4).map(|_| node.store.extent())).await;
    proxy.freeze(true);
    let frozen = Instant::now();
    let one = async { (node.store.extent().await.is_err(), frozen.elapsed()) };
    let many = async { (node.try_emit(event("a").key("p")).await.is_err(), frozen.elapsed()) };
    let ((read, one), (emit, many)) = tokio::join!(one, many);
    assert!(read && emit && many < 2 * one, "a question: {one:?}, many: {many:?}");
    proxy.freeze(false);
    until("it goes on", async || node.try_emit(event("a").key("p")).await.is_ok()).await;
    node.close().await;
}
