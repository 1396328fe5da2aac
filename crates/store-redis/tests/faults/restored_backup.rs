//! A server that is reset to an earlier state while nodes run, as by a restored backup.

use std::sync::Arc;

use pointsman_core::store::{ClaimRequest, Claimant, Registry, TaskQueue};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_event, success,
};
use pointsman_testing::{RedisServer, RedisSettings};
use tokio::task::block_in_place;

use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};
use crate::common::{now, wait_until};

fn claim_request(node: i64, max: usize) -> ClaimRequest {
    ClaimRequest {
        claimant: Claimant::Node(node),
        handlers: Arc::new([handler_name("index")].into()),
        max_tasks: max,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_continue_from_a_restored_backup() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let [one, other] = [TestNode::open(&location).await, TestNode::open(&location).await];
    one.store
        .register_definitions(RegistrationBuilder::single_handler().unordered("index").build(), now())
        .await
        .unwrap();
    let id = one.store.join_node("one", now()).await.unwrap();
    let mut client = location.connect();
    client.push_events("o", &[outbox_event_json("record", 0)]);
    one.wait_for_events(1).await;
    wait_until_outbox_is_drained(&location).await;
    drop(client);
    block_in_place(|| {
        server.stop().and_then(|()| server.save_data_copy()).and_then(|()| server.start_again())
    })
    .unwrap();
    // The restore loses all of this: pushed and emitted events, and attempts.
    let mut client = location.connect();
    for n in 1..50 {
        client.push_events("o", &[outbox_event_json("record", n)]);
    }
    wait_until_outbox_is_drained(&location).await;
    wait_until("the node can write again", async || {
        other.try_emit(new_event("record").with_key("o").with_value("50")).await.is_ok()
    })
    .await;
    wait_until("the node can write again", async || {
        one.try_emit(new_event("record").with_key("p").with_value("51")).await.is_ok()
    })
    .await;
    let lost_id = one.read_journal().await.last().unwrap().id;
    let tasks = one.store.claim_tasks(claim_request(id, 40), now()).await.unwrap().tasks;
    assert_eq!(tasks.len(), 40);
    drop(client);
    block_in_place(|| {
        server.kill().and_then(|()| server.restore_data_copy()).and_then(|()| server.start_again())
    })
    .unwrap();

    let monitor = InvariantMonitor::start(&location);
    let mut client = location.connect();
    client.push_events("o", &[outbox_event_json("record", 1)]);
    let events = one.wait_for_events(2).await;
    assert_eq!(event_values(&events), ["0", "1"]);
    assert!(events[1].id > lost_id, "{} was assigned before {}", lost_id, events[1].id);
    let mut next = None;
    wait_until("the node can write again", async || {
        next = other.try_emit(new_event("record").with_key("o").with_value("2")).await.ok();
        next.is_some()
    })
    .await;
    assert_eq!(next.unwrap().prev, Some(events[1].id));
    // Attempts of lost tasks are rejected; that of the remaining task may be accepted.
    let endings = tasks.iter().map(|task| finished_attempt(task, success())).collect();
    let mut ended = vec![];
    let end = one.store.finish_attempts(endings, None, now()).await;
    ended.extend(end.unwrap().0);
    assert!(ended.iter().filter(|end| end.is_ok()).count() <= 1, "{ended:?}");
    wait_until("all remaining tasks have run", async || {
        let Ok(claims) = one.store.claim_tasks(claim_request(id, 10), now()).await else { return false };
        let ends = claims.tasks.iter().map(|task| finished_attempt(task, success())).collect();
        claims.tasks.is_empty() && one.store.finish_attempts(ends, None, now()).await.is_ok()
    })
    .await;
    wait_until_outbox_is_drained(&location).await;
    monitor.stop_and_assert_no_violations();
    assert_ids_and_prev_links(&other.read_journal().await);
    one.close().await;
    other.close().await;
}
