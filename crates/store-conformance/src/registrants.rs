//! Several programs on one store, each with handlers of its own.

use pointsman_core::Status;
use pointsman_core::store::{Abilities, NodeId, Sequenced};

use crate::Harness;
use crate::fixture::*;

const HOUR: u64 = 3600;

fn server() -> RegistrationBuilder {
    RegistrationBuilder::single_handler().registrant("server")
}

fn app() -> RegistrationBuilder {
    RegistrationBuilder::default().route("record", &["mail"]).registrant("app")
}

/// A store on which a server and a program have registered.
async fn shared(harness: &dyn Harness) -> StoreFixture<'_> {
    let world = StoreFixture::new(harness, server()).await;
    announce(&world, world.node, "server").await;
    register(&world, app()).await;
    world
}

/// Registers something beside the world's own plan.
async fn register(world: &StoreFixture<'_>, plan: RegistrationBuilder) {
    expect_ok(world.store.register(plan.build(), world.now).await);
}

async fn announce(world: &StoreFixture<'_>, node: NodeId, registrant: &str) {
    let told = Abilities { registrant: Some(registrant.into()), ..Abilities::default() };
    expect_ok(world.store.announce(node, told).await);
}

async fn registrants(world: &StoreFixture<'_>) -> Vec<String> {
    let mut found = expect_ok(world.store.registrants().await);
    found.sort();
    found
}

async fn statuses(world: &StoreFixture<'_>, sequenced: &Sequenced) -> Vec<Status> {
    let mut found = Vec::new();
    for task in &sequenced.tasks {
        found.push(world.task_status(task).await);
    }
    found
}

/// So many hours go by, in each of which the dead are looked for.
async fn watch(world: &mut StoreFixture<'_>, hours: u64, living: &[NodeId]) {
    for _ in 0..hours {
        world.advance_clock(HOUR);
        for node in living {
            expect_ok(world.store.heartbeat(*node, world.now).await);
        }
        world.rescue_tasks().await;
    }
}

pub async fn registrations_of_several_registrants_are_merged(harness: &dyn Harness) {
    let world = shared(harness).await;
    assert_eq!(registrants(&world).await, ["app", "server"]);
    assert_eq!(world.emit(new_event("record")).await.tasks.len(), 2, "a task for each one's handler");
    assert_eq!(world.claim_for_handlers(&["mail"], 8).await.len(), 1);
    let all = expect_ok(world.store.registration().await);
    assert_eq!((all.handlers.len(), all.routes.resolve(&handling_key("record")).len()), (2, 2));
    let world = world.reopen().await;
    assert_eq!(registrants(&world).await, ["app", "server"]);
    assert_eq!(world.emit(new_event("record")).await.tasks.len(), 2);
}

pub async fn a_registrant_replaces_only_its_own_definitions(harness: &dyn Harness) {
    let mut world = shared(harness).await;
    let sequenced = world.emit(new_event("record")).await;
    register(&world, RegistrationBuilder::default().route("record", &["print"]).registrant("app")).await;
    assert_eq!(world.rescue_tasks().await.missing, 1);
    assert_eq!(statuses(&world, &sequenced).await, [Status::New, Status::Missing]);
    world.register(RegistrationBuilder::default().registrant("server")).await;
    assert_eq!(world.rescue_tasks().await.missing, 1);
    assert_eq!(statuses(&world, &sequenced).await, [Status::Missing, Status::Missing]);
    assert_eq!(world.emit(new_event("record")).await.tasks.len(), 1, "print is still there");
}

pub async fn the_last_changed_definition_of_a_shared_handler_wins(harness: &dyn Harness) {
    let world = shared(harness).await;
    let limit = async |world: &StoreFixture<'_>| {
        let all = expect_ok(world.store.registration().await);
        all.handlers
            .iter()
            .find(|def| def.name == handler_name("mail"))
            .expect("it is defined")
            .limits
            .concurrency
    };
    let wide = limit(&world).await;
    let narrow = RegistrationBuilder::default().concurrency_limit("mail", 3).registrant("server");
    register(&world, narrow.clone()).await;
    let limited = limit(&world).await;
    assert_ne!(limited, wide);
    register(&world, app()).await;
    assert_eq!(limit(&world).await, limited, "the same again is no change");
    register(&world, app().concurrency_limit("mail", 5)).await;
    assert!(![limited, wide].contains(&limit(&world).await));
    register(&world, RegistrationBuilder::default().registrant("app")).await;
    assert_eq!(limit(&world).await, limited, "the other one still has it");
}

pub async fn a_registrant_without_a_live_node_expires_after_a_day(harness: &dyn Harness) {
    let mut world = shared(harness).await;
    let server = world.node;
    let sequenced = world.emit(new_event("record")).await;
    watch(&mut world, 22, &[server]).await;
    assert_eq!(registrants(&world).await, ["app", "server"]);
    assert_eq!(statuses(&world, &sequenced).await, [Status::New, Status::New]);
    watch(&mut world, 5, &[server]).await;
    assert_eq!(registrants(&world).await, ["server"]);
    assert_eq!(statuses(&world, &sequenced).await, [Status::New, Status::Missing]);
    assert_eq!(world.emit(new_event("record")).await.tasks.len(), 1);
}

pub async fn a_registrant_with_a_live_node_does_not_expire(harness: &dyn Harness) {
    let mut world = shared(harness).await;
    let (server, node) = (world.node, expect_ok(world.store.join("app", world.now).await));
    announce(&world, node, "app").await;
    watch(&mut world, 40, &[server, node]).await;
    assert_eq!(registrants(&world).await, ["app", "server"]);
    watch(&mut world, 22, &[server]).await;
    assert_eq!(registrants(&world).await, ["app", "server"], "the day begins with its last sign of life");
    watch(&mut world, 5, &[server]).await;
    assert_eq!(registrants(&world).await, ["server"]);
}

/// All were switched off, and come back one after the other.
pub async fn downtime_of_all_nodes_does_not_expire_registrants(harness: &dyn Harness) {
    let mut world = shared(harness).await;
    let server = world.node;
    watch(&mut world, 2, &[server]).await;
    world.advance_clock(72 * HOUR);
    let mut world = world.reopen().await;
    let server = world.node;
    announce(&world, server, "server").await;
    world.rescue_tasks().await;
    assert_eq!(registrants(&world).await, ["app", "server"]);
    watch(&mut world, 20, &[server]).await;
    assert_eq!(registrants(&world).await, ["app", "server"]);
    watch(&mut world, 6, &[server]).await;
    assert_eq!(registrants(&world).await, ["server"]);
}
