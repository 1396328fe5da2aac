//! A server whose memory is full: stored work can still be processed.

use std::sync::Arc;

use pointsman_core::store::{ClaimRequest, Claimant, Registry, StoreError, TaskQueue};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_event, success,
};
use pointsman_testing::{RedisServer, RedisSettings};

use crate::common::invariants::wait_until_outbox_is_drained;
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::TestNode;
use crate::common::{now, wait_until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn server_with_full_memory_still_drains_the_outbox_and_runs_tasks() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let node = TestNode::open(&location).await;
    node.store
        .register_definitions(RegistrationBuilder::single_handler().unordered("index").build(), now())
        .await
        .unwrap();
    let id = node.store.join_node("one", now()).await.unwrap();
    for _ in 0..20 {
        node.emit(new_event("record").with_key("o")).await;
    }
    let mut client = location.connect();
    client.set_worker_heartbeat("ghost");
    client.set_object_owner("ghost", "owned", Some((&outbox_event_json("record", 0), "5")));
    for n in 1..=100 {
        client.push_events("owned", &[outbox_event_json("record", n)]);
    }
    wait_until_object_queue_is_empty(&location).await;
    client.run_command(&["CONFIG", "SET", "maxmemory", "1000000"]);
    let error = client.try_push_events("more", &[outbox_event_json("record", 1)]).unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    let mut client = location.connect();

    // The worker dies, and its object is drained.
    client.delete_worker_heartbeat("ghost");
    wait_until("the outbox is drained", async || client.query_integer(&["EXISTS", ":owned:events"]) == 0)
        .await;
    wait_until_outbox_is_drained(&location).await;
    let events = node.read_journal().await;
    let owned = events.iter().filter(|event| event.key.as_ref().unwrap().as_str() == "owned");
    assert!(owned.map(|event| event.value.as_str().parse::<usize>().unwrap()).eq(0..=100));

    // Tasks run too.
    let mut ran_count = 0;
    while ran_count < 121 {
        let claim = ClaimRequest {
            claimant: Claimant::Node(id),
            handlers: Arc::new([handler_name("index")].into()),
            max_tasks: 50,
        };
        let tasks = node.store.claim_tasks(claim, now()).await.unwrap().tasks;
        assert!(!tasks.is_empty(), "{ran_count} have run");
        ran_count += tasks.len();
        let ends = tasks.iter().map(|task| finished_attempt(task, success())).collect();
        let (ended, _) = node.store.finish_attempts(ends, None, now()).await.unwrap();
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    }
    assert!(node.store.record_heartbeat(id, now()).await.unwrap());

    // Emits are refused meanwhile, and accepted again when there is memory.
    let refused = node.try_emit(new_event("record")).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    client.run_command(&["CONFIG", "SET", "maxmemory", "0"]);
    wait_until("emits are accepted", async || node.try_emit(new_event("record")).await.is_ok()).await;
    client.push_events("more", &[outbox_event_json("record", 2)]);
    wait_until_outbox_is_drained(&location).await;
    node.close().await;
}

/// Waits until all objects are drained except those with a live owner.
async fn wait_until_object_queue_is_empty(location: &RedisLocation) {
    let mut client = location.connect();
    wait_until("the queue of objects is empty", async || {
        client.query_integer(&["EXISTS", ":objects.with.events"]) == 0
    })
    .await;
}
