//! Commits whose replies are lost.

use std::sync::Arc;

use pointsman_core::store::{ClaimRequest, Claimant, Registry, TaskQueue};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_event, success,
};
use pointsman_testing::{RedisServer, RedisSettings};
use tokio::task::block_in_place;

use crate::common::command_proxy::{CommandFault, CommandProxy};
use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::now;
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};

const COMMIT_LUA: &str = include_str!("../../src/lua/commit.lua");
const READ_OUTBOXES_LUA: &str = include_str!("../../src/lua/read_outboxes.lua");
const CLAIM_OBJECTS_LUA: &str = include_str!("../../src/lua/claim_objects.lua");

/// A node behind a proxy that loses replies, and a second node.
struct TwoNodes {
    location: RedisLocation,
    proxy: CommandProxy,
    proxied_node: Arc<TestNode>,
    other_node: TestNode,
    _server: RedisServer,
}

impl TwoNodes {
    async fn start() -> Self {
        let server = RedisServer::start(RedisSettings::default()).unwrap();
        let location = RedisLocation::on_server_without_prefix(&server);
        let proxy = CommandProxy::start(server.address());
        let proxied_node = Arc::new(TestNode::open_url(&format!("redis://{}", proxy.address())).await);
        let other = TestNode::open(&location).await;
        Self { location, proxy, proxied_node, other_node: other, _server: server }
    }

    fn load_script(&self, script: &str) -> String {
        self.location.connect().query_text(&["SCRIPT", "LOAD", script]).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commit_with_lost_reply_is_resent_and_applied_once() {
    let nodes = TwoNodes::start().await;
    let commit = nodes.load_script(COMMIT_LUA);
    for other_commits in [0, 1, 5, 100] {
        let fault = nodes.proxy.arm(&commit, CommandFault::LoseReply);
        let node = nodes.proxied_node.clone();
        let emit =
            tokio::spawn(async move { node.try_emit(new_event("a").with_key("o").with_value("1")).await });
        block_in_place(|| fault.wait_until_triggered());
        for n in 0..other_commits {
            nodes
                .other_node
                .emit(new_event("a").with_key(if n % 2 == 0 { "o" } else { "p" }).with_value("0"))
                .await;
        }
        fault.release();
        let emitted = emit.await.unwrap().unwrap();
        let events = nodes.other_node.read_journal().await;
        assert_eq!(events.iter().filter(|event| event.id == emitted.id).count(), 1);
        let own_events = events.iter().filter(|event| event.value.as_str() == "1").count();
        assert_eq!(own_events, 1 + [0, 1, 5, 100].iter().position(|n| *n == other_commits).unwrap());
        assert_ids_and_prev_links(&events);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_and_ends_with_lost_replies_are_applied_once() {
    let nodes = TwoNodes::start().await;
    let (node, commit) = (nodes.proxied_node.clone(), nodes.load_script(COMMIT_LUA));
    node.store.register_definitions(RegistrationBuilder::single_handler().build(), now()).await.unwrap();
    let id = node.store.join_node("one", now()).await.unwrap();
    node.emit(new_event("record")).await;
    let fault = nodes.proxy.arm(&commit, CommandFault::LoseReply);
    let claim = ClaimRequest {
        claimant: Claimant::Node(id),
        handlers: Arc::new([handler_name("index")].into()),
        max_tasks: 1,
    };
    let claiming = {
        let node = node.clone();
        tokio::spawn(async move { node.store.claim_tasks(claim, now()).await })
    };
    block_in_place(|| fault.wait_until_triggered());
    nodes.other_node.emit(new_event("other")).await;
    fault.release();
    let task = claiming.await.unwrap().unwrap().tasks.remove(0);
    let fault = nodes.proxy.arm(&commit, CommandFault::LoseReply);
    let ends = vec![finished_attempt(&task, success())];
    let ended = {
        let node = node.clone();
        tokio::spawn(async move { node.store.finish_attempts(ends, None, now()).await })
    };
    block_in_place(|| fault.wait_until_triggered());
    nodes.other_node.emit(new_event("other")).await;
    fault.release();
    ended.await.unwrap().unwrap().0.remove(0).unwrap();
}

/// Claimed objects and events in flight are found again after a lost reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_replies_while_draining_the_outbox_lose_no_events() {
    let nodes = TwoNodes::start().await;
    let monitor = InvariantMonitor::start(&nodes.location);
    let mut client = nodes.location.connect();
    let TwoNodes { location, proxy, proxied_node, other_node: other, .. } = &nodes;
    let scripts = [COMMIT_LUA, READ_OUTBOXES_LUA, CLAIM_OBJECTS_LUA].map(|script| nodes.load_script(script));
    let mut count = 0;
    for round in 0..4 {
        for script in &scripts {
            let fault = proxy.arm(script, CommandFault::LoseReply);
            client.push_events("o", &[outbox_event_json("a", count), outbox_event_json("a", count + 1)]);
            count += 2;
            // The other node may claim the object first, so events are pushed until the fault is triggered.
            let mut is_triggered = false;
            while !is_triggered {
                client.push_events("o", &[outbox_event_json("a", count)]);
                count += 1;
                is_triggered = block_in_place(|| fault.triggers_soon());
            }
            if round % 2 == 0 {
                other.emit(new_event("other").with_value("-1")).await;
            }
            fault.release();
        }
    }
    wait_until_outbox_is_drained(location).await;
    let mut events = proxied_node.read_journal().await;
    assert_ids_and_prev_links(&events);
    events.retain(|event| event.key.is_some());
    assert!(event_values(&events).iter().map(|value| value.parse::<usize>().unwrap()).eq(0..count));
    monitor.stop_and_assert_no_violations();
}
