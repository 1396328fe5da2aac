//! Direct emits to an object with outbox entries: they follow those, whichever worker owns the object.

use std::sync::Arc;

use futures::future::join_all;
use pointsman_core::Event;
use pointsman_core::store::{ClaimRequest, Claimant, FinishedAttempt, Registry, Schedules, TaskQueue};
use pointsman_store_conformance::fixture::{
    FireRequestBuilder, NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_event, success,
};
use pointsman_testing::{RedisServer, RedisSettings};

use crate::common::command_proxy::{CommandFault, CommandProxy};
use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::mixed_producer::{assert_values_in_order, push_and_emit_randomly};
use crate::common::redis_location::{RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};
use crate::common::{now, wait_until};

const BEGIN_TRANSACTION_LUA: &str = include_str!("../../src/lua/begin_transaction.lua");
const COMMIT_LUA: &str = include_str!("../../src/lua/commit.lua");

/// Returns the values of events as numbers.
fn event_values_as_numbers(events: &[Arc<Event>]) -> Vec<usize> {
    event_values(events).iter().map(|value| value.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_emit_follows_queued_and_in_flight_events() {
    for (in_flight, is_alive) in [(false, true), (true, true), (false, false), (true, false)] {
        let location = RedisLocation::on_shared_server();
        let node = TestNode::open(&location).await;
        let mut client = location.connect();
        let monitor = InvariantMonitor::start(&location);
        if is_alive {
            client.set_worker_heartbeat("other");
        }
        client.set_object_owner(
            "other",
            "o",
            in_flight.then(|| (outbox_event_json("a", 0), "5")).as_ref().map(|(e, id)| (&**e, *id)),
        );
        client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 1), &outbox_event_json("a", 2)]);
        let direct = node.emit(new_event("direct").with_key("o").with_value("3")).await;
        let events = node.wait_for_events(if in_flight { 4 } else { 3 }).await;
        assert_eq!(
            event_values_as_numbers(&events),
            if in_flight { vec![0, 1, 2, 3] } else { vec![1, 2, 3] }
        );
        assert_ids_and_prev_links(&events);
        assert_eq!(events.last().unwrap().id, direct.id);
        if is_alive {
            assert_eq!(
                client.query_text(&["GET", ":o:event.worker"]).as_deref(),
                Some("other"),
                "the live worker still owns it"
            );
        }
        monitor.stop_and_assert_no_violations();
        node.close().await;
    }
}

/// The emit also journals the event that the owner of the object has in flight.
#[tokio::test(flavor = "multi_thread")]
async fn direct_emit_follows_a_backlog_of_several_transactions() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", Some((&outbox_event_json("a", 0), "5")));
    let monitor = InvariantMonitor::start(&location);
    let count = 3_000;
    let events: Vec<String> = (1..count).map(|n| outbox_event_json("a", n)).collect();
    for batch in events.chunks(500) {
        client.push_events("o", batch);
    }
    let large = "x".repeat(900_000);
    for n in 0..8 {
        client.push_events("large", &[outbox_event_json("a", format!("[{n},\"{large}\"]"))]);
    }
    node.emit(new_event("direct").with_key("o").with_value(&count.to_string())).await;
    node.emit(new_event("direct").with_key("large")).await;
    let events = node.wait_for_events(count + 1 + 9).await;
    assert_ids_and_prev_links(&events);
    let (o_events, large_events): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.key.as_ref().unwrap().as_str() == "o");
    assert!(event_values_as_numbers(&o_events).into_iter().eq(0..=count));
    assert_eq!(large_events.last().unwrap().value.as_str(), "null");
    client.delete_worker_heartbeat("other");
    client.run_command(&["LPUSH", ":objects.with.events", "o"]);
    wait_until_outbox_is_drained(&location).await;
    monitor.stop_and_assert_no_violations();
    node.close().await;
}

/// The emit waits until the whole backlog is journaled; emits to other objects do not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn direct_emit_behind_a_large_backlog_blocks_no_other_object() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", None);
    // The backlog takes a dozen transactions, so that both other emits fit in between.
    let count = 48_000;
    let events: Vec<String> = (0..count).map(|n| outbox_event_json("a", n)).collect();
    for batch in events.chunks(1_000) {
        client.run_command(
            &[&["LPUSH", ":o:events"], &batch.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat(),
        );
    }
    let direct = node.emit(new_event("direct").with_key("o").with_value(&count.to_string()));
    let other_object = async {
        let mut ids = vec![];
        for _ in 0..2 {
            ids.push(node.emit(new_event("other").with_key("p").with_value("0")).await.id);
        }
        ids
    };
    let (direct, other_object) = tokio::join!(direct, other_object);
    assert!(other_object.iter().all(|id| *id < direct.id), "{other_object:?} {}", direct.id);
    let events = node.wait_for_events(count + 3).await;
    assert_ids_and_prev_links(&events);
    let o_events: Vec<_> =
        events.into_iter().filter(|event| event.key.as_ref().unwrap().as_str() == "o").collect();
    assert!(event_values_as_numbers(&o_events).into_iter().eq(0..=count));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_fires_follow_the_backlog() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", Some((&outbox_event_json("a", 1), "5")));
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 2)]);
    let firing = FireRequestBuilder::emitting_event(new_event("a").with_key("o").with_value("3"))
        .build("nightly", now());
    let fire = node.store.execute_fire_requests(vec![firing], now()).await.unwrap().remove(0).0;
    let events = node.wait_for_events(3).await;
    assert_eq!(event_values_as_numbers(&events), [1, 2, 3]);
    assert_ids_and_prev_links(&events);
    assert_eq!(fire.event_id, Some(events[2].id));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_emitted_by_handlers_follow_the_backlog() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    node.store.register_definitions(RegistrationBuilder::single_handler().build(), now()).await.unwrap();
    let id = node.store.join_node("one", now()).await.unwrap();
    node.emit(new_event("record").with_key("other")).await;
    let claim = ClaimRequest {
        claimant: Claimant::Node(id),
        handlers: Arc::new([handler_name("index")].into()),
        max_tasks: 1,
    };
    let task = node.store.claim_tasks(claim, now()).await.unwrap().tasks.remove(0);
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", Some((&outbox_event_json("a", 1), "5")));
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 2)]);
    let emits = vec![new_event("a").with_key("o").with_value("3")];
    let ended = FinishedAttempt { emitted_events: emits, ..finished_attempt(&task, success()) };
    node.store.finish_attempts(vec![ended], None, now()).await.unwrap().0.remove(0).unwrap();
    let events = node.wait_for_events(4).await;
    assert_eq!(event_values_as_numbers(&events[1..]), [1, 2, 3]);
    assert_ids_and_prev_links(&events);
    node.close().await;
}

/// Contending nodes journal pushes and emits in the order in which they were made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn alternating_pushes_and_emits_keep_their_order() {
    let location = RedisLocation::on_shared_server();
    let nodes = [TestNode::open(&location).await, TestNode::open(&location).await];
    let monitor = InvariantMonitor::start(&location);
    let (location, nodes_) = (&location, &nodes);
    join_all((0..6).map(|n| async move {
        push_and_emit_randomly(location, &nodes_[n % 2], &format!("o:{n}"), 250, n as u64 + 7).await;
    }))
    .await;
    let events = nodes[0].wait_for_events(6 * 250).await;
    assert_ids_and_prev_links(&events);
    (0..6).for_each(|n| assert_values_in_order(&events, &format!("o:{n}"), 250));
    wait_until_outbox_is_drained(location).await;
    monitor.stop_and_assert_no_violations();
    for node in nodes {
        node.close().await;
    }
}

/// A node behind a proxy, a second node, and the hashes of two scripts.
struct TwoNodes {
    location: RedisLocation,
    proxy: CommandProxy,
    proxied_node: Arc<TestNode>,
    other_node: TestNode,
    begin_script_hash: String,
    commit_script_hash: String,
    _server: RedisServer,
}

impl TwoNodes {
    async fn start() -> Self {
        let server = RedisServer::start(RedisSettings::default()).unwrap();
        let location = RedisLocation::on_server_without_prefix(&server);
        let proxy = CommandProxy::start(server.address());
        let proxied_node = Arc::new(TestNode::open_url(&format!("redis://{}", proxy.address())).await);
        let other = TestNode::open(&location).await;
        let mut client = location.connect();
        let mut hash = |source: &str| client.query_text(&["SCRIPT", "LOAD", source]).unwrap();
        let (begin_script_hash, commit_script_hash) = (hash(BEGIN_TRANSACTION_LUA), hash(COMMIT_LUA));
        Self {
            location,
            proxy,
            proxied_node,
            other_node: other,
            begin_script_hash,
            commit_script_hash,
            _server: server,
        }
    }
}

/// A second emit arrives while the first waits for the write lock; it joins the transaction and reads the same outbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn jobs_joining_a_transaction_journal_nothing_twice() {
    let nodes = TwoNodes::start().await;
    let mut client = nodes.location.connect();
    client.set_worker_heartbeat("ghost");
    client.set_object_owner("ghost", "o", Some((&outbox_event_json("a", 0), "5")));
    client.run_command(&[
        "LPUSH",
        ":o:events",
        &outbox_event_json("a", 1),
        &outbox_event_json("a", 2),
        &outbox_event_json("a", 3),
    ]);
    nodes.proxied_node.emit(new_event("first").with_value("0")).await;
    let fault = nodes.proxy.arm(&nodes.begin_script_hash, CommandFault::DelayCommand);
    let emit = |n: usize| {
        let proxied_node = nodes.proxied_node.clone();
        tokio::spawn(async move {
            proxied_node.emit(new_event("direct").with_key("o").with_value(&n.to_string())).await
        })
    };
    let first = emit(4);
    tokio::task::block_in_place(|| fault.wait_until_triggered());
    nodes.other_node.emit(new_event("between").with_value("0")).await;
    let second = emit(5);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    fault.release();
    let ids = [first.await.unwrap().id, second.await.unwrap().id];
    let events = nodes.other_node.wait_for_events(8).await;
    assert_ids_and_prev_links(&events);
    let o_events: Vec<_> = events.into_iter().filter(|event| event.key.is_some()).collect();
    assert_eq!(event_values_as_numbers(&o_events), [0, 1, 2, 3, 4, 5]);
    assert_eq!([o_events[4].id, o_events[5].id], ids);
    assert_eq!(client.query_integer(&["EXISTS", ":o:events", ":event.worker:ghost:event"]), 0);
}

/// Events are pushed after the transaction began; an emit that follows them joins the transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn jobs_joining_a_transaction_follow_events_pushed_meanwhile() {
    let nodes = TwoNodes::start().await;
    let mut client = nodes.location.connect();
    nodes.proxied_node.emit(new_event("first").with_value("0")).await;
    nodes.other_node.emit(new_event("between").with_value("0")).await;
    let fault = nodes.proxy.arm(&nodes.begin_script_hash, CommandFault::DelayReply);
    let proxied_node = nodes.proxied_node.clone();
    let first =
        tokio::spawn(
            async move { proxied_node.emit(new_event("direct").with_key("o").with_value("1")).await },
        );
    tokio::task::block_in_place(|| fault.wait_until_triggered());
    client.set_worker_heartbeat("ghost");
    client.set_object_owner("ghost", "p", Some((&outbox_event_json("a", 2), "5")));
    client.run_command(&["LPUSH", ":p:events", &outbox_event_json("a", 3)]);
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 4)]);
    let proxied_node = nodes.proxied_node.clone();
    let joining_emits = tokio::spawn(async move {
        proxied_node.emit(new_event("direct").with_key("p").with_value("5")).await;
        proxied_node.emit(new_event("direct").with_key("o").with_value("6")).await;
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    fault.release();
    first.await.unwrap();
    joining_emits.await.unwrap();
    let events = nodes.other_node.wait_for_events(8).await;
    assert_ids_and_prev_links(&events);
    let numbers_of = |object: &str| {
        let object_events =
            events.iter().filter(|event| event.key.as_ref().is_some_and(|key| key.as_str() == object));
        event_values_as_numbers(&object_events.cloned().collect::<Vec<_>>())
    };
    assert_eq!((numbers_of("p"), numbers_of("o")), (vec![2, 3, 5], vec![1, 4, 6]));
}

/// After a failed transaction all caches are read again, and the outbox too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn direct_emit_follows_the_backlog_after_a_failed_commit() {
    let nodes = TwoNodes::start().await;
    let mut client = nodes.location.connect();
    nodes.proxied_node.emit(new_event("first").with_value("0")).await;
    let fault = nodes.proxy.arm(&nodes.commit_script_hash, CommandFault::DelayCommand);
    let proxied_node = nodes.proxied_node.clone();
    let refused_emit =
        tokio::spawn(async move { proxied_node.try_emit(new_event("late").with_value("0")).await });
    tokio::task::block_in_place(|| fault.wait_until_triggered());
    nodes.other_node.emit(new_event("between").with_value("0")).await;
    client.set_worker_heartbeat("ghost");
    client.set_object_owner("ghost", "o", Some((&outbox_event_json("a", 0), "5")));
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 1)]);
    fault.release();
    assert!(refused_emit.await.unwrap().is_err(), "the other node has committed meanwhile");
    wait_until("the node can write again", async || {
        nodes.proxied_node.try_emit(new_event("direct").with_key("o").with_value("2")).await.is_ok()
    })
    .await;
    let events = nodes.other_node.read_journal().await;
    assert_ids_and_prev_links(&events);
    let o_events: Vec<_> = events.into_iter().filter(|event| event.key.is_some()).collect();
    assert_eq!(event_values_as_numbers(&o_events), [0, 1, 2]);
}
