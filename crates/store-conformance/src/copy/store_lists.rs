//! Reads everything that a store lists, as text, to compare a store with its copy.

use std::fmt::Debug;

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeId, TaskFilter};

use crate::fixture::*;

const OBJECT_KEYS: [&str; 7] = ["r0", "r1", "r2", "n0", "n1", "b", "a1"];
const SCHEDULE_NAMES: [&str; 3] = ["nightly", "shop/orders", "held"];

/// Returns the name and the text of each list. Nodes that joined after `node` are left out, since each restart joins a
/// node.
pub(super) async fn read_store_lists(fixture: &StoreFixture<'_>, node: NodeId) -> Vec<(String, String)> {
    let mut lists = StoreLists::default();
    add_registration_node_and_queue_lists(fixture, node, &mut lists).await;
    add_journal_lists(fixture, &mut lists).await;
    add_task_lists(fixture, &mut lists).await;
    add_order_lists(fixture, &mut lists).await;
    for name in SCHEDULE_NAMES {
        lists.add_list(&format!("fires of {name}"), &fixture.list_fires(name).await);
    }
    lists.names_and_texts
}

/// Panics with the name of the first list that differs.
pub(super) fn assert_same_lists(after: &[(String, String)], before: &[(String, String)]) {
    assert_eq!(after.len(), before.len());
    for ((name, after), (_, before)) in after.iter().zip(before) {
        assert_eq!(after, before, "{name}");
    }
}

/// The lists of a store.
#[derive(Default)]
struct StoreLists {
    names_and_texts: Vec<(String, String)>,
}

impl StoreLists {
    /// Adds the text of a list. NUL characters are replaced because not every store can keep them.
    fn add_list(&mut self, name: &str, list: &impl Debug) {
        self.names_and_texts.push((name.into(), format!("{list:#?}").replace("\\0", "\u{FFFD}")));
    }
}

async fn add_registration_node_and_queue_lists(
    fixture: &StoreFixture<'_>,
    node: NodeId,
    lists: &mut StoreLists,
) {
    lists.add_list("registration", &expect_ok(fixture.store.read_merged_registration().await));
    lists.add_list("registrants", &expect_ok(fixture.store.list_registration_names().await));
    let mut nodes = expect_ok(fixture.store.list_nodes().await);
    nodes.retain(|other| other.id <= node);
    nodes
        .iter_mut()
        .filter(|node| !node.has_left_or_died)
        .for_each(|node| node.last_heartbeat_at = Timestamp::MIN);
    lists.add_list("nodes", &nodes);
    lists.add_list("rules", &expect_ok(fixture.store.list_rules().await));
    let mut queues = expect_ok(fixture.store.list_queues(None).await);
    queues.sort_by_key(|queue| (queue.handler.clone(), queue.tenant.clone(), queue.subject.to_text()));
    lists.add_list("queues", &queues);
    lists.add_list("audit entries", &expect_ok(fixture.store.list_audit_entries(None, 100).await));
}

async fn add_journal_lists(fixture: &StoreFixture<'_>, lists: &mut StoreLists) {
    lists.add_list("journal_range", &fixture.read_journal_range().await);
    let events = fixture.read_all_events().await;
    lists.add_list("journal", &events);
    for event in &events {
        lists.add_list(&format!("event {}", event.id), &expect_ok(fixture.store.read_event(event.id).await));
    }
    for name in OBJECT_KEYS {
        for tenant_name in ["default", "acme"] {
            let object =
                expect_ok(fixture.store.read_object(&tenant(tenant_name), &object_key(name), 100).await);
            lists.add_list(&format!("object {name} of {tenant_name}"), &object);
        }
    }
}

async fn add_task_lists(fixture: &StoreFixture<'_>, lists: &mut StoreLists) {
    let tasks = fixture.list_tasks(&TaskFilter::default()).await;
    lists.add_list("tasks", &tasks);
    for task in tasks {
        lists.add_list(&format!("task {}", task.id), &fixture.read_task(&task.id).await);
        lists.add_list(&format!("logs of {}", task.id), &fixture.read_logs(&task.id).await);
    }
}

async fn add_order_lists(fixture: &StoreFixture<'_>, lists: &mut StoreLists) {
    lists.add_list("chains", &expect_ok(fixture.store.list_chains().await));
    lists.add_list("orders", &fixture.list_orders("/").await);
    lists.add_list(
        "statistics",
        &expect_ok(fixture.store.read_order_statistics(&path_filter("/"), None, fixture.now).await),
    );
}
