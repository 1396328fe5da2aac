//! Keys that somebody else has written, or taken away: whatever becomes of that object, the others go on.

use std::time::Duration;

use pointsman_core::EventId;
use pointsman_store_conformance::world::{Draft, event};

use crate::common::chains::assert_chained;
use crate::common::invariants::rest;
use crate::common::node::{Node, values};
use crate::common::now;
use crate::common::place::{Hand, Place, left};

/// Something is done to the object `odd`; then another one's event is journaled, and emits go on.
async fn others_go_on(meddle: impl Fn(&mut Hand)) -> (Place, Node) {
    let place = Place::shared();
    let mut hand = place.connect();
    meddle(&mut hand);
    let node = Node::open(&place).await;
    hand.push("good", &[left("good", 1)]);
    let events = node.events(1).await;
    assert_eq!(values(&events), ["1"]);
    node.emit(event("good").key("good").value("2")).await;
    (place, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_another_kind_stop_nobody() {
    let cases: [fn(&mut Hand); 7] = [
        |hand| {
            hand.ask(&["SET", ":odd:events", "no list"]);
            hand.ask(&["LPUSH", ":objects.with.events", "odd"]);
        },
        |hand| {
            hand.ask(&["HSET", ":odd:event.worker", "no", "string"]);
            hand.ask(&["LPUSH", ":objects.with.events", "odd"]);
        },
        |hand| {
            hand.holds("ghost", "odd", None);
            hand.ask(&["SET", ":event.worker:ghost:event", "no list"]);
        },
        |hand| {
            hand.holds("ghost", "odd", Some(("no event", "7")));
            hand.ask(&["DEL", ":event.worker:ghost:event.id"]);
            hand.ask(&["SADD", ":event.worker:ghost:event.id", "no string"]);
        },
        |hand| {
            hand.holds("ghost", "odd", None);
            hand.ask(&["DEL", ":event.worker:ghost:object"]);
            hand.ask(&["SET", ":event.worker:ghost:object", "no list"]);
            hand.ask(&["LPUSH", ":objects.with.events", "odd"]);
        },
        |hand| {
            hand.ask(&["LPUSH", ":odd:last.event.id", "no string"]);
            hand.push("odd", &["no event"]);
        },
        |hand| {
            hand.ask(&["SET", ":events.set.aside", "no list"]);
        },
    ];
    for meddle in cases {
        let (_, node) = others_go_on(meddle).await;
        // Whoever emits to it directly is not stopped either.
        node.emit(event("good").key("odd").value("3")).await;
        assert_eq!(values(&node.journal().await), ["1", "2", "3"]);
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_id_that_is_none_is_taken_for_none() {
    for odd in ["", "abc", "-1", " 4", "9007199254740992", "1e3"] {
        let meddle = |hand: &mut Hand| {
            hand.ask(&["SET", ":odd:last.event.id", odd]);
            hand.push("odd", &[left("odd", 0)]);
        };
        let place = Place::shared();
        meddle(&mut place.connect());
        let node = Node::open(&place).await;
        let events = node.events(1).await;
        assert_eq!((values(&events), events[0].prev), (vec!["0"], None), "{odd:?}");
        rest(&place).await;
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_id_that_cannot_be_does_not_poison_the_ids() {
    for odd in ["", "abc", "-5", "nan", "inf", "1e300", "9007199254740990", "4102444800000000"] {
        let meddle = |hand: &mut Hand| {
            hand.ask(&["SET", ":next.event.id", odd]);
            hand.push("odd", &["no event", "none either"]);
        };
        let (place, node) = others_go_on(meddle).await;
        rest(&place).await;
        let events = node.journal().await;
        assert_chained(&events);
        let last = events.last().unwrap().id;
        let (least, most) = (now().minus(Duration::from_secs(60)), now().plus(Duration::from_secs(60)));
        assert!(last.timestamp() > least && last.timestamp() < most, "{odd:?}: {last}");
        let next: EventId = place.connect().text(&["GET", ":next.event.id"]).unwrap().parse().unwrap();
        assert_eq!(next, last, "{odd:?}");
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_names_is_worked_off() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "busy", None);
    let names: Vec<&str> = ["busy", "idle"].into_iter().cycle().take(20_000).collect();
    for piece in names.chunks(5_000) {
        hand.ask(&[&["LPUSH", ":objects.with.events"], piece].concat());
    }
    hand.push("good", &[left("good", 1)]);
    let node = Node::open(&place).await;
    assert_eq!(values(&node.events(1).await), ["1"]);
    assert!(node.store.write_counts().0 < 2_000, "{:?} commits for one event", node.store.write_counts());
    node.close().await;
}
