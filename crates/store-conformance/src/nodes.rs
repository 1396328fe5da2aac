//! The nodes there are, what they can do and what they hold.

use pointsman_core::store::{Abilities, BootMark, ClockReport, ClockStep, NodeId, NodeView};

use crate::Harness;
use crate::fixture::*;

async fn view(world: &StoreFixture<'_>, node: NodeId) -> NodeView {
    let found = expect_ok(world.store.nodes().await);
    found.into_iter().find(|view| view.id == node).expect("the node is told of")
}

fn abilities(names: &[&str], slots: usize) -> Abilities {
    let handlers = names.iter().map(|name| handler_name(name)).collect();
    Abilities { handlers, slots, ..Abilities::default() }
}

pub async fn a_joined_node_is_listed(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.advance_clock(10);
    let second = expect_ok(world.store.join("second", world.now).await);
    let seen = view(&world, second).await;
    assert_eq!((seen.name.as_str(), seen.joined, seen.heard), ("second", world.now, world.now));
    assert_eq!((seen.gone, seen.running, seen.abilities), (false, 0, Abilities::default()));
    assert_eq!(view(&world, world.node).await.joined, START_TIME);
}

pub async fn announced_node_capabilities_are_stored(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for told in [abilities(&["index", "notify"], 16), abilities(&["index"], 4), abilities(&[], 0)] {
        expect_ok(world.store.announce(world.node, told.clone()).await);
        assert_eq!(view(&world, world.node).await.abilities, told);
    }
    let told = abilities(&["index"], 8);
    expect_ok(world.store.announce(world.node, told.clone()).await);
    let node = world.node;
    let world = world.reopen().await;
    assert_eq!(view(&world, node).await.abilities, told);
}

/// What a node reports of its clock is kept with it, whatever its own time is.
pub async fn a_nodes_clock_report_is_stored(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let last_step = Some(ClockStep { at: world.now, by_ms: -93_600_000 });
    let boot = Some(BootMark { boot: u64::MAX, uptime_ms: 5, at: world.now, unconfirmed: None });
    let clock = ClockReport { offset_ms: 3_456_000_000, out_of_service: true, last_step, boot };
    let told = Abilities { clock, ..abilities(&["index"], 8) };
    expect_ok(world.store.announce(world.node, told.clone()).await);
    assert_eq!(view(&world, world.node).await.abilities, told);
}

/// A server's clock goes on; an embedded store has none. Reading it changes nothing of the time that verbs were given.
pub async fn the_clock_of_a_server_can_be_read(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = expect_ok(world.store.read_clock().await);
    let second = expect_ok(world.store.read_clock().await);
    assert!(first.is_some() == second.is_some() && first <= second, "{first:?} {second:?}");
    world.advance_clock(20);
    assert!(world.heartbeat().await);
    assert_eq!(view(&world, world.node).await.heard, world.now);
}

pub async fn a_heartbeat_updates_the_node(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.advance_clock(20);
    assert!(world.heartbeat().await);
    let seen = view(&world, world.node).await;
    assert_eq!((seen.heard, seen.joined, seen.gone), (world.now, START_TIME, false));
}

pub async fn running_tasks_are_counted_per_node(harness: &dyn Harness) {
    let mut world = StoreFixture::new(
        harness,
        RegistrationBuilder::single_handler().route("note", &["remote"]).pulled_by_workers("remote"),
    )
    .await;
    world.emit_many(5, new_event("record")).await;
    world.emit(new_event("note")).await;
    let held = world.claim(2).await;
    let first = world.node;
    world.node = expect_ok(world.store.join("second", world.now).await);
    world.claim(3).await;
    world.fetch_one_as_worker("remote").await;
    assert_eq!(view(&world, first).await.running, 2);
    assert_eq!(view(&world, world.node).await.running, 3, "a worker's are no node's");
    world.succeed(&held[0]).await;
    assert_eq!(view(&world, first).await.running, 1);
}

pub async fn nodes_that_left_or_expired_are_marked_gone(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit(new_event("record")).await;
    world.claim_one().await;
    let (silent, leaving) = (world.node, expect_ok(world.store.join("leaving", world.now).await));
    expect_ok(world.store.leave(leaving, world.now).await);
    assert!(view(&world, leaving).await.gone);
    assert!(!view(&world, silent).await.gone);
    world.advance_clock(LEASE_SECS + 1);
    world.rescue_tasks().await;
    let seen = view(&world, silent).await;
    assert_eq!((seen.gone, seen.running, seen.heard), (true, 0, START_TIME));
}

/// However many have come and gone, those that live are told of.
pub async fn all_live_nodes_are_listed(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut living = vec![world.node];
    for n in 0..60 {
        world.advance_clock(1);
        let node = expect_ok(world.store.join(&format!("node-{n}"), world.now).await);
        match n % 10 {
            0 => living.push(node),
            _ => expect_ok(world.store.leave(node, world.now).await),
        }
    }
    let found = expect_ok(world.store.nodes().await);
    let mut alive: Vec<_> = found.iter().filter(|view| !view.gone).map(|view| view.id).collect();
    alive.sort();
    assert_eq!(alive, living);
}
