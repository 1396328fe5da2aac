//! A producer that pushes events to an object and emits to it directly: they must be journaled in that order.

use std::sync::Arc;

use pointsman_core::Event;
use pointsman_store_conformance::fixture::{NewEventExt, new_event};
use pointsman_testing::Rng;

use super::redis_location::{RedisLocation, outbox_event_json};
use super::test_node::TestNode;

/// Pushes or emits `count` events to an object; the value of each is its number.
pub(crate) async fn push_and_emit_randomly(
    location: &RedisLocation,
    node: &TestNode,
    object: &str,
    count: usize,
    seed: u64,
) {
    let (mut client, mut rng, mut n) = (location.connect(), Rng::new(seed), 0);
    while n < count {
        if rng.next_below(2) == 0 {
            let events: Vec<String> =
                (n..(n + 1 + rng.next_below(3)).min(count)).map(|n| outbox_event_json("pushed", n)).collect();
            client.push_events(object, &events);
            n += events.len();
        } else {
            node.emit(new_event("direct").with_key(object).with_value(&n.to_string())).await;
            n += 1;
        }
    }
}

/// Asserts that the events of an object have the values 0 to `count`.
pub(crate) fn assert_values_in_order(events: &[Arc<Event>], object: &str, count: usize) {
    let object_events =
        events.iter().filter(|event| event.key.as_ref().is_some_and(|key| key.as_str() == object));
    let numbers: Vec<usize> = object_events.map(|event| event.value.as_str().parse().unwrap()).collect();
    let first_wrong = numbers.iter().enumerate().find(|(n, number)| n != *number);
    assert_eq!((first_wrong, numbers.len()), (None, count), "{object}: {numbers:?}");
}
