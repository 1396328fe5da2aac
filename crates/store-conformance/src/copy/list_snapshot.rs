//! All that a store tells.

use std::fmt::Debug;

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeId, TaskFilter};

use crate::fixture::*;

const OBJECTS: [&str; 7] = ["r0", "r1", "r2", "n0", "n1", "b", "a1"];
const SCHEDULES: [&str; 3] = ["nightly", "shop/orders", "held"];

/// Lists by name, as text. Of nodes, those up to this one.
pub(super) async fn snapshot_lists(fixture: &StoreFixture<'_>, node: NodeId) -> Vec<(String, String)> {
    let mut told = ListSnapshot::default();
    add_registry(fixture, node, &mut told).await;
    add_journal(fixture, &mut told).await;
    add_tasks(fixture, &mut told).await;
    add_orders(fixture, &mut told).await;
    for name in SCHEDULES {
        told.add(&format!("fires of {name}"), &fixture.list_fires(name).await);
    }
    told.lists
}

/// Tells which lists are not the same.
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
    /// What not every store can keep is told as those say it that cannot.
    fn add(&mut self, name: &str, list: &impl Debug) {
        self.lists.push((name.into(), format!("{list:#?}").replace("\\0", "\u{FFFD}")));
    }
}

async fn add_registry(fixture: &StoreFixture<'_>, node: NodeId, told: &mut ListSnapshot) {
    told.add("registration", &expect_ok(fixture.store.registration().await));
    told.add("registrants", &expect_ok(fixture.store.registrants().await));
    let mut nodes = expect_ok(fixture.store.nodes().await);
    nodes.retain(|other| other.id <= node);
    nodes.iter_mut().filter(|node| !node.gone).for_each(|node| node.heard = Timestamp::MIN);
    told.add("nodes", &nodes);
    told.add("rules", &expect_ok(fixture.store.rules().await));
    let mut queues = expect_ok(fixture.store.queues(None).await);
    queues.sort_by_key(|queue| (queue.handler.clone(), queue.tenant.clone(), queue.of.text()));
    told.add("queues", &queues);
    told.add("deeds", &expect_ok(fixture.store.deeds(None, 100).await));
}

async fn add_journal(fixture: &StoreFixture<'_>, told: &mut ListSnapshot) {
    told.add("extent", &fixture.journal_extent().await);
    let events = fixture.read_all_events().await;
    told.add("journal", &events);
    for event in &events {
        told.add(&format!("event {}", event.id), &expect_ok(fixture.store.event(event.id).await));
    }
    for name in OBJECTS {
        for of in ["default", "acme"] {
            let object = expect_ok(fixture.store.object(&tenant(of), &object_key(name), 100).await);
            told.add(&format!("object {name} of {of}"), &object);
        }
    }
}

async fn add_tasks(fixture: &StoreFixture<'_>, told: &mut ListSnapshot) {
    let tasks = fixture.list_tasks(&TaskFilter::default()).await;
    told.add("tasks", &tasks);
    for task in tasks {
        told.add(&format!("task {}", task.id), &fixture.read_task(&task.id).await);
        told.add(&format!("logs of {}", task.id), &fixture.read_logs(&task.id).await);
    }
}

async fn add_orders(fixture: &StoreFixture<'_>, told: &mut ListSnapshot) {
    told.add("chains", &expect_ok(fixture.store.chains().await));
    told.add("orders", &fixture.list_orders("/").await);
    told.add(
        "statistics",
        &expect_ok(fixture.store.order_statistics(&path_filter("/"), None, fixture.now).await),
    );
}
