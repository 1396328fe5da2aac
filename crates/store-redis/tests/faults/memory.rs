//! A server whose memory is full: what is there can be worked off.

use std::sync::Arc;

use pointsman_core::store::{Claim, Claimant, Queue, Registry, StoreError};
use pointsman_store_conformance::world::{Draft, Plan, ending, event, handler, succeeded};
use pointsman_testing::{Redis, RedisSettings};

use crate::common::invariants::rest;
use crate::common::node::Node;
use crate::common::place::{Place, left};
use crate::common::{now, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_there_is_worked_off_where_nothing_more_fits() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let node = Node::open(&place).await;
    node.store.register(Plan::simple().free("index").registration(), now()).await.unwrap();
    let id = node.store.join("one", now()).await.unwrap();
    for _ in 0..20 {
        node.emit(event("record").key("o")).await;
    }
    let mut hand = place.connect();
    hand.lives("ghost");
    hand.holds("ghost", "held", Some((&left("record", 0), "5")));
    for n in 1..=100 {
        hand.push("held", &[left("record", n)]);
    }
    rest_but_ghost(&place).await;
    hand.ask(&["CONFIG", "SET", "maxmemory", "1000000"]);
    let full = hand.try_push("more", &[left("record", 1)]).unwrap_err();
    assert!(full.to_string().contains("OOM"), "{full}");
    let mut hand = place.connect();

    // The one who held it is gone: what it left behind is drained.
    hand.dies("ghost");
    until("the outbox is drained", async || hand.number(&["EXISTS", ":held:events"]) == 0).await;
    rest(&place).await;
    let events = node.journal().await;
    let held = events.iter().filter(|event| event.key.as_ref().unwrap().as_str() == "held");
    assert!(held.map(|event| event.value.as_str().parse::<usize>().unwrap()).eq(0..=100));

    // And so are the tasks.
    let mut ran = 0;
    while ran < 121 {
        let claim = Claim { by: Claimant::Node(id), handlers: Arc::new([handler("index")].into()), max: 50 };
        let tasks = node.store.claim(claim, now()).await.unwrap().tasks;
        assert!(!tasks.is_empty(), "{ran} have run");
        ran += tasks.len();
        let ends = tasks.iter().map(|task| ending(task, succeeded())).collect();
        let (ended, _) = node.store.finish(ends, None, now()).await.unwrap();
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    }
    assert!(node.store.heartbeat(id, now()).await.unwrap());

    // Emits are refused meanwhile, and taken again when there is room.
    let refused = node.try_emit(event("record")).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    hand.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    until("emits are taken", async || node.try_emit(event("record")).await.is_ok()).await;
    hand.push("more", &[left("record", 2)]);
    rest(&place).await;
    node.close().await;
}

/// All is drained but what somebody holds.
async fn rest_but_ghost(place: &Place) {
    let mut hand = place.connect();
    until("the line is empty", async || hand.number(&["EXISTS", ":objects.with.events"]) == 0).await;
}
