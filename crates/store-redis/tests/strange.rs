//! Keys of the documents that somebody has made something else of: a commit is done whole or not at all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::node::{Node, values};
use common::place::{Place, left};
use common::{now, until};
use pointsman_store_conformance::world::{Draft, event};
use pointsman_store_redis::Redis;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn other_layouts_are_refused_with_what_to_do() {
    let place = Place::shared();
    Node::open(&place).await.close().await;
    let mut hand = place.connect();
    let known: u32 = hand.text(&["HGET", ":pointsman:texts", "layout"]).unwrap().parse().unwrap();
    for (layout, advice) in [(known + 1, "newer version"), (known - 1, "cannot be upgraded")] {
        hand.ask(&["HSET", ":pointsman:texts", "layout", &layout.to_string()]);
        let refused = Redis::open(&place.url, now()).await.err().unwrap().to_string();
        assert!(refused.contains(advice) && refused.contains(&format!("layout is {layout}")), "{refused}");
    }
}
