//! A producer that knows the document and nothing else.

use pointsman_core::EventId;
use pointsman_core::store::{Registry, TaskFilter, Tasks};
use pointsman_store_conformance::world::{Draft, Plan, event};

use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::now;
use crate::common::place::{Place, left};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_for_an_object_is_journaled_in_order() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    node.store.register(Plan::simple().registration(), now()).await.unwrap();
    let watch = Watch::start(&place);
    let mut hand = place.connect();
    let full = r#"{"type": "record.published", "value": {"n": 1.50}, "sub": "part", "context": {"ip": "::1"},
                   "priority": 9000, "key": "work:1"}"#;
    hand.push("work:1", &[full.to_string(), left("record", 2), left("record", 3)]);
    hand.push("work:1", &[left("record", 4)]);
    let events = node.events(4).await;
    assert_eq!(values(&events), [r#"{"n": 1.50}"#, "2", "3", "4"]);
    assert_chained(&events);
    let first = &events[0];
    assert_eq!((first.kind.as_str(), first.key.as_ref().unwrap().as_str()), ("record.published", "work:1"));
    assert_eq!((first.sub.as_ref().unwrap().as_str(), &*first.context["ip"]), ("part", "::1"));
    assert_eq!(first.prev, None);
    let tasks = node.store.tasks(TaskFilter::default(), None, 10).await.unwrap().tasks;
    assert_eq!((tasks.len(), tasks[3].event, tasks[3].priority.get()), (4, Some(first.id), 9000));

    rest(&place).await;
    let last = events[3].id.to_string();
    assert_eq!(hand.text(&["GET", ":work:1:last.event.id"]), Some(last.clone()));
    assert_eq!(hand.text(&["GET", ":next.event.id"]), Some(last));
    assert_eq!(hand.text(&["GET", ":work:1:data"]).as_deref(), Some("{}"), "it is the producer's");
    watch.end();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_while_no_node_ran_waits_for_one() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.push("a", &[left("one", 1), left("two", 2)]);
    hand.push("b", &[left("one", 3)]);
    hand.push("a", &[left("one", 4)]);
    let node = Node::open(&place).await;
    let events = node.events(4).await;
    assert_chained(&events);
    let of_a: Vec<_> = events.iter().filter(|event| event.key.as_ref().unwrap().as_str() == "a").collect();
    assert_eq!(of_a.iter().map(|event| event.value.as_str()).collect::<Vec<_>>(), ["1", "2", "4"]);
    rest(&place).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_tenants_have_their_name_before_them() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.push("shop/work:1", &[r#"{"type": "a", "tenant": "shop", "value": 1}"#]);
    hand.push("work:1", &[left("a", 2)]);
    hand.push("shop/work:1", &[r#"{"type": "a", "tenant": "shop", "key": "work:1", "value": 3}"#]);
    let events = node.events(3).await;
    assert_chained(&events);
    for event in &events {
        assert_eq!(event.key.as_ref().unwrap().as_str(), "work:1");
    }
    let shops: Vec<_> = events.iter().filter(|event| event.tenant.as_str() == "shop").collect();
    assert_eq!(shops.iter().map(|event| event.value.as_str()).collect::<Vec<_>>(), ["1", "3"]);
    let own = node.emit(event("a").key("work:1").tenant("shop")).await;
    assert_eq!(own.prev, Some(shops[1].id));
    rest(&place).await;
    assert_eq!(hand.text(&["GET", ":shop/work:1:last.event.id"]), Some(own.id.to_string()));
    node.close().await;
}

/// In the keys of the document two objects can have one name; they are two nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_share_a_name_are_not_mixed_up() {
    for shops_first in [true, false] {
        let place = Place::shared();
        let node = Node::open(&place).await;
        let mut events = [event("a").key("a/1").tenant("shop"), event("a").key("shop/a/1")];
        if !shops_first {
            events.reverse();
        }
        let [first, second] = events;
        let before = node.emit(first.clone()).await;
        assert_eq!((before.prev, node.emit(second).await.prev), (None, None), "they are two");
        assert_eq!(node.emit(first).await.prev, Some(before.id));
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_had_events_before_us_goes_on_after_its_last() {
    let place = Place::shared();
    let mut hand = place.connect();
    hand.ask(&["SET", ":old:last.event.id", "4"]);
    hand.ask(&["SET", ":older:last.event.id", "5"]);
    hand.ask(&["SET", ":next.event.id", "5"]);
    hand.push("old", &[left("a", 1), left("a", 2)]);
    let node = Node::open(&place).await;
    let events = node.events(2).await;
    assert_eq!((events[0].prev, events[1].prev), (EventId::new(4), Some(events[0].id)));
    assert!(events[0].id.timestamp() > now().minus(std::time::Duration::from_secs(600)), "ids tell the time");
    assert_eq!(node.emit(event("a").key("older")).await.prev, EventId::new(5));
    rest(&place).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_events_is_nothing() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    for object in ["nothing", "", "a", "nothing"] {
        hand.ask(&["LPUSH", ":objects.with.events", object]);
    }
    hand.push("a", &[left("a", 1)]);
    node.events(1).await;
    rest(&place).await;
    node.close().await;
}
