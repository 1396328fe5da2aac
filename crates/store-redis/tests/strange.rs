//! Keys of the documents that somebody has made something else of: a commit is done whole or not at all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::node::{Node, values};
use common::place::{Place, left};
use common::until;
use pointsman_store_conformance::world::{Draft, event};

/// While it cannot be set aside, nothing of its object is taken; then all of it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_set_aside_stays_where_it_is() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.ask(&["SET", ":events.set.aside", "no list"]);
    hand.push("mixed", &[left("a", 1), "poison".into(), left("a", 2)]);
    for _ in 0..20 {
        tokio::time::sleep(common::PAUSE * 5).await;
        // One of them may be in flight, where it is kept as well.
        assert!(node.journal().await.is_empty());
    }
    hand.ask(&["DEL", ":events.set.aside"]);
    assert_eq!(values(&node.events(2).await), ["1", "2"]);
    until("it is set aside", async || place.connect().number(&["LLEN", ":events.set.aside"]) == 1).await;
    node.emit(event("a").key("mixed").value("3")).await;
    assert_eq!(values(&node.events(3).await), ["1", "2", "3"]);
    node.close().await;
}
