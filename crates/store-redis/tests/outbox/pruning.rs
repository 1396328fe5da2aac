//! Unused objects are deleted with their keys of document 001, unless somebody has left events for them.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::Journal as _;
use pointsman_store_conformance::world::{EVERYTHING, must};
use pointsman_testing::Reply;

use crate::common::invariants::rest;
use crate::common::node::Node;
use crate::common::now;
use crate::common::place::{Hand, Place, left};

const DAY: Duration = Duration::from_secs(86_400);

/// Deletes all events and unused objects, as if it were so many days later; answers how many objects.
async fn prune(node: &Node, days: u32) -> u64 {
    let nothing = Retention { count: 0, age: Duration::ZERO };
    let mut deleted = 0;
    loop {
        let at = now().plus(DAY * days);
        let pruned = must(node.store.prune(nothing, EVERYTHING, Duration::ZERO, at).await);
        deleted += pruned.objects;
        if !pruned.more {
            return deleted;
        }
    }
}

/// How many objects the store has: rows, members of their index, and last ids of these names.
fn counts(hand: &mut Hand, names: &[&str]) -> (i64, i64, i64) {
    let rows = hand.number(&["HLEN", ":pointsman:objects"]);
    let members = hand.number(&["ZCARD", ":pointsman:objects-by-check"]);
    let last = names.iter().map(|name| hand.number(&["EXISTS", &format!(":{name}:last.event.id")])).sum();
    (rows, members, last)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_leaves_no_key_and_starts_anew_when_it_is_pushed_to() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    let names = ["a", "b", "shop/a"];
    for name in names {
        hand.push(name, &[left("note", 1), left("note", 2)]);
    }
    node.events(6).await;
    rest(&place).await;
    assert_eq!(counts(&mut hand, &names), (3, 3, 3));
    assert_eq!(prune(&node, 1).await, 3);
    assert_eq!(counts(&mut hand, &names), (0, 0, 0));
    hand.push("a", &[left("note", 3), left("note", 4)]);
    let events = node.events(2).await;
    assert_eq!((events[0].prev, events[1].prev), (None, Some(events[0].id)));
    rest(&place).await;
    assert_eq!(counts(&mut hand, &names), (1, 1, 1));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_an_event_worker_serves_stays() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.push("a", &[left("note", 1)]);
    hand.push("b", &[left("note", 1)]);
    node.events(2).await;
    rest(&place).await;
    // Another store's node holds it, and lives.
    hand.ask(&["SET", ":event.worker:w:heartbeat", "1"]);
    hand.ask(&["LPUSH", ":event.worker:w:object", "a"]);
    hand.ask(&["SET", ":a:event.worker", "w"]);
    assert_eq!(prune(&node, 1).await, 1);
    assert_eq!(counts(&mut hand, &["a", "b"]), (1, 1, 1));
    hand.ask(&["DEL", ":a:event.worker", ":event.worker:w:heartbeat", ":event.worker:w:object"]);
    assert_eq!(prune(&node, 3).await, 1);
    assert_eq!(counts(&mut hand, &["a", "b"]), (0, 0, 0));
    node.close().await;
}

/// A node of an older version writes rows that are in no index.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_older_nodes_are_indexed_and_deleted() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    let names: Vec<String> = (0..20).map(|n| format!("o{n}")).collect();
    for name in &names {
        hand.push(name, &[left("note", 1)]);
    }
    node.events(names.len()).await;
    rest(&place).await;
    node.close().await;
    for name in &names {
        let field = format!("/{name}");
        let Reply::Bytes(mut row) = hand.ask(&["HGET", ":pointsman:objects", &field]) else { panic!() };
        // The event at which it was checked: an id of today takes eight bytes.
        row.truncate(row.len() - 8);
        hand.ask(&[&b"HSET"[..], b":pointsman:objects", field.as_bytes(), &row]);
    }
    hand.ask(&["DEL", ":pointsman:objects-by-check"]);
    let node = Node::open(&place).await;
    let (mut deleted, mut rounds) = (0, 0);
    while deleted < names.len() as u64 {
        deleted += prune(&node, 1).await;
        rounds += 1;
        assert!(rounds < 50, "{deleted} of {}", names.len());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(counts(&mut hand, &names), (0, 0, 0));
    node.close().await;
}
