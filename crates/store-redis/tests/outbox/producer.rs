//! A producer that follows document 001.

use pointsman_core::EventId;
use pointsman_core::store::{Registry, TaskFilter, Tasks};
use pointsman_store_conformance::fixture::{NewEventExt, RegistrationBuilder, new_event};

use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::now;
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};

#[tokio::test(flavor = "multi_thread")]
async fn pushed_events_are_journaled_in_order() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    node.store.register_definitions(RegistrationBuilder::single_handler().build(), now()).await.unwrap();
    let monitor = InvariantMonitor::start(&location);
    let mut client = location.connect();
    let full = r#"{"type": "record.published", "value": {"n": 1.50}, "sub": "part", "context": {"ip": "::1"},
                   "priority": 9000, "key": "work:1"}"#;
    client.push_events(
        "work:1",
        &[full.to_string(), outbox_event_json("record", 2), outbox_event_json("record", 3)],
    );
    client.push_events("work:1", &[outbox_event_json("record", 4)]);
    let events = node.wait_for_events(4).await;
    assert_eq!(event_values(&events), [r#"{"n": 1.50}"#, "2", "3", "4"]);
    assert_ids_and_prev_links(&events);
    let first = &events[0];
    assert_eq!(
        (first.event_type.as_str(), first.key.as_ref().unwrap().as_str()),
        ("record.published", "work:1")
    );
    assert_eq!((first.sub_object.as_ref().unwrap().as_str(), &*first.context["ip"]), ("part", "::1"));
    assert_eq!(first.prev, None);
    let tasks = node.store.list_tasks(TaskFilter::default(), None, 10).await.unwrap().tasks;
    assert_eq!((tasks.len(), tasks[3].event_id, tasks[3].priority.get()), (4, Some(first.id), 9000));

    wait_until_outbox_is_drained(&location).await;
    let last = events[3].id.to_string();
    assert_eq!(client.query_text(&["GET", ":work:1:last.event.id"]), Some(last.clone()));
    assert_eq!(client.query_text(&["GET", ":next.event.id"]), Some(last));
    assert_eq!(client.query_text(&["GET", ":work:1:data"]).as_deref(), Some("{}"), "it is the producer's");
    monitor.stop_and_assert_no_violations();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_pushed_before_a_node_starts_are_journaled() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.push_events("a", &[outbox_event_json("one", 1), outbox_event_json("two", 2)]);
    client.push_events("b", &[outbox_event_json("one", 3)]);
    client.push_events("a", &[outbox_event_json("one", 4)]);
    let node = TestNode::open(&location).await;
    let events = node.wait_for_events(4).await;
    assert_ids_and_prev_links(&events);
    let a_events: Vec<_> =
        events.iter().filter(|event| event.key.as_ref().unwrap().as_str() == "a").collect();
    assert_eq!(a_events.iter().map(|event| event.value.as_str()).collect::<Vec<_>>(), ["1", "2", "4"]);
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_objects_are_prefixed_with_the_tenant() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.push_events("shop/work:1", &[r#"{"type": "a", "tenant": "shop", "value": 1}"#]);
    client.push_events("work:1", &[outbox_event_json("a", 2)]);
    client.push_events("shop/work:1", &[r#"{"type": "a", "tenant": "shop", "key": "work:1", "value": 3}"#]);
    let events = node.wait_for_events(3).await;
    assert_ids_and_prev_links(&events);
    for event in &events {
        assert_eq!(event.key.as_ref().unwrap().as_str(), "work:1");
    }
    let shops: Vec<_> = events.iter().filter(|event| event.tenant.as_str() == "shop").collect();
    assert_eq!(shops.iter().map(|event| event.value.as_str()).collect::<Vec<_>>(), ["1", "3"]);
    let own = node.emit(new_event("a").with_key("work:1").for_tenant("shop")).await;
    assert_eq!(own.prev, Some(shops[1].id));
    wait_until_outbox_is_drained(&location).await;
    assert_eq!(client.query_text(&["GET", ":shop/work:1:last.event.id"]), Some(own.id.to_string()));
    node.close().await;
}

/// Two objects can have the same name in the keys of document 001, and are separate nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_different_tenants_with_one_name_stay_separate() {
    for shops_first in [true, false] {
        let location = RedisLocation::on_shared_server();
        let node = TestNode::open(&location).await;
        let mut events =
            [new_event("a").with_key("a/1").for_tenant("shop"), new_event("a").with_key("shop/a/1")];
        if !shops_first {
            events.reverse();
        }
        let [first, second] = events;
        let before = node.emit(first.clone()).await;
        assert_eq!((before.prev, node.emit(second).await.prev), (None, None), "they are different objects");
        assert_eq!(node.emit(first).await.prev, Some(before.id));
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn last_event_id_from_before_the_store_becomes_prev() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.run_command(&["SET", ":old:last.event.id", "4"]);
    client.run_command(&["SET", ":older:last.event.id", "5"]);
    client.run_command(&["SET", ":next.event.id", "5"]);
    client.push_events("old", &[outbox_event_json("a", 1), outbox_event_json("a", 2)]);
    let node = TestNode::open(&location).await;
    let events = node.wait_for_events(2).await;
    assert_eq!((events[0].prev, events[1].prev), (EventId::new(4), Some(events[0].id)));
    assert!(
        events[0].id.timestamp() > now().minus(std::time::Duration::from_secs(600)),
        "ids start at the current time"
    );
    assert_eq!(node.emit(new_event("a").with_key("older")).await.prev, EventId::new(5));
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_names_without_events_are_ignored() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    for object in ["nothing", "", "a", "nothing"] {
        client.run_command(&["LPUSH", ":objects.with.events", object]);
    }
    client.push_events("a", &[outbox_event_json("a", 1)]);
    node.wait_for_events(1).await;
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}
