//! A snapshot of all lists of a store, for comparison.

use std::fmt::Debug;

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeId, TaskFilter};

use crate::fixture::*;

const OBJECT_KEYS: [&str; 7] = ["r0", "r1", "r2", "n0", "n1", "b", "a1"];
const SCHEDULE_NAMES: [&str; 3] = ["nightly", "shop/orders", "held"];

/// Returns all lists by name, as text. Nodes that joined after `node` are left out, since each restart joins one.
pub(super) async fn snapshot_lists(fixture: &StoreFixture<'_>, node: NodeId) -> Vec<(String, String)> {
    let mut snapshot = ListSnapshot::default();
    snapshot_registry(fixture, node, &mut snapshot).await;
    snapshot_journal(fixture, &mut snapshot).await;
    snapshot_tasks(fixture, &mut snapshot).await;
    snapshot_orders(fixture, &mut snapshot).await;
    for name in SCHEDULE_NAMES {
        snapshot.add_list(&format!("fires of {name}"), &fixture.list_fires(name).await);
    }
    snapshot.lists
}

/// Panics with the name of the first list that differs.
pub(super) fn assert_same_lists(after: &[(String, String)], before: &[(String, String)]) {
    assert_eq!(after.len(), before.len());
    for ((name, after), (_, before)) in after.iter().zip(before) {
        assert_eq!(after, before, "{name}");
    }
}

#[derive(Default)]
struct ListSnapshot {
    lists: Vec<(String, String)>,
}

impl ListSnapshot {
    /// NUL characters are replaced because not every store can keep them.
    fn add_list(&mut self, name: &str, list: &impl Debug) {
        self.lists.push((name.into(), format!("{list:#?}").replace("\\0", "\u{FFFD}")));
    }
}

async fn snapshot_registry(fixture: &StoreFixture<'_>, node: NodeId, snapshot: &mut ListSnapshot) {
    snapshot.add_list("registration", &expect_ok(fixture.store.read_merged_registration().await));
    snapshot.add_list("registrants", &expect_ok(fixture.store.list_registration_names().await));
    let mut nodes = expect_ok(fixture.store.list_nodes().await);
    nodes.retain(|other| other.id <= node);
    nodes
        .iter_mut()
        .filter(|node| !node.has_left_or_died)
        .for_each(|node| node.last_heartbeat_at = Timestamp::MIN);
    snapshot.add_list("nodes", &nodes);
    snapshot.add_list("rules", &expect_ok(fixture.store.list_rules().await));
    let mut queues = expect_ok(fixture.store.list_queues(None).await);
    queues.sort_by_key(|queue| (queue.handler.clone(), queue.tenant.clone(), queue.subject.to_text()));
    snapshot.add_list("queues", &queues);
    snapshot.add_list("audit entries", &expect_ok(fixture.store.list_audit_entries(None, 100).await));
}

async fn snapshot_journal(fixture: &StoreFixture<'_>, snapshot: &mut ListSnapshot) {
    snapshot.add_list("journal_range", &fixture.read_journal_range().await);
    let events = fixture.read_all_events().await;
    snapshot.add_list("journal", &events);
    for event in &events {
        snapshot
            .add_list(&format!("event {}", event.id), &expect_ok(fixture.store.read_event(event.id).await));
    }
    for name in OBJECT_KEYS {
        for tenant_name in ["default", "acme"] {
            let object =
                expect_ok(fixture.store.read_object(&tenant(tenant_name), &object_key(name), 100).await);
            snapshot.add_list(&format!("object {name} of {tenant_name}"), &object);
        }
    }
}

async fn snapshot_tasks(fixture: &StoreFixture<'_>, snapshot: &mut ListSnapshot) {
    let tasks = fixture.list_tasks(&TaskFilter::default()).await;
    snapshot.add_list("tasks", &tasks);
    for task in tasks {
        snapshot.add_list(&format!("task {}", task.id), &fixture.read_task(&task.id).await);
        snapshot.add_list(&format!("logs of {}", task.id), &fixture.read_logs(&task.id).await);
    }
}

async fn snapshot_orders(fixture: &StoreFixture<'_>, snapshot: &mut ListSnapshot) {
    snapshot.add_list("chains", &expect_ok(fixture.store.list_chains().await));
    snapshot.add_list("orders", &fixture.list_orders("/").await);
    snapshot.add_list(
        "statistics",
        &expect_ok(fixture.store.read_order_statistics(&path_filter("/"), None, fixture.now).await),
    );
}
