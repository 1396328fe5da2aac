//! Keys written or deleted by another application: other objects are not affected.

use std::time::Duration;

use pointsman_core::EventId;
use pointsman_store_conformance::fixture::{NewEventExt, new_event};

use crate::common::invariants::wait_until_outbox_is_drained;
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::now;
use crate::common::redis_location::{RawClient, RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};

/// Runs `tamper` on keys of the object `odd`; asserts that an event of another object is journaled and emits succeed.
async fn assert_other_objects_continue(tamper: impl Fn(&mut RawClient)) -> (RedisLocation, TestNode) {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    tamper(&mut client);
    let node = TestNode::open(&location).await;
    client.push_events("good", &[outbox_event_json("good", 1)]);
    let events = node.wait_for_events(1).await;
    assert_eq!(event_values(&events), ["1"]);
    node.emit(new_event("good").with_key("good").with_value("2")).await;
    (location, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_type_keys_do_not_stop_other_objects() {
    let cases: [fn(&mut RawClient); 7] = [
        |client| {
            client.run_command(&["SET", ":odd:events", "not a list"]);
            client.run_command(&["LPUSH", ":objects.with.events", "odd"]);
        },
        |client| {
            client.run_command(&["HSET", ":odd:event.worker", "no", "string"]);
            client.run_command(&["LPUSH", ":objects.with.events", "odd"]);
        },
        |client| {
            client.set_object_owner("ghost", "odd", None);
            client.run_command(&["SET", ":event.worker:ghost:event", "not a list"]);
        },
        |client| {
            client.set_object_owner("ghost", "odd", Some(("not an event", "7")));
            client.run_command(&["DEL", ":event.worker:ghost:event.id"]);
            client.run_command(&["SADD", ":event.worker:ghost:event.id", "not a string"]);
        },
        |client| {
            client.set_object_owner("ghost", "odd", None);
            client.run_command(&["DEL", ":event.worker:ghost:object"]);
            client.run_command(&["SET", ":event.worker:ghost:object", "not a list"]);
            client.run_command(&["LPUSH", ":objects.with.events", "odd"]);
        },
        |client| {
            client.run_command(&["LPUSH", ":odd:last.event.id", "not a string"]);
            client.push_events("odd", &["not an event"]);
        },
        |client| {
            client.run_command(&["SET", ":events.set.aside", "not a list"]);
        },
    ];
    for tamper in cases {
        let (_, node) = assert_other_objects_continue(tamper).await;
        // Direct emits to the object work too.
        node.emit(new_event("good").with_key("odd").with_value("3")).await;
        assert_eq!(event_values(&node.read_journal().await), ["1", "2", "3"]);
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_last_event_id_counts_as_missing() {
    for invalid_id in ["", "abc", "-1", " 4", "9007199254740992", "1e3"] {
        let tamper = |client: &mut RawClient| {
            client.run_command(&["SET", ":odd:last.event.id", invalid_id]);
            client.push_events("odd", &[outbox_event_json("odd", 0)]);
        };
        let location = RedisLocation::on_shared_server();
        tamper(&mut location.connect());
        let node = TestNode::open(&location).await;
        let events = node.wait_for_events(1).await;
        assert_eq!((event_values(&events), events[0].prev), (vec!["0"], None), "{invalid_id:?}");
        wait_until_outbox_is_drained(&location).await;
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_next_event_id_does_not_corrupt_ids() {
    for invalid_id in ["", "abc", "-5", "nan", "inf", "1e300", "9007199254740990", "4102444800000000"] {
        let tamper = |client: &mut RawClient| {
            client.run_command(&["SET", ":next.event.id", invalid_id]);
            client.push_events("odd", &["not an event", "not an event either"]);
        };
        let (location, node) = assert_other_objects_continue(tamper).await;
        wait_until_outbox_is_drained(&location).await;
        let events = node.read_journal().await;
        assert_ids_and_prev_links(&events);
        let last = events.last().unwrap().id;
        let (earliest, latest) = (now().minus(Duration::from_secs(60)), now().plus(Duration::from_secs(60)));
        assert!(last.timestamp() > earliest && last.timestamp() < latest, "{invalid_id:?}: {last}");
        let next: EventId =
            location.connect().query_text(&["GET", ":next.event.id"]).unwrap().parse().unwrap();
        assert_eq!(next, last, "{invalid_id:?}");
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_queued_names_without_events_cause_few_commits() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "busy", None);
    let names: Vec<&str> = ["busy", "idle"].into_iter().cycle().take(20_000).collect();
    for batch in names.chunks(5_000) {
        client.run_command(&[&["LPUSH", ":objects.with.events"], batch].concat());
    }
    client.push_events("good", &[outbox_event_json("good", 1)]);
    let node = TestNode::open(&location).await;
    assert_eq!(event_values(&node.wait_for_events(1).await), ["1"]);
    assert!(
        node.store.database().write_counts().0 < 2_000,
        "{:?} commits for one event",
        node.store.database().write_counts()
    );
    node.close().await;
}
