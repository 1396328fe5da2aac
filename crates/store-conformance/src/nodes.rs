//! The listed nodes, their capabilities and their running tasks.

use pointsman_core::store::{ClockReport, ClockStep, NodeCapabilities, NodeId, NodeView, TimeAtUptime};

use crate::Harness;
use crate::fixture::*;

async fn read_node(fixture: &StoreFixture<'_>, node: NodeId) -> NodeView {
    let found = expect_ok(fixture.store.list_nodes().await);
    found.into_iter().find(|view| view.id == node).expect("the node is listed")
}

fn node_capabilities(names: &[&str], slots: usize) -> NodeCapabilities {
    let handlers = names.iter().map(|name| handler_name(name)).collect();
    NodeCapabilities { handlers, slots, ..NodeCapabilities::default() }
}

pub async fn a_joined_node_is_listed(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.advance_clock(10);
    let second = expect_ok(fixture.store.join_node("second", fixture.now).await);
    let seen = read_node(&fixture, second).await;
    assert_eq!(
        (seen.name.as_str(), seen.joined_at, seen.last_heartbeat_at),
        ("second", fixture.now, fixture.now)
    );
    assert_eq!(
        (seen.has_left_or_died, seen.running_task_count, seen.capabilities),
        (false, 0, NodeCapabilities::default())
    );
    assert_eq!(read_node(&fixture, fixture.node_id).await.joined_at, START_TIME);
}

pub async fn announced_node_capabilities_are_stored(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for announced in [
        node_capabilities(&["index", "notify"], 16),
        node_capabilities(&["index"], 4),
        node_capabilities(&[], 0),
    ] {
        expect_ok(fixture.store.store_node_capabilities(fixture.node_id, announced.clone()).await);
        assert_eq!(read_node(&fixture, fixture.node_id).await.capabilities, announced);
    }
    let announced = node_capabilities(&["index"], 8);
    expect_ok(fixture.store.store_node_capabilities(fixture.node_id, announced.clone()).await);
    let node = fixture.node_id;
    let fixture = fixture.reopen().await;
    assert_eq!(read_node(&fixture, node).await.capabilities, announced);
}

/// A node's clock report is stored with the node, whatever its own time is.
pub async fn a_nodes_clock_report_is_stored(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let last_step = Some(ClockStep { at: fixture.now, by_ms: -93_600_000 });
    let boot =
        Some(TimeAtUptime { boot_id: u64::MAX, uptime_ms: 5, at: fixture.now, unconfirmed_time: None });
    let clock =
        ClockReport { offset_ms: 3_456_000_000, out_of_service: true, last_step, time_at_uptime: boot };
    let announced = NodeCapabilities { clock, ..node_capabilities(&["index"], 8) };
    expect_ok(fixture.store.store_node_capabilities(fixture.node_id, announced.clone()).await);
    assert_eq!(read_node(&fixture, fixture.node_id).await.capabilities, announced);
}

/// An embedded store has no server and thus no server clock. Reading the clock does not affect the times given to calls.
pub async fn the_clock_of_the_store_server_never_goes_back(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = expect_ok(fixture.store.read_store_server_clock().await);
    let second = expect_ok(fixture.store.read_store_server_clock().await);
    assert!(first.is_some() == second.is_some() && first <= second, "{first:?} {second:?}");
    fixture.advance_clock(20);
    assert!(fixture.send_heartbeat().await);
    assert_eq!(read_node(&fixture, fixture.node_id).await.last_heartbeat_at, fixture.now);
}

pub async fn a_heartbeat_updates_the_last_heartbeat_time_of_its_node(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.advance_clock(20);
    assert!(fixture.send_heartbeat().await);
    let seen = read_node(&fixture, fixture.node_id).await;
    assert_eq!(
        (seen.last_heartbeat_at, seen.joined_at, seen.has_left_or_died),
        (fixture.now, START_TIME, false)
    );
}

pub async fn running_tasks_are_counted_per_node(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(
        harness,
        RegistrationBuilder::single_handler().route("note", &["remote"]).pulled_by_workers("remote"),
    )
    .await;
    fixture.emit_copies(5, new_event("record")).await;
    fixture.emit(new_event("note")).await;
    let running = fixture.claim(2).await;
    let first = fixture.node_id;
    fixture.node_id = expect_ok(fixture.store.join_node("second", fixture.now).await);
    fixture.claim(3).await;
    fixture.claim_one_as_pull_worker("remote").await;
    assert_eq!(read_node(&fixture, first).await.running_task_count, 2);
    assert_eq!(
        read_node(&fixture, fixture.node_id).await.running_task_count,
        3,
        "tasks of workers are not counted"
    );
    fixture.succeed(&running[0]).await;
    assert_eq!(read_node(&fixture, first).await.running_task_count, 1);
}

pub async fn nodes_that_left_or_expired_are_marked_gone(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    fixture.claim_one().await;
    let (silent, leaving) =
        (fixture.node_id, expect_ok(fixture.store.join_node("leaving", fixture.now).await));
    expect_ok(fixture.store.remove_node(leaving, fixture.now).await);
    assert!(read_node(&fixture, leaving).await.has_left_or_died);
    assert!(!read_node(&fixture, silent).await.has_left_or_died);
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.rescue_tasks().await;
    let seen = read_node(&fixture, silent).await;
    assert_eq!(
        (seen.has_left_or_died, seen.running_task_count, seen.last_heartbeat_at),
        (true, 0, START_TIME)
    );
}

/// All live nodes are listed, however many have left.
pub async fn all_live_nodes_are_listed(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut live_nodes = vec![fixture.node_id];
    for n in 0..60 {
        fixture.advance_clock(1);
        let node = expect_ok(fixture.store.join_node(&format!("node-{n}"), fixture.now).await);
        match n % 10 {
            0 => live_nodes.push(node),
            _ => expect_ok(fixture.store.remove_node(node, fixture.now).await),
        }
    }
    let found = expect_ok(fixture.store.list_nodes().await);
    let mut alive: Vec<_> = found.iter().filter(|view| !view.has_left_or_died).map(|view| view.id).collect();
    alive.sort();
    assert_eq!(alive, live_nodes);
}
