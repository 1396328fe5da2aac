//! Several programs on one store, each with its own handlers.

use pointsman_core::TaskStatus;
use pointsman_core::store::{EmittedEventReceipt, NodeCapabilities, NodeId};

use crate::Harness;
use crate::fixture::*;

const HOUR_SECS: u64 = 3600;

fn server_registration() -> RegistrationBuilder {
    RegistrationBuilder::single_handler().registrant("server")
}

fn app_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("record", &["mail"]).registrant("app")
}

/// A fixture with the registrations of a server and of an application.
async fn fixture_with_two_registrants(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, server_registration()).await;
    announce_registrant(&fixture, fixture.node_id, "server").await;
    register_second_registrant(&fixture, app_registration()).await;
    fixture
}

/// Registers this registration in addition to the fixture's own.
async fn register_second_registrant(fixture: &StoreFixture<'_>, registration: RegistrationBuilder) {
    expect_ok(fixture.store.register_definitions(registration.build(), fixture.now).await);
}

async fn announce_registrant(fixture: &StoreFixture<'_>, node: NodeId, registrant: &str) {
    let announced =
        NodeCapabilities { registration_name: Some(registrant.into()), ..NodeCapabilities::default() };
    expect_ok(fixture.store.store_node_capabilities(node, announced).await);
}

async fn list_registration_names(fixture: &StoreFixture<'_>) -> Vec<String> {
    let mut found = expect_ok(fixture.store.list_registration_names().await);
    found.sort();
    found
}

async fn read_task_statuses(fixture: &StoreFixture<'_>, sequenced: &EmittedEventReceipt) -> Vec<TaskStatus> {
    let mut found = Vec::new();
    for task in &sequenced.tasks {
        found.push(fixture.read_task_status(task).await);
    }
    found
}

/// Lets hours pass. In each, these nodes send heartbeats, and the tasks of dead nodes are rescued.
async fn advance_hours_with_heartbeats(fixture: &mut StoreFixture<'_>, hours: u64, live_nodes: &[NodeId]) {
    for _ in 0..hours {
        fixture.advance_clock(HOUR_SECS);
        for node in live_nodes {
            expect_ok(fixture.store.record_heartbeat(*node, fixture.now).await);
        }
        fixture.rescue_tasks().await;
    }
}

pub async fn several_registrations_are_merged(harness: &dyn Harness) {
    let fixture = fixture_with_two_registrants(harness).await;
    assert_eq!(list_registration_names(&fixture).await, ["app", "server"]);
    assert_eq!(fixture.emit(new_event("record")).await.tasks.len(), 2, "a task for each one's handler");
    assert_eq!(fixture.claim_for_handlers(&["mail"], 8).await.len(), 1);
    let all = expect_ok(fixture.store.read_merged_registration().await);
    assert_eq!(
        (all.handlers.len(), all.routes.find_handlers_of_event_type(&event_type("record")).len()),
        (2, 2)
    );
    let fixture = fixture.reopen().await;
    assert_eq!(list_registration_names(&fixture).await, ["app", "server"]);
    assert_eq!(fixture.emit(new_event("record")).await.tasks.len(), 2);
}

pub async fn a_registration_replaces_only_that_of_its_name(harness: &dyn Harness) {
    let mut fixture = fixture_with_two_registrants(harness).await;
    let sequenced = fixture.emit(new_event("record")).await;
    register_second_registrant(
        &fixture,
        RegistrationBuilder::default().route("record", &["print"]).registrant("app"),
    )
    .await;
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 1);
    assert_eq!(read_task_statuses(&fixture, &sequenced).await, [TaskStatus::New, TaskStatus::Missing]);
    fixture.register(RegistrationBuilder::default().registrant("server")).await;
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 1);
    assert_eq!(read_task_statuses(&fixture, &sequenced).await, [TaskStatus::Missing, TaskStatus::Missing]);
    assert_eq!(fixture.emit(new_event("record")).await.tasks.len(), 1, "print is still there");
}

pub async fn the_last_changed_definition_of_a_shared_handler_wins(harness: &dyn Harness) {
    let fixture = fixture_with_two_registrants(harness).await;
    let limit = async |fixture: &StoreFixture<'_>| {
        let all = expect_ok(fixture.store.read_merged_registration().await);
        all.handlers
            .iter()
            .find(|def| def.name == handler_name("mail"))
            .expect("it is defined")
            .limits
            .concurrency
    };
    let default_limit = limit(&fixture).await;
    let limited_registration =
        RegistrationBuilder::default().concurrency_limit("mail", 3).registrant("server");
    register_second_registrant(&fixture, limited_registration.clone()).await;
    let limited = limit(&fixture).await;
    assert_ne!(limited, default_limit);
    register_second_registrant(&fixture, app_registration()).await;
    assert_eq!(limit(&fixture).await, limited, "the same again is no change");
    register_second_registrant(&fixture, app_registration().concurrency_limit("mail", 5)).await;
    assert!(![limited, default_limit].contains(&limit(&fixture).await));
    register_second_registrant(&fixture, RegistrationBuilder::default().registrant("app")).await;
    assert_eq!(limit(&fixture).await, limited, "the other one still has it");
}

pub async fn a_registration_without_a_live_node_expires_after_a_day(harness: &dyn Harness) {
    let mut fixture = fixture_with_two_registrants(harness).await;
    let server = fixture.node_id;
    let sequenced = fixture.emit(new_event("record")).await;
    advance_hours_with_heartbeats(&mut fixture, 22, &[server]).await;
    assert_eq!(list_registration_names(&fixture).await, ["app", "server"]);
    assert_eq!(read_task_statuses(&fixture, &sequenced).await, [TaskStatus::New, TaskStatus::New]);
    advance_hours_with_heartbeats(&mut fixture, 5, &[server]).await;
    assert_eq!(list_registration_names(&fixture).await, ["server"]);
    assert_eq!(read_task_statuses(&fixture, &sequenced).await, [TaskStatus::New, TaskStatus::Missing]);
    assert_eq!(fixture.emit(new_event("record")).await.tasks.len(), 1);
}

pub async fn a_registration_with_a_live_node_does_not_expire(harness: &dyn Harness) {
    let mut fixture = fixture_with_two_registrants(harness).await;
    let (server, node) = (fixture.node_id, expect_ok(fixture.store.join_node("app", fixture.now).await));
    announce_registrant(&fixture, node, "app").await;
    advance_hours_with_heartbeats(&mut fixture, 40, &[server, node]).await;
    assert_eq!(list_registration_names(&fixture).await, ["app", "server"]);
    advance_hours_with_heartbeats(&mut fixture, 22, &[server]).await;
    assert_eq!(
        list_registration_names(&fixture).await,
        ["app", "server"],
        "the day begins with its last heartbeat"
    );
    advance_hours_with_heartbeats(&mut fixture, 5, &[server]).await;
    assert_eq!(list_registration_names(&fixture).await, ["server"]);
}

/// All nodes were down, and start again one after the other.
pub async fn downtime_of_all_nodes_does_not_expire_registrations(harness: &dyn Harness) {
    let mut fixture = fixture_with_two_registrants(harness).await;
    let server = fixture.node_id;
    advance_hours_with_heartbeats(&mut fixture, 2, &[server]).await;
    fixture.advance_clock(72 * HOUR_SECS);
    let mut fixture = fixture.reopen().await;
    let server = fixture.node_id;
    announce_registrant(&fixture, server, "server").await;
    fixture.rescue_tasks().await;
    assert_eq!(list_registration_names(&fixture).await, ["app", "server"]);
    advance_hours_with_heartbeats(&mut fixture, 20, &[server]).await;
    assert_eq!(list_registration_names(&fixture).await, ["app", "server"]);
    advance_hours_with_heartbeats(&mut fixture, 6, &[server]).await;
    assert_eq!(list_registration_names(&fixture).await, ["server"]);
}
