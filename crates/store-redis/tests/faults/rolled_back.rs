//! A server that is put back to an earlier state while nodes run, as by a restored backup.

use std::sync::Arc;

use pointsman_core::store::{Claim, Claimant, Queue, Registry};
use pointsman_store_conformance::world::{Draft, Plan, ending, event, handler, succeeded};
use pointsman_testing::{Redis, RedisSettings};
use tokio::task::block_in_place;

use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::place::{Place, left};
use crate::common::{now, until};

fn asking(node: i64, max: usize) -> Claim {
    Claim { by: Claimant::Node(node), handlers: Arc::new([handler("index")].into()), max }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_find_out_and_go_on_from_there() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let [one, other] = [Node::open(&place).await, Node::open(&place).await];
    one.store.register(Plan::simple().free("index").registration(), now()).await.unwrap();
    let id = one.store.join("one", now()).await.unwrap();
    let mut hand = place.connect();
    hand.push("o", &[left("record", 0)]);
    one.events(1).await;
    rest(&place).await;
    drop(hand);
    block_in_place(|| server.stop().and_then(|()| server.keep_copy()).and_then(|()| server.start_again()))
        .unwrap();
    // All of this is lost again: events, some of them left and some emitted, and attempts.
    let mut hand = place.connect();
    for n in 1..50 {
        hand.push("o", &[left("record", n)]);
    }
    rest(&place).await;
    until("it goes on", async || other.try_emit(event("record").key("o").value("50")).await.is_ok()).await;
    until("it goes on", async || one.try_emit(event("record").key("p").value("51")).await.is_ok()).await;
    let lost = one.journal().await.last().unwrap().id;
    let tasks = one.store.claim(asking(id, 40), now()).await.unwrap().tasks;
    assert_eq!(tasks.len(), 40);
    drop(hand);
    block_in_place(|| server.kill().and_then(|()| server.restore_copy()).and_then(|()| server.start_again()))
        .unwrap();

    let watch = Watch::start(&place);
    let mut hand = place.connect();
    hand.push("o", &[left("record", 1)]);
    let events = one.events(2).await;
    assert_eq!(values(&events), ["0", "1"]);
    assert!(events[1].id > lost, "{} was given out, and {} came after it", lost, events[1].id);
    let mut next = None;
    until("it goes on", async || {
        next = other.try_emit(event("record").key("o").value("2")).await.ok();
        next.is_some()
    })
    .await;
    assert_eq!(next.unwrap().prev, Some(events[1].id));
    // Attempts of what is gone end nowhere; the one of what is there still may.
    let endings = tasks.iter().map(|task| ending(task, succeeded())).collect();
    let mut ended = vec![];
    let end = one.store.finish(endings, None, now()).await;
    ended.extend(end.unwrap().0);
    assert!(ended.iter().filter(|end| end.is_ok()).count() <= 1, "{ended:?}");
    until("all that is there runs", async || {
        let Ok(claims) = one.store.claim(asking(id, 10), now()).await else { return false };
        let ends = claims.tasks.iter().map(|task| ending(task, succeeded())).collect();
        claims.tasks.is_empty() && one.store.finish(ends, None, now()).await.is_ok()
    })
    .await;
    rest(&place).await;
    watch.end();
    assert_chained(&other.journal().await);
    one.close().await;
    other.close().await;
}
