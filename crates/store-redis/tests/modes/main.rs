//! The essentials on each kind of Redis: a cluster, a master behind sentinels, and a server that two stores share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod failover;
mod prefix;
mod sentinel;

use std::sync::Arc;

use pointsman_core::Status;
use pointsman_core::store::{Claim, Claimant, Ending, NewRun, NodeId, Queue, Registry, Tasks};
use pointsman_store_conformance::world::{Draft, Plan, ending, event, handler, line, pair, succeeded};

use common::invariants::wait_until_outbox_is_drained;
use common::journal_checks::assert_ids_and_prev_links;
use common::redis_location::{RedisLocation, outbox_event};
use common::test_node::TestNode;
use common::{now, wait_until};

/// A node that runs what comes.
struct WorkingNode {
    node: TestNode,
    id: NodeId,
}

impl WorkingNode {
    async fn open(location: &RedisLocation) -> Self {
        let node = TestNode::open(location).await;
        let plan = Plan::simple().collects("shop/orders", 5);
        node.store.register(plan.registration(), now()).await.unwrap();
        let id = node.store.join("one", now()).await.unwrap();
        Self { node, id }
    }

    fn claim_request(&self) -> Claim {
        let handlers = Arc::new(["index", "shop"].map(handler).into());
        Claim { by: Claimant::Node(self.id), handlers, max: 100 }
    }

    /// Runs all there is; answers how many that were.
    async fn run_all_tasks(&self) -> usize {
        let mut ran = 0;
        loop {
            let tasks = self.node.store.claim(self.claim_request(), now()).await.unwrap().tasks;
            if tasks.is_empty() {
                return ran;
            }
            ran += tasks.len();
            let end = |task| Ending { logs: vec![line(now(), "ran")], ..ending(task, succeeded()) };
            let (ended, _) =
                self.node.store.finish(tasks.iter().map(end).collect(), None, now()).await.unwrap();
            assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        }
    }

    /// Emits, leaves, claims, ends, logs and reads: so many events, from this number on.
    async fn run_all_operations(&self, location: &RedisLocation, first: usize, count: usize) {
        let (store, mut client) = (&self.node.store, location.connect());
        for n in (first..first + count).step_by(2) {
            client.push_events("o", &[outbox_event("record", n)]);
            self.node.emit(event("record").key("o").value(&(n + 1).to_string())).await;
        }
        wait_until_outbox_is_drained(location).await;
        let run = store
            .run(NewRun { pair: pair("shop/orders"), priority: None }, None, now())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(self.run_all_tasks().await, count + 1);
        let (task, _) = store.task(&run.task).await.unwrap().unwrap();
        assert_eq!(task.life.state.status(), Status::Done);
        assert_eq!(store.logs(&run.task, 0, 10).await.unwrap().unwrap().lines.len(), 1);
        let events = self.node.read_journal().await;
        assert_ids_and_prev_links(&events);
        let numbers = events.iter().map(|event| event.value.as_str().parse::<usize>().unwrap());
        assert!(numbers.eq(0..first + count));
    }

    /// Waits until it can write again.
    async fn wait_until_writable(&self) {
        wait_until("it goes on", async || self.node.store.heartbeat(self.id, now()).await.is_ok()).await;
    }
}
