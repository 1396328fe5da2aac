//! Workers that are dead, or seem dead: others take over their objects with the event in flight.

use std::time::Duration;

use pointsman_core::EventId;
use pointsman_store_conformance::fixture::new_event;
use pointsman_testing::{RedisServer, RedisSettings};

use crate::common::command_proxy::{CommandFault, CommandProxy};
use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::redis_location::{RawClient, RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};
use crate::common::{now, wait_until};
use tokio::time::sleep;

const ONE_HOUR: Duration = Duration::from_secs(3600);

/// Writes the keys of an object that a dead worker owns: its first event is in flight with this id.
fn create_object_of_dead_worker(client: &mut RawClient, id: &str) {
    client.set_object_owner("ghost", "o", Some((&outbox_event_json("a", 0), id)));
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 1), &outbox_event_json("a", 2)]);
}

/// Asserts that all events are journaled once and in order; returns the id of the first.
async fn assert_all_journaled_once_in_order(location: &RedisLocation) -> EventId {
    let monitor = InvariantMonitor::start(location);
    let node = TestNode::open(location).await;
    let events = node.wait_for_events(3).await;
    assert_eq!(event_values(&events), ["0", "1", "2"]);
    assert_ids_and_prev_links(&events);
    wait_until_outbox_is_drained(location).await;
    monitor.stop_and_assert_no_violations();
    node.close().await;
    events[0].id
}

#[tokio::test(flavor = "multi_thread")]
async fn in_flight_event_of_a_dead_worker_is_journaled_first() {
    for is_queued in [false, true] {
        let location = RedisLocation::on_shared_server();
        let mut client = location.connect();
        create_object_of_dead_worker(&mut client, "5");
        if is_queued {
            client.run_command(&["LPUSH", ":objects.with.events", "other", "o", "o"]);
        }
        assert_eq!(
            assert_all_journaled_once_in_order(&location).await,
            EventId::new(5).unwrap(),
            "the assigned id is used, because the journal has no greater one"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn assigned_id_below_a_journaled_one_is_replaced() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    let node = TestNode::open(&location).await;
    let before = node.emit(new_event("before")).await.id;
    create_object_of_dead_worker(&mut client, "5");
    client.push_events("o", &[outbox_event_json("a", 3)]);
    let events = node.wait_for_events(5).await;
    assert_eq!(event_values(&events[1..]), ["0", "1", "2", "3"]);
    assert_eq!((events[0].id, events[1].prev), (before, None));
    assert_ids_and_prev_links(&events);
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn assigned_id_above_all_journaled_ones_is_kept() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    // The id was assigned before, and nothing was journaled since.
    let assigned_id = now().micros().to_string();
    create_object_of_dead_worker(&mut client, &assigned_id);
    client.run_command(&["SET", ":next.event.id", &assigned_id]);
    assert_eq!(assert_all_journaled_once_in_order(&location).await.to_string(), assigned_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn assigned_id_in_the_far_future_is_replaced() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    let assigned_id = now().plus(Duration::from_secs(1 << 26)).micros().to_string();
    create_object_of_dead_worker(&mut client, &assigned_id);
    client.run_command(&["SET", ":next.event.id", &assigned_id]);
    let first = assert_all_journaled_once_in_order(&location).await;
    assert!(first.timestamp() < now().plus(ONE_HOUR), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_in_flight_events_of_a_dead_worker_are_journaled() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.set_object_owner("ghost", "o", Some((&outbox_event_json("a", 0), "5")));
    client.run_command(&["LPUSH", ":event.worker:ghost:event", &outbox_event_json("a", 1)]);
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 2)]);
    let node = TestNode::open(&location).await;
    let events = node.wait_for_events(3).await;
    assert_eq!(event_values(&events), ["0", "1", "2"]);
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_dying_before_ownership_loses_no_events() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.run_command(&["LPUSH", ":event.worker:first:object", "o"]);
    client.run_command(&["LPUSH", ":event.worker:second:object", "o"]);
    client.run_command(&[
        "LPUSH",
        ":o:events",
        &outbox_event_json("a", 0),
        &outbox_event_json("a", 1),
        &outbox_event_json("a", 2),
    ]);
    client.run_command(&["LPUSH", ":event.worker:idle:object", "nothing"]);
    let node = TestNode::open(&location).await;
    assert_eq!(event_values(&node.wait_for_events(3).await), ["0", "1", "2"]);
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

/// The worker does not name the object; only the owner key of the object names the worker.
#[tokio::test(flavor = "multi_thread")]
async fn dead_owner_without_object_key_loses_no_events() {
    for in_flight in [false, true] {
        let location = RedisLocation::on_shared_server();
        let mut client = location.connect();
        client.run_command(&["SET", ":o:event.worker", "ghost"]);
        if in_flight {
            client.run_command(&["LPUSH", ":event.worker:ghost:event", &outbox_event_json("a", 0)]);
            client.run_command(&["SET", ":event.worker:ghost:event.id", "5"]);
        } else {
            client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 0)]);
        }
        client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 1), &outbox_event_json("a", 2)]);
        let node = TestNode::open(&location).await;
        assert_eq!(event_values(&node.wait_for_events(3).await), ["0", "1", "2"]);
        wait_until_outbox_is_drained(&location).await;
        node.close().await;
    }
}

/// A store without a prefix sees the keys of a store with one, and ignores them.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_another_store_are_not_taken_over() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let without_prefix = RedisLocation::on_server_without_prefix(&server);
    let prefixed = RedisLocation {
        prefix: "within:".into(),
        ..without_prefix.with_url(server.admin().url_with_prefix("within:"))
    };
    let (mut client, other) = (prefixed.connect(), TestNode::open(&prefixed).await);
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", None);
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 0)]);
    // When the scan for dead workers has found all of these objects, it has scanned all keys.
    let mut own_client = without_prefix.connect();
    for n in 0..20 {
        own_client.run_command(&["SET", &format!(":p{n}:event.worker"), "ghost"]);
        own_client.run_command(&["LPUSH", &format!(":p{n}:events"), &outbox_event_json("a", 7)]);
    }
    let node = TestNode::open(&without_prefix).await;
    assert_eq!(event_values(&node.wait_for_events(20).await), ["7"; 20]);
    assert_eq!(client.query_text(&["GET", ":o:event.worker"]).as_deref(), Some("other"));
    assert_eq!(client.query_integer(&["LLEN", ":o:events"]), 1);
    node.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_worker_keeps_its_object_until_it_dies() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", Some((&outbox_event_json("a", 0), "5")));
    client.push_events("o", &[outbox_event_json("a", 1)]);
    let monitor = InvariantMonitor::start(&location);
    let node = TestNode::open(&location).await;
    client.push_events("o", &[outbox_event_json("a", 2)]);
    client.push_events("p", &[outbox_event_json("b", 7)]);
    assert_eq!(event_values(&node.wait_for_events(1).await), ["7"]);
    assert_eq!(client.query_integer(&["LLEN", ":o:events"]), 2, "the live worker owns the object");
    // The next claim of the object finds that its owner is dead.
    client.delete_worker_heartbeat("other");
    client.push_events("o", &[outbox_event_json("a", 3)]);
    assert_eq!(event_values(&node.wait_for_events(5).await), ["7", "0", "1", "2", "3"]);
    assert_ids_and_prev_links(&node.read_journal().await);
    wait_until_outbox_is_drained(&location).await;
    monitor.stop_and_assert_no_violations();
    node.close().await;
}

/// No further push queues the object, so only the scan for dead workers finds it.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_worker_that_dies_later_are_requeued() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.set_worker_heartbeat("ghost");
    create_object_of_dead_worker(&mut client, "5");
    let node = TestNode::open(&location).await;
    client.push_events("p", &[outbox_event_json("b", 7)]);
    node.wait_for_events(1).await;
    client.delete_worker_heartbeat("ghost");
    assert_eq!(event_values(&node.wait_for_events(4).await), ["7", "0", "1", "2"]);
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

/// The objects of a worker that was only slow are taken over; its later commands are refused, and nothing is journaled twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn events_of_a_worker_wrongly_taken_for_dead_are_journaled_once() {
    for script in [include_str!("../../src/lua/commit.lua"), include_str!("../../src/lua/read_outboxes.lua")]
    {
        let server = RedisServer::start(RedisSettings::default()).unwrap();
        let location = RedisLocation::on_server_without_prefix(&server);
        let proxy = CommandProxy::start(server.address());
        let slow = TestNode::open_url(&format!("redis://{}", proxy.address())).await;
        let mut client = location.connect();
        let hash = client.query_text(&["SCRIPT", "LOAD", script]).unwrap();
        let fault = proxy.arm(&hash, CommandFault::DelayCommand);
        client.push_events("o", &[outbox_event_json("a", 0), outbox_event_json("a", 1)]);
        tokio::task::block_in_place(|| fault.wait_until_triggered());
        let monitor = InvariantMonitor::start(&location);
        // Its heartbeats expire, and another node claims its object.
        let heartbeats: Vec<String> = client.list_keys("event.worker:*:heartbeat");
        heartbeats.iter().for_each(|key| drop(client.run_command(&["DEL", key])));
        client.push_events("o", &[outbox_event_json("a", 2)]);
        let other = TestNode::open(&location).await;
        let before = other.wait_for_events(3).await;
        wait_until_outbox_is_drained(&location).await;
        // A third worker owns the object when the next event is pushed.
        client.set_worker_heartbeat("ghost");
        client.set_object_owner("ghost", "o", None);
        client.push_events("o", &[outbox_event_json("a", 3)]);
        fault.release();
        wait_until("the node can write again", async || slow.try_emit(new_event("direct")).await.is_ok())
            .await;
        client.delete_worker_heartbeat("ghost");
        client.push_events("o", &[outbox_event_json("a", 4)]);
        let after = other.wait_for_events(6).await;
        assert_eq!(event_values(&after), ["0", "1", "2", "null", "3", "4"]);
        assert_eq!(after[2].id, before[2].id);
        assert_ids_and_prev_links(&after);
        wait_until_outbox_is_drained(&location).await;
        monitor.stop_and_assert_no_violations();
        slow.close().await;
        other.close().await;
    }
}

/// A node that stops leaves no keys that peers would have to wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stopping_node_releases_its_objects_at_once() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    let monitor = InvariantMonitor::start(&location);
    for round in 0..15 {
        let node = TestNode::open(&location).await;
        for n in 0..100 {
            client.push_events(
                &format!("o:{n}"),
                &[outbox_event_json("a", 2 * round), outbox_event_json("a", 2 * round + 1)],
            );
        }
        sleep(Duration::from_millis(round)).await;
        node.close().await;
        wait_until("no worker has a heartbeat", async || {
            client.list_keys("event.worker:*:heartbeat").is_empty()
        })
        .await;
    }
    let node = TestNode::open(&location).await;
    let events = node.wait_for_events(100 * 30).await;
    assert_ids_and_prev_links(&events);
    wait_until_outbox_is_drained(&location).await;
    monitor.stop_and_assert_no_violations();
    node.close().await;
}
