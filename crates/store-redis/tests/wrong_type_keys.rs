//! Documented keys of the wrong type, and stores of another layout.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::redis_location::{RedisLocation, outbox_event_json};
use common::test_node::{TestNode, event_values};
use common::{now, wait_until};
use pointsman_store::finding::FindingSeverity;
use pointsman_store::store_copy::CopyEndpointError;
use pointsman_store_conformance::fixture::{NewEventExt, new_event};
use pointsman_store_redis::doctor::examine;
use pointsman_store_redis::{OpenError, Redis, RedisStoreCopy};

/// While an invalid entry cannot be set aside, no event of its object is journaled; afterwards all are.
#[tokio::test(flavor = "multi_thread")]
async fn events_wait_while_an_invalid_entry_cannot_be_set_aside() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.run_command(&["SET", ":events.set.aside", "not a list"]);
    client
        .push_events("mixed", &[outbox_event_json("a", 1), "not an event".into(), outbox_event_json("a", 2)]);
    for _ in 0..20 {
        tokio::time::sleep(common::POLL_INTERVAL * 5).await;
        // One entry may be in flight, where it is kept as well.
        assert!(node.read_journal().await.is_empty());
    }
    client.run_command(&["DEL", ":events.set.aside"]);
    assert_eq!(event_values(&node.wait_for_events(2).await), ["1", "2"]);
    wait_until("the entry is set aside", async || {
        location.connect().query_integer(&["LLEN", ":events.set.aside"]) == 1
    })
    .await;
    node.emit(new_event("a").with_key("mixed").with_value("3")).await;
    assert_eq!(event_values(&node.wait_for_events(3).await), ["1", "2", "3"]);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_of_other_layouts_are_refused_with_advice() {
    let location = RedisLocation::on_shared_server();
    TestNode::open(&location).await.close().await;
    let mut client = location.connect();
    let current: u32 = client.query_text(&["HGET", ":pointsman:texts", "layout"]).unwrap().parse().unwrap();
    for (layout, advice) in [(current + 1, "newer version"), (current - 1, "cannot be upgraded")] {
        client.run_command(&["HSET", ":pointsman:texts", "layout", &layout.to_string()]);
        let refused = Redis::open(&location.url, now()).await.err().unwrap().to_string();
        assert!(refused.contains(advice) && refused.contains(&format!("layout is {layout}")), "{refused}");
    }
}

/// A store of an older layout has other keys, so its state is not found.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_of_an_older_layout_are_not_overwritten() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    client.run_command(&["HSET", ":pointsman:texts", "layout", "2"]);
    client.run_command(&["SET", ":pointsman:point", "state of layout 2"]);
    let refusals = [
        Redis::open(&location.url, now()).await.err().unwrap().to_string(),
        copy_open_error(&location, RedisStoreCopy::open_source).await,
        copy_open_error(&location, RedisStoreCopy::open_target).await,
    ];
    for refusal in refusals {
        assert!(refusal.contains("layout is 2") && refusal.contains("cannot be upgraded"), "{refusal}");
    }
    let findings = examine(&location.url, now).await;
    let finding = findings.iter().find(|finding| finding.name == "keys").unwrap();
    assert!(
        finding.severity == FindingSeverity::Fault && finding.observation.contains("layout is 2"),
        "{finding:?}"
    );
    assert_eq!(client.query_text(&["HGET", ":pointsman:texts", "layout"]).as_deref(), Some("2"));
    assert_eq!(client.query_integer(&["EXISTS", ":pointsman:store-state"]), 0);
}

async fn copy_open_error(
    location: &RedisLocation,
    open: fn(&str) -> Result<RedisStoreCopy, CopyEndpointError<OpenError>>,
) -> String {
    let url = location.url.clone();
    tokio::task::spawn_blocking(move || open(&url).err().unwrap().to_string()).await.unwrap()
}
