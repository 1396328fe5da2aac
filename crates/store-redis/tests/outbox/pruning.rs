//! Unused objects are deleted with their keys of document 001, unless a worker owns them.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::Journal as _;
use pointsman_store_conformance::fixture::{KEEP_EVERYTHING, expect_ok};

use crate::common::invariants::wait_until_outbox_is_drained;
use crate::common::now;
use crate::common::redis_location::{RawClient, RedisLocation, outbox_event_json};
use crate::common::test_node::TestNode;

const ONE_DAY: Duration = Duration::from_secs(86_400);

/// Prunes all events and unused objects as if `days` had passed; returns the number of deleted objects.
async fn prune_after_days(node: &TestNode, days: u32) -> u64 {
    let keep_nothing = Retention { max_count: 0, max_age: Duration::ZERO };
    let mut deleted = 0;
    loop {
        let at = now().plus(ONE_DAY * days);
        let pruned = expect_ok(
            node.store
                .prune_events_tasks_and_objects(keep_nothing, KEEP_EVERYTHING, Duration::ZERO, at)
                .await,
        );
        deleted += pruned.deleted_object_count;
        if !pruned.has_more {
            return deleted;
        }
    }
}

/// Counts object rows, members of their index, and last event ids of these names.
fn count_object_keys(client: &mut RawClient, names: &[&str]) -> (i64, i64, i64) {
    let rows = client.query_integer(&["HLEN", ":pointsman:objects"]);
    let members = client.query_integer(&["ZCARD", ":pointsman:objects-by-check"]);
    let last =
        names.iter().map(|name| client.query_integer(&["EXISTS", &format!(":{name}:last.event.id")])).sum();
    (rows, members, last)
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_objects_leave_no_keys_and_can_start_again() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    let names = ["a", "b", "shop/a"];
    for name in names {
        client.push_events(name, &[outbox_event_json("note", 1), outbox_event_json("note", 2)]);
    }
    node.wait_for_events(6).await;
    wait_until_outbox_is_drained(&location).await;
    assert_eq!(count_object_keys(&mut client, &names), (3, 3, 3));
    assert_eq!(prune_after_days(&node, 1).await, 3);
    assert_eq!(count_object_keys(&mut client, &names), (0, 0, 0));
    client.push_events("a", &[outbox_event_json("note", 3), outbox_event_json("note", 4)]);
    let events = node.wait_for_events(2).await;
    assert_eq!((events[0].prev, events[1].prev), (None, Some(events[0].id)));
    wait_until_outbox_is_drained(&location).await;
    assert_eq!(count_object_keys(&mut client, &names), (1, 1, 1));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn object_owned_by_a_worker_is_not_deleted() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.push_events("a", &[outbox_event_json("note", 1)]);
    client.push_events("b", &[outbox_event_json("note", 1)]);
    node.wait_for_events(2).await;
    wait_until_outbox_is_drained(&location).await;
    // A live worker owns the object.
    client.run_command(&["SET", ":event.worker:w:heartbeat", "1"]);
    client.run_command(&["LPUSH", ":event.worker:w:object", "a"]);
    client.run_command(&["SET", ":a:event.worker", "w"]);
    assert_eq!(prune_after_days(&node, 1).await, 1);
    assert_eq!(count_object_keys(&mut client, &["a", "b"]), (1, 1, 1));
    client.run_command(&["DEL", ":a:event.worker", ":event.worker:w:heartbeat", ":event.worker:w:object"]);
    assert_eq!(prune_after_days(&node, 3).await, 1);
    assert_eq!(count_object_keys(&mut client, &["a", "b"]), (0, 0, 0));
    node.close().await;
}
