//! Checks that different views of a store agree with each other.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::journal::Filter;
use pointsman_core::store::{Read, Store, TaskFilter};
use pointsman_core::task::State;
use pointsman_core::{EventId, HandlerName, Status, Tenant};

use crate::fixture::expect_ok;

const PAGE_SIZE: usize = 500;

/// Panics unless `prev` links each object's events, queue counters match the listed tasks, and no two tasks have the
/// same fence. No node may write during the check.
pub async fn assert_store_consistent(store: &dyn Store) {
    assert_prev_links(store).await;
    assert_queue_counts(store).await;
}

async fn assert_prev_links(store: &dyn Store) {
    let (mut last, mut after) = (BTreeMap::new(), expect_ok(store.extent().await).forgotten);
    let whole = after == EventId::ZERO;
    loop {
        let filter = Filter::default();
        let page = expect_ok(
            store.read(Read { after, until: None, filter, limit: PAGE_SIZE, backwards: false }).await,
        );
        let Some(newest) = page.events.last() else { return };
        after = newest.id;
        for event in page.events {
            // Engine events have no `prev` link.
            let is_engines = event.kind.as_str().starts_with(|first: char| first.is_ascii_uppercase());
            let Some(key) = event.key.as_ref().filter(|_| !is_engines) else { continue };
            let before = last.insert((event.tenant.clone(), key.clone()), event.id);
            if whole || before.is_some() {
                assert_eq!(event.prev, before, "{key} of {}: the event before {}", event.tenant, event.id);
            }
        }
    }
}

/// Task counts of a queue: unfinished but not running, scheduled, running, missing.
type ListedCounts = [u64; 4];

async fn assert_queue_counts(store: &dyn Store) {
    let mut told: BTreeMap<(HandlerName, Tenant), ListedCounts> = BTreeMap::new();
    for queue in expect_ok(store.queues(None).await) {
        let counts = told.entry((queue.handler, queue.tenant)).or_default();
        let seen = [queue.ready + queue.waiting, queue.scheduled, queue.running, queue.missing];
        counts.iter_mut().zip(seen).for_each(|(count, more)| *count += more);
    }
    let (mut listed, mut fences): (BTreeMap<_, ListedCounts>, _) = (BTreeMap::new(), BTreeSet::new());
    let mut before = None;
    loop {
        let page = expect_ok(store.tasks(TaskFilter::default(), before, PAGE_SIZE).await);
        for task in page.tasks {
            if let State::Locked(lease) = &task.life.state {
                assert!(fences.insert(lease.fence), "two tasks run under the fence {}", lease.fence);
            }
            let column = match task.life.state.status() {
                Status::New => 0,
                Status::Scheduled => 1,
                Status::Locked => 2,
                Status::Missing => 3,
                _ => continue,
            };
            listed.entry((task.handler, task.tenant)).or_default()[column] += 1;
        }
        match page.next {
            None => break,
            next => before = next,
        }
    }
    told.retain(|_, counts| *counts != ListedCounts::default());
    assert_eq!(told, listed, "what queues count, and what is listed: waiting, scheduled, running, missing");
}
