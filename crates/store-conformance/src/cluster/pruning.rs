//! Nodes that delete unused objects while other nodes use them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join3;
use pointsman_core::EventId;

use super::{TestCluster, join_nodes};
use crate::fixture::*;

const DAY_SECS: u64 = 86_400;
const ONE_DAY: Duration = Duration::from_secs(DAY_SECS);

fn numbered_object_key(number: usize) -> String {
    format!("object:{number}")
}

/// Lets two days pass while all nodes send heartbeats.
async fn advance_two_days_with_heartbeats(nodes: &mut [StoreFixture<'_>]) {
    nodes.iter_mut().for_each(|node| node.advance_clock(2 * DAY_SECS));
    for _ in 0..=48 {
        for node in nodes.iter() {
            node.send_heartbeat().await;
        }
        for node in nodes.iter() {
            node.rescue_tasks().await;
        }
    }
}

/// Every node has the objects in its cache when one of them deletes them.
pub async fn a_deleted_object_does_not_come_back_from_the_cache_of_another_node(cluster: &dyn TestCluster) {
    const OBJECT_COUNT: usize = 20;
    let mut nodes: [_; 3] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    for _ in 0..3 {
        for node in &nodes {
            node.emit_in_one_batch(
                (0..OBJECT_COUNT).map(|n| new_event("record").with_key(&numbered_object_key(n))).collect(),
            )
            .await;
        }
        nodes[0].run_all_ready_tasks().await;
        advance_two_days_with_heartbeats(&mut nodes).await;
        assert_eq!(nodes[0].prune_events_and_objects(ONE_DAY).await, OBJECT_COUNT as u64);
        let mut last = vec![None; OBJECT_COUNT];
        for node in [&nodes[1], &nodes[2], &nodes[0], &nodes[1]] {
            for (n, last) in last.iter_mut().enumerate() {
                let emitted = node.emit(new_event("record").with_key(&numbered_object_key(n))).await;
                assert_eq!(emitted.prev, *last, "{n}");
                *last = Some(emitted.id);
            }
        }
        let claimed = nodes[2].claim(OBJECT_COUNT * 4).await;
        assert_eq!(claimed.len(), OBJECT_COUNT, "an object has one lane, whichever node numbered it");
        for task in claimed {
            nodes[2].succeed(&task).await;
        }
        nodes[1].run_all_ready_tasks().await;
        cluster.assert_consistent().await;
    }
}

pub async fn emitting_while_another_node_prunes_keeps_prev_links_intact(cluster: &dyn TestCluster) {
    const OBJECT_COUNT: usize = 300;
    let mut nodes: [_; 3] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    let new = |n: usize| new_event("record").with_key(&numbered_object_key(n));
    let first = nodes[0].emit_in_one_batch((0..OBJECT_COUNT).map(new).collect()).await.events;
    nodes[0].run_all_ready_tasks().await;
    advance_two_days_with_heartbeats(&mut nodes).await;
    let begin = nodes[0].read_journal_range().await.newest_event_id;
    let [pruner, one, other] = &nodes;
    let forwards = async {
        for n in 0..OBJECT_COUNT {
            one.emit(new(n)).await;
        }
    };
    let backwards = async {
        for n in (0..OBJECT_COUNT).rev() {
            other.emit(new(n)).await;
        }
    };
    join3(pruner.prune_events_and_objects(ONE_DAY), forwards, backwards).await;
    let mut last: BTreeMap<String, EventId> = BTreeMap::new();
    let old: Vec<EventId> = first.iter().map(|event| event.id).collect();
    for event in nodes[1].read_all_events().await.iter().filter(|event| event.id > begin) {
        let key = event.key.as_ref().expect("it has a key").to_string();
        match last.insert(key.clone(), event.id) {
            Some(before) => assert_eq!(event.prev, Some(before), "{key}"),
            None => assert!(event.prev.is_none_or(|prev| old.contains(&prev)), "{key}"),
        }
    }
    assert_eq!(last.len(), OBJECT_COUNT);
    cluster.assert_consistent().await;
}

/// Tasks are retried while the pruner scans their objects.
pub async fn retrying_while_another_node_prunes_keeps_the_object(cluster: &dyn TestCluster) {
    const OBJECT_COUNT: usize = 40;
    let registration = RegistrationBuilder::default().route("record", &["fails", "waits"]);
    let mut nodes: [_; 3] = join_nodes(cluster, registration).await;
    let mut events = Vec::new();
    for n in 0..OBJECT_COUNT {
        events.push(nodes[0].emit(new_event("record").with_key(&numbered_object_key(n))).await);
    }
    for task in nodes[0].claim_for_handlers(&["fails"], OBJECT_COUNT).await {
        nodes[0].fail_permanently(&task).await;
    }
    advance_two_days_with_heartbeats(&mut nodes).await;
    let [pruner, retrier, worker] = &nodes;
    let retries = async {
        for event in &events {
            let failed_task = event.tasks.iter().find(|id| id.to_string().contains("fails"));
            // The retry may run before or after the other task ends; both results are valid.
            let _ = retrier.retry_task(failed_task.expect("its task")).await;
        }
    };
    let ends = async {
        for task in worker.claim_for_handlers(&["waits"], OBJECT_COUNT).await {
            worker.succeed(&task).await;
        }
    };
    let prunes = async {
        for _ in 0..3 {
            pruner.prune_events_and_objects(ONE_DAY).await;
        }
    };
    join3(prunes, retries, ends).await;
    let retried = nodes[0].claim_for_handlers(&["fails"], OBJECT_COUNT).await;
    for task in &retried {
        let name = task.event().key.as_ref().expect("it has a key").to_string();
        let next = nodes[1].emit(new_event("note").with_key(&name)).await;
        assert_eq!(next.prev, Some(task.event().id), "{name}");
        nodes[2].succeed(task).await;
    }
    cluster.assert_consistent().await;
}
