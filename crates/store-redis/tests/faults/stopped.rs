//! A node that is stopped in the middle of a transaction, for longer than its turn lasts.

use std::sync::Arc;

use pointsman_core::store::{Claim, Claimant, Queue, Registry, StoreError};
use pointsman_store_conformance::world::{Draft, Plan, ending, event, handler, succeeded};
use pointsman_testing::{Redis, RedisSettings};
use tokio::task::block_in_place;

use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::now;
use crate::common::place::{Place, left};
use crate::common::wire::{Fate, Wire};

const COMMIT: &str = include_str!("../../src/lua/commit.lua");

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_it_says_too_late_is_refused_and_it_goes_on_by_itself() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let wire = Wire::start(server.address());
    let stopped = Arc::new(Node::at(&format!("redis://{}", wire.address())).await);
    let other = Node::open(&place).await;
    let watch = Watch::start(&place);
    let mut hand = place.connect();
    let commit = hand.text(&["SCRIPT", "LOAD", COMMIT]).unwrap();
    stopped.emit(event("a").key("o").value("0")).await;
    let set = wire.set(&commit, Fate::Held);
    let node = stopped.clone();
    let late = tokio::spawn(async move { node.try_emit(event("a").key("o").value("9")).await });
    block_in_place(|| set.sprung());
    // It has the turn, and the other one waits until that has run out.
    other.emit(event("a").key("o").value("1")).await;
    hand.push("o", &[left("a", 2)]);
    other.events(3).await;
    set.release();
    let said = late.await.unwrap();
    assert!(matches!(said, Err(StoreError::Unavailable(_))), "{said:?}");
    stopped.emit(event("a").key("o").value("3")).await;
    let events = other.journal().await;
    assert_eq!(values(&events), ["0", "1", "2", "3"]);
    assert_chained(&events);
    rest(&place).await;
    watch.end();
}

/// What it claims too late is another's; it journals nothing, so that no id could tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_it_claims_too_late_is_another_s() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let wire = Wire::start(server.address());
    let stopped = Arc::new(Node::at(&format!("redis://{}", wire.address())).await);
    let other = Node::open(&place).await;
    let commit = place.connect().text(&["SCRIPT", "LOAD", COMMIT]).unwrap();
    let mut claims = vec![];
    for node in [&*stopped, &other] {
        node.store.register(Plan::simple().registration(), now()).await.unwrap();
        let by = Claimant::Node(node.store.join("one", now()).await.unwrap());
        claims.push(Claim { by, handlers: Arc::new([handler("index")].into()), max: 1 });
    }
    stopped.emit(event("record")).await;
    let set = wire.set(&commit, Fate::Held);
    let (node, claim) = (stopped.clone(), claims.remove(0));
    let again = claim.clone();
    let late = tokio::spawn(async move { node.store.claim(claim, now()).await });
    block_in_place(|| set.sprung());
    let task = other.store.claim(claims.remove(0), now()).await.unwrap().tasks.remove(0);
    set.release();
    let said = late.await.unwrap();
    assert!(matches!(said, Err(StoreError::Unavailable(_))), "{said:?}");
    assert_eq!(stopped.store.claim(again, now()).await.unwrap().tasks.len(), 0);
    other.store.finish(vec![ending(&task, succeeded())], None, now()).await.unwrap().0.remove(0).unwrap();
}
