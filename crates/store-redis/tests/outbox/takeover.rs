//! Workers that are gone, or were taken for gone: others take their objects over, with what was in flight.

use std::time::Duration;

use pointsman_core::EventId;
use pointsman_store_conformance::world::event;
use pointsman_testing::{Redis, RedisSettings};

use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::place::{Hand, Place, left};
use crate::common::wire::{Fate, Wire};
use crate::common::{now, until};
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

/// A dead worker, in whose hands are the first of an object's events and this id.
fn leave_behind(hand: &mut Hand, id: &str) {
    hand.holds("ghost", "o", Some((&left("a", 0), id)));
    hand.ask(&["LPUSH", ":o:events", &left("a", 1), &left("a", 2)]);
}

/// All are journaled once and in order; answers the id of the first.
async fn all_come(place: &Place) -> EventId {
    let watch = Watch::start(place);
    let node = Node::open(place).await;
    let events = node.events(3).await;
    assert_eq!(values(&events), ["0", "1", "2"]);
    assert_chained(&events);
    rest(place).await;
    watch.end();
    node.close().await;
    events[0].id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_worker_had_in_flight_comes_first() {
    for in_line in [false, true] {
        let place = Place::shared();
        let mut hand = place.connect();
        leave_behind(&mut hand, "5");
        if in_line {
            hand.ask(&["LPUSH", ":objects.with.events", "other", "o", "o"]);
        }
        assert_eq!(all_come(&place).await, EventId::new(5).unwrap(), "nothing greater is journaled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_cannot_be_kept_is_replaced() {
    let place = Place::shared();
    let mut hand = place.connect();
    let node = Node::open(&place).await;
    let before = node.emit(event("before")).await.id;
    leave_behind(&mut hand, "5");
    hand.push("o", &[left("a", 3)]);
    let events = node.events(5).await;
    assert_eq!(values(&events[1..]), ["0", "1", "2", "3"]);
    assert_eq!((events[0].id, events[1].prev), (before, None));
    assert_chained(&events);
    rest(&place).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_can_be_kept_is_kept() {
    let place = Place::shared();
    let mut hand = place.connect();
    // It was given beforehand, and nothing was journaled since.
    let given = now().micros().to_string();
    leave_behind(&mut hand, &given);
    hand.ask(&["SET", ":next.event.id", &given]);
    assert_eq!(all_come(&place).await.to_string(), given);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_a_clock_that_had_leapt_is_not_kept() {
    let place = Place::shared();
    let mut hand = place.connect();
    let given = now().plus(Duration::from_secs(1 << 26)).micros().to_string();
    leave_behind(&mut hand, &given);
    hand.ask(&["SET", ":next.event.id", &given]);
    let first = all_come(&place).await;
    assert!(first.timestamp() < now().plus(HOUR), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_had_taken_a_second_event_loses_neither() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.holds("ghost", "o", Some((&left("a", 0), "5")));
    hand.ask(&["LPUSH", ":event.worker:ghost:event", &left("a", 1)]);
    hand.ask(&["LPUSH", ":o:events", &left("a", 2)]);
    let node = Node::open(&place).await;
    let events = node.events(3).await;
    assert_eq!(values(&events), ["0", "1", "2"]);
    rest(&place).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_died_before_it_held_its_object_loses_nothing() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.ask(&["LPUSH", ":event.worker:first:object", "o"]);
    hand.ask(&["LPUSH", ":event.worker:second:object", "o"]);
    hand.ask(&["LPUSH", ":o:events", &left("a", 0), &left("a", 1), &left("a", 2)]);
    hand.ask(&["LPUSH", ":event.worker:idle:object", "nothing"]);
    let node = Node::open(&place).await;
    assert_eq!(values(&node.events(3).await), ["0", "1", "2"]);
    rest(&place).await;
    node.close().await;
}

/// Only its name at the object tells that it holds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_worker_that_does_not_name_its_object_loses_nothing() {
    for flying in [false, true] {
        let place = Place::shared();
        let mut hand = place.connect();
        hand.ask(&["SET", ":o:event.worker", "ghost"]);
        if flying {
            hand.ask(&["LPUSH", ":event.worker:ghost:event", &left("a", 0)]);
            hand.ask(&["SET", ":event.worker:ghost:event.id", "5"]);
        } else {
            hand.ask(&["LPUSH", ":o:events", &left("a", 0)]);
        }
        hand.ask(&["LPUSH", ":o:events", &left("a", 1), &left("a", 2)]);
        let node = Node::open(&place).await;
        assert_eq!(values(&node.events(3).await), ["0", "1", "2"]);
        rest(&place).await;
        node.close().await;
    }
}

/// A store without a prefix sees the keys of one that has some, and leaves them to it.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_store_holds_is_not_taken_over() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let whole = Place::whole(&server);
    let within = Place { prefix: "within:".into(), ..whole.over(server.admin().url_under("within:")) };
    let (mut hand, other) = (within.connect(), Node::open(&within).await);
    hand.lives("other");
    hand.holds("other", "o", None);
    hand.ask(&["LPUSH", ":o:events", &left("a", 0)]);
    // It has looked through all keys when what it should find there is found.
    let mut ours = whole.connect();
    for n in 0..20 {
        ours.ask(&["SET", &format!(":p{n}:event.worker"), "ghost"]);
        ours.ask(&["LPUSH", &format!(":p{n}:events"), &left("a", 7)]);
    }
    let node = Node::open(&whole).await;
    assert_eq!(values(&node.events(20).await), ["7"; 20]);
    assert_eq!(hand.text(&["GET", ":o:event.worker"]).as_deref(), Some("other"));
    assert_eq!(hand.number(&["LLEN", ":o:events"]), 1);
    node.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lives_keeps_its_object_until_it_is_dead() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "o", Some((&left("a", 0), "5")));
    hand.push("o", &[left("a", 1)]);
    let watch = Watch::start(&place);
    let node = Node::open(&place).await;
    hand.push("o", &[left("a", 2)]);
    hand.push("p", &[left("b", 7)]);
    assert_eq!(values(&node.events(1).await), ["7"]);
    assert_eq!(hand.number(&["LLEN", ":o:events"]), 2, "they are another's");
    // That it is dead is seen when somebody comes to it.
    hand.dies("other");
    hand.push("o", &[left("a", 3)]);
    assert_eq!(values(&node.events(5).await), ["7", "0", "1", "2", "3"]);
    assert_chained(&node.journal().await);
    rest(&place).await;
    watch.end();
    node.close().await;
}

/// Nobody pushes to the object any more: the one who looks for what the dead hold finds it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_held_that_dies_later_is_found() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.lives("ghost");
    leave_behind(&mut hand, "5");
    let node = Node::open(&place).await;
    hand.push("p", &[left("b", 7)]);
    node.events(1).await;
    hand.dies("ghost");
    assert_eq!(values(&node.events(4).await), ["7", "0", "1", "2"]);
    rest(&place).await;
    node.close().await;
}

/// A worker that was only slow is taken over; what it does later is refused, and nothing is journaled twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_was_taken_for_dead_does_no_harm() {
    for script in [include_str!("../../src/lua/commit.lua"), include_str!("../../src/lua/read_outboxes.lua")]
    {
        let server = Redis::start(RedisSettings::default()).unwrap();
        let place = Place::whole(&server);
        let wire = Wire::start(server.address());
        let slow = Node::at(&format!("redis://{}", wire.address())).await;
        let mut hand = place.connect();
        let hash = hand.text(&["SCRIPT", "LOAD", script]).unwrap();
        let held = wire.set(&hash, Fate::Held);
        hand.push("o", &[left("a", 0), left("a", 1)]);
        tokio::task::block_in_place(|| held.sprung());
        let watch = Watch::start(&place);
        // It is not heard of for a while, and somebody comes to its object.
        let beats: Vec<String> = hand.keys("event.worker:*:heartbeat");
        beats.iter().for_each(|key| drop(hand.ask(&["DEL", key])));
        hand.push("o", &[left("a", 2)]);
        let other = Node::open(&place).await;
        let before = other.events(3).await;
        rest(&place).await;
        // What is queued now is in the hands of yet another one.
        hand.lives("ghost");
        hand.holds("ghost", "o", None);
        hand.push("o", &[left("a", 3)]);
        held.release();
        until("it goes on", async || slow.try_emit(event("direct")).await.is_ok()).await;
        hand.dies("ghost");
        hand.push("o", &[left("a", 4)]);
        let after = other.events(6).await;
        assert_eq!(values(&after), ["0", "1", "2", "null", "3", "4"]);
        assert_eq!(after[2].id, before[2].id);
        assert_chained(&after);
        rest(&place).await;
        watch.end();
        slow.close().await;
        other.close().await;
    }
}

/// A node that ends in good order leaves nothing behind for which others would have to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_node_held_that_ends_is_there_for_others_at_once() {
    let place = Place::shared();
    let mut hand = place.connect();
    let watch = Watch::start(&place);
    for round in 0..15 {
        let node = Node::open(&place).await;
        for n in 0..100 {
            hand.push(&format!("o:{n}"), &[left("a", 2 * round), left("a", 2 * round + 1)]);
        }
        sleep(Duration::from_millis(round)).await;
        node.close().await;
        until("its workers live no more", async || hand.keys("event.worker:*:heartbeat").is_empty()).await;
    }
    let node = Node::open(&place).await;
    let events = node.events(100 * 30).await;
    assert_chained(&events);
    rest(&place).await;
    watch.end();
    node.close().await;
}
