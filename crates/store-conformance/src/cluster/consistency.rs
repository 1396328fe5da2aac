//! Checks that different views of a store agree with each other.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{JournalQuery, Store, TaskFilter};
use pointsman_core::task::TaskState;
use pointsman_core::{EventId, HandlerName, TaskStatus, Tenant};

use crate::fixture::expect_ok;

const PAGE_SIZE: usize = 500;

/// Panics unless `prev` links each object's events, queue counters match the listed tasks, and no two tasks have the
/// same fence. No node may write during the check.
pub async fn assert_store_consistent(store: &dyn Store) {
    assert_prev_links(store).await;
    assert_queue_counts_and_fences(store).await;
}

async fn assert_prev_links(store: &dyn Store) {
    let (mut last, mut after) =
        (BTreeMap::new(), expect_ok(store.read_journal_range().await).last_expired_event_id);
    let nothing_expired = after == EventId::ZERO;
    loop {
        let filter = EventFilter::default();
        let page = expect_ok(
            store
                .read_events(JournalQuery {
                    after_event_id: after,
                    up_to_event_id: None,
                    filter,
                    limit: PAGE_SIZE,
                    backwards: false,
                })
                .await,
        );
        let Some(newest) = page.events.last() else { return };
        after = newest.id;
        for event in page.events {
            // Engine events have no `prev` link.
            let is_engine_event =
                event.event_type.as_str().starts_with(|first: char| first.is_ascii_uppercase());
            let Some(key) = event.key.as_ref().filter(|_| !is_engine_event) else { continue };
            let before = last.insert((event.tenant.clone(), key.clone()), event.id);
            if nothing_expired || before.is_some() {
                assert_eq!(event.prev, before, "{key} of {}: the event before {}", event.tenant, event.id);
            }
        }
    }
}

/// Task counts of a queue: unfinished but not running, scheduled, running, missing.
type QueueTaskCounts = [u64; 4];

async fn assert_queue_counts_and_fences(store: &dyn Store) {
    let mut counted: BTreeMap<(HandlerName, Tenant), QueueTaskCounts> = BTreeMap::new();
    for queue in expect_ok(store.list_queues(None).await) {
        let counts = counted.entry((queue.handler, queue.tenant)).or_default();
        let view_counts = [
            queue.ready_count + queue.waiting_count,
            queue.scheduled_count,
            queue.running_count,
            queue.missing_count,
        ];
        counts.iter_mut().zip(view_counts).for_each(|(count, more)| *count += more);
    }
    let (mut listed, mut fences): (BTreeMap<_, QueueTaskCounts>, _) = (BTreeMap::new(), BTreeSet::new());
    let mut before = None;
    loop {
        let page = expect_ok(store.list_tasks(TaskFilter::default(), before, PAGE_SIZE).await);
        for task in page.tasks {
            if let TaskState::Locked(lease) = &task.lifecycle.state {
                assert!(fences.insert(lease.fence), "two tasks run under the fence {}", lease.fence);
            }
            let column = match task.lifecycle.state.status() {
                TaskStatus::New => 0,
                TaskStatus::Scheduled => 1,
                TaskStatus::Locked => 2,
                TaskStatus::Missing => 3,
                _ => continue,
            };
            listed.entry((task.handler, task.tenant)).or_default()[column] += 1;
        }
        match page.next_cursor {
            None => break,
            next => before = next,
        }
    }
    counted.retain(|_, counts| *counts != QueueTaskCounts::default());
    assert_eq!(
        counted, listed,
        "queue counters differ from the listed tasks: waiting, scheduled, running, missing"
    );
}
