//! Many producers, many objects, and two nodes.

use std::collections::BTreeMap;

use futures::future::join_all;
use pointsman_store_conformance::world::{Draft, event};

use crate::common::actor::{act, assert_in_order};
use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::Node;
use crate::common::place::{Place, left};

const PRODUCERS: usize = 8;
const OBJECTS: usize = 40;
const PUSHES: usize = 120;

/// Pushes to many objects; answers how many events it has left for each. An event's value is its producer and number.
fn produce(place: &Place, producer: usize) -> BTreeMap<usize, usize> {
    let mut hand = place.connect();
    let mut counts = BTreeMap::<usize, usize>::new();
    for push in 0..PUSHES {
        let (object, many) = ((push * 7 + producer * push) % OBJECTS, 1 + push % 3);
        let first = counts.get(&object).copied().unwrap_or_default();
        let events: Vec<String> =
            (first..first + many).map(|n| left("step", format!("[{producer},{n}]"))).collect();
        hand.push(&format!("work:{object}"), &events);
        counts.insert(object, first + many);
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_object_keeps_its_order_whoever_pushes_and_whoever_journals() {
    let place = Place::shared();
    let nodes = [Node::open(&place).await, Node::open(&place).await];
    let watch = Watch::start(&place);
    let producers = (0..PRODUCERS).map(|producer| {
        let place = place.clone();
        tokio::task::spawn_blocking(move || produce(&place, producer))
    });
    let left: Vec<BTreeMap<usize, usize>> =
        join_all(producers).await.into_iter().map(Result::unwrap).collect();
    let count = left.iter().flat_map(BTreeMap::values).sum();
    let events = nodes[0].events(count).await;
    assert_chained(&events);
    let mut seen = BTreeMap::<(usize, String), usize>::new();
    for event in &events {
        let (producer, n): (usize, usize) = serde_json::from_str(event.value.as_str()).unwrap();
        let next = seen.entry((producer, event.key.as_ref().unwrap().to_string())).or_default();
        assert_eq!(n, *next, "of producer {producer} in {}", event.key.as_ref().unwrap());
        *next += 1;
    }
    rest(&place).await;
    watch.end();
    let [one, other] = nodes;
    let (shares, ()) = ((one.store.write_counts().0, other.store.write_counts().0), one.close().await);
    assert!(shares.0 > 0 && shares.1 > 0, "both have worked: {shares:?}");
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_object_with_very_many_events_does_not_keep_the_others_waiting() {
    const MANY: usize = 5_000;
    let place = Place::shared();
    let mut hand = place.connect();
    let events: Vec<String> = (0..MANY).map(|n| left("hot", n)).collect();
    for piece in events.chunks(500) {
        hand.push("hot", piece);
    }
    for n in 0..100 {
        hand.push(&format!("cold:{n}"), &[left("cold", n)]);
    }
    let node = Node::open(&place).await;
    let events = node.events(MANY + 100).await;
    assert_chained(&events);
    let hot = |event: &&std::sync::Arc<pointsman_core::Event>| event.kind.as_str() == "hot";
    let last_cold = events.iter().rposition(|event| !hot(&event)).unwrap();
    let before = events[..last_cold].iter().filter(hot).count();
    assert!(before <= MANY / 5, "{before} of the hot one's were journaled before the last of the others");
    assert!(
        events.iter().filter(hot).map(|event| event.value.as_str().parse::<usize>().unwrap()).eq(0..MANY)
    );
    rest(&place).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_nodes_that_contend_refuse_nobody() {
    let place = Place::shared();
    let nodes = [Node::open(&place).await, Node::open(&place).await];
    let watch = Watch::start(&place);
    let (place, emits) = (&place, 150);
    let direct = nodes.iter().flat_map(|node| (0..4).map(move |n| (node, n))).map(|(node, n)| async move {
        for _ in 0..emits {
            node.emit(event("direct").key(&format!("k:{n}"))).await;
        }
    });
    let mixed = nodes.iter().enumerate().map(|(n, node)| async move {
        act(place, node, &format!("mixed:{n}"), 200, n as u64 + 1).await;
    });
    tokio::join!(join_all(direct), join_all(mixed));
    let events = nodes[1].events(8 * emits + 2 * 200).await;
    assert_chained(&events);
    assert_in_order(&events, "mixed:0", 200);
    assert_in_order(&events, "mixed:1", 200);
    rest(place).await;
    watch.end();
    for node in nodes {
        node.close().await;
    }
}
