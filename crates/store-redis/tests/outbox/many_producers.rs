//! Many producers, many objects, and two nodes.

use std::collections::BTreeMap;

use futures::future::join_all;
use pointsman_store_conformance::fixture::{NewEventExt, new_event};

use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::mixed_producer::{assert_values_in_order, push_and_emit_randomly};
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::TestNode;

const PRODUCER_COUNT: usize = 8;
const OBJECT_COUNT: usize = 40;
const PUSHES_PER_PRODUCER: usize = 120;

/// Pushes to many objects; returns the number of events of each. An event's value is its producer and number.
fn push_many_events(location: &RedisLocation, producer: usize) -> BTreeMap<usize, usize> {
    let mut client = location.connect();
    let mut counts = BTreeMap::<usize, usize>::new();
    for push in 0..PUSHES_PER_PRODUCER {
        let (object, event_count) = ((push * 7 + producer * push) % OBJECT_COUNT, 1 + push % 3);
        let first = counts.get(&object).copied().unwrap_or_default();
        let events: Vec<String> = (first..first + event_count)
            .map(|n| outbox_event_json("step", format!("[{producer},{n}]")))
            .collect();
        client.push_events(&format!("work:{object}"), &events);
        counts.insert(object, first + event_count);
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn objects_keep_event_order_with_many_producers_and_two_nodes() {
    let location = RedisLocation::on_shared_server();
    let nodes = [TestNode::open(&location).await, TestNode::open(&location).await];
    let monitor = InvariantMonitor::start(&location);
    let producers = (0..PRODUCER_COUNT).map(|producer| {
        let location = location.clone();
        tokio::task::spawn_blocking(move || push_many_events(&location, producer))
    });
    let pushed_counts: Vec<BTreeMap<usize, usize>> =
        join_all(producers).await.into_iter().map(Result::unwrap).collect();
    let count = pushed_counts.iter().flat_map(BTreeMap::values).sum();
    let events = nodes[0].wait_for_events(count).await;
    assert_ids_and_prev_links(&events);
    let mut next_numbers = BTreeMap::<(usize, String), usize>::new();
    for event in &events {
        let (producer, n): (usize, usize) = serde_json::from_str(event.value.as_str()).unwrap();
        let next = next_numbers.entry((producer, event.key.as_ref().unwrap().to_string())).or_default();
        assert_eq!(n, *next, "of producer {producer} in {}", event.key.as_ref().unwrap());
        *next += 1;
    }
    wait_until_outbox_is_drained(&location).await;
    monitor.stop_and_assert_no_violations();
    let [one, other] = nodes;
    let (commit_counts, ()) =
        ((one.store.database().write_counts().0, other.store.database().write_counts().0), one.close().await);
    assert!(commit_counts.0 > 0 && commit_counts.1 > 0, "a node journaled nothing: {commit_counts:?}");
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn object_with_many_events_does_not_starve_others() {
    const HOT_EVENT_COUNT: usize = 5_000;
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    let events: Vec<String> = (0..HOT_EVENT_COUNT).map(|n| outbox_event_json("hot", n)).collect();
    for batch in events.chunks(500) {
        client.push_events("hot", batch);
    }
    for n in 0..100 {
        client.push_events(&format!("cold:{n}"), &[outbox_event_json("cold", n)]);
    }
    let node = TestNode::open(&location).await;
    let events = node.wait_for_events(HOT_EVENT_COUNT + 100).await;
    assert_ids_and_prev_links(&events);
    let is_hot = |event: &&std::sync::Arc<pointsman_core::Event>| event.event_type.as_str() == "hot";
    let last_cold = events.iter().rposition(|event| !is_hot(&event)).unwrap();
    let before = events[..last_cold].iter().filter(is_hot).count();
    assert!(
        before <= HOT_EVENT_COUNT / 5,
        "{before} events of the hot object were journaled before the last of the others"
    );
    assert!(
        events
            .iter()
            .filter(is_hot)
            .map(|event| event.value.as_str().parse::<usize>().unwrap())
            .eq(0..HOT_EVENT_COUNT)
    );
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn contending_nodes_refuse_no_emit() {
    let location = RedisLocation::on_shared_server();
    let nodes = [TestNode::open(&location).await, TestNode::open(&location).await];
    let monitor = InvariantMonitor::start(&location);
    let (location, emits) = (&location, 150);
    let direct = nodes.iter().flat_map(|node| (0..4).map(move |n| (node, n))).map(|(node, n)| async move {
        for _ in 0..emits {
            node.emit(new_event("direct").with_key(&format!("k:{n}"))).await;
        }
    });
    let mixed = nodes.iter().enumerate().map(|(n, node)| async move {
        push_and_emit_randomly(location, node, &format!("mixed:{n}"), 200, n as u64 + 1).await;
    });
    tokio::join!(join_all(direct), join_all(mixed));
    let events = nodes[1].wait_for_events(8 * emits + 2 * 200).await;
    assert_ids_and_prev_links(&events);
    assert_values_in_order(&events, "mixed:0", 200);
    assert_values_in_order(&events, "mixed:1", 200);
    wait_until_outbox_is_drained(location).await;
    monitor.stop_and_assert_no_violations();
    for node in nodes {
        node.close().await;
    }
}
