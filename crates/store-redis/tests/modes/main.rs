//! The essentials on each kind of Redis: a cluster, a master behind sentinels, and a server that two stores share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod failover;
mod key_prefixes;
mod redis_cluster;
mod sentinel;

use std::sync::Arc;

use pointsman_core::TaskStatus;
use pointsman_core::store::{
    ClaimRequest, Claimant, FinishedAttempt, NewCollectionRun, NodeId, Registry, TaskQueue, Tasks,
};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, info_log_line, new_event,
    source_collection, success,
};

use common::invariants::wait_until_outbox_is_drained;
use common::journal_checks::assert_ids_and_prev_links;
use common::redis_location::{RedisLocation, outbox_event_json};
use common::test_node::TestNode;
use common::{now, wait_until};

/// A node that runs all tasks.
struct WorkingNode {
    node: TestNode,
    id: NodeId,
}

impl WorkingNode {
    async fn open(location: &RedisLocation) -> Self {
        let node = TestNode::open(location).await;
        let registration = RegistrationBuilder::single_handler().collection("shop/orders", 5);
        node.store.register_definitions(registration.build(), now()).await.unwrap();
        let id = node.store.join_node("one", now()).await.unwrap();
        Self { node, id }
    }

    fn claim_request(&self) -> ClaimRequest {
        let handlers = Arc::new(["index", "shop"].map(handler_name).into());
        ClaimRequest { claimant: Claimant::Node(self.id), handlers, max_tasks: 100 }
    }

    /// Runs all tasks; returns their number.
    async fn run_all_tasks(&self) -> usize {
        let mut ran_count = 0;
        loop {
            let tasks = self.node.store.claim_tasks(self.claim_request(), now()).await.unwrap().tasks;
            if tasks.is_empty() {
                return ran_count;
            }
            ran_count += tasks.len();
            let finish = |task| FinishedAttempt {
                log_lines: vec![info_log_line(now(), "ran")],
                ..finished_attempt(task, success())
            };
            let (ended, _) = self
                .node
                .store
                .finish_attempts(tasks.iter().map(finish).collect(), None, now())
                .await
                .unwrap();
            assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        }
    }

    /// Pushes and emits `count` events, numbered from `first` on, runs their tasks, and reads journal, tasks and logs.
    async fn run_all_operations(&self, location: &RedisLocation, first: usize, count: usize) {
        let (store, mut client) = (&self.node.store, location.connect());
        for n in (first..first + count).step_by(2) {
            client.push_events("o", &[outbox_event_json("record", n)]);
            self.node.emit(new_event("record").with_key("o").with_value(&(n + 1).to_string())).await;
        }
        wait_until_outbox_is_drained(location).await;
        let run = store
            .run_collection(
                NewCollectionRun { source_collection: source_collection("shop/orders"), priority: None },
                None,
                now(),
            )
            .await
            .unwrap()
            .unwrap();
        assert_eq!(self.run_all_tasks().await, count + 1);
        let (task, _) = store.read_task(&run.task).await.unwrap().unwrap();
        assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
        assert_eq!(store.read_logs(&run.task, 0, 10).await.unwrap().unwrap().lines.len(), 1);
        let events = self.node.read_journal().await;
        assert_ids_and_prev_links(&events);
        let numbers = events.iter().map(|event| event.value.as_str().parse::<usize>().unwrap());
        assert!(numbers.eq(0..first + count));
    }

    /// Waits until the node can write again.
    async fn wait_until_writable(&self) {
        wait_until("the node can write again", async || {
            self.node.store.record_heartbeat(self.id, now()).await.is_ok()
        })
        .await;
    }
}
