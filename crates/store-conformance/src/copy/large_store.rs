//! Copies of more than one page: events keep their ids, and expired events stay expired.

use std::sync::Arc;

use pointsman_core::Event;
use pointsman_core::journal::Retention;
use pointsman_core::store::{EmittedEventReceipt, FinishedAttempt, TaskFilter};

use super::{CopyOnReopenHarness, StoreLocation};
use crate::Harness;
use crate::fixture::*;

/// The number of events: more than two pages of a copy.
const EVENT_COUNT: usize = 10_500;

pub async fn many_events_keep_their_ids_when_copied_to_the_tested_kind<L: StoreLocation>() {
    assert_ids_survive_copy::<L>(&[L::OTHER_KIND, L::TESTED_KIND]).await;
}

pub async fn many_events_keep_their_ids_when_copied_to_the_other_kind<L: StoreLocation>() {
    assert_ids_survive_copy::<L>(&[L::TESTED_KIND, L::OTHER_KIND]).await;
}

async fn assert_ids_survive_copy<L: StoreLocation>(location_kinds: &[L::Kind]) {
    let harness = CopyOnReopenHarness::<L>::with_location_kinds(location_kinds);
    let large = LargeStore::new(&harness).await.assert_survives_copy().await;
    large.assert_prunes_oldest().await;
    large.assert_waiting_task_runs().await;
}

/// A store with many events, all processed except one that waits. The oldest events have expired.
#[derive(Debug)]
pub struct LargeStore<'h> {
    pub fixture: StoreFixture<'h>,
    waiting_event: EmittedEventReceipt,
    kept_events: Vec<Arc<Event>>,
}

impl<'h> LargeStore<'h> {
    pub async fn new(harness: &'h dyn Harness) -> Self {
        let registration = RegistrationBuilder::default()
            .route("bulk", &["loose"])
            .route("record", &["index"])
            .unordered("loose");
        let fixture = StoreFixture::new(harness, registration).await;
        let waiting_event = fixture.emit(new_event("record").with_key("r")).await;
        fixture.set_pause_rule("index").await;
        emit_and_run_many(&fixture).await;
        fixture.prune_events_and_tasks(retention_by_count(7_000), retention_by_count(8_000)).await;
        let kept_events = fixture.read_all_events().await;
        assert!(kept_events.len() >= 7_000 && kept_events.len() < 8_000, "{}", kept_events.len());
        Self { fixture, waiting_event, kept_events }
    }

    /// Copies the store and asserts that events and tasks are unchanged.
    pub async fn assert_survives_copy(self) -> Self {
        let Self { fixture, waiting_event, kept_events } = self;
        let tasks = fixture.list_tasks(&TaskFilter::default()).await;
        let fixture = fixture.reopen().await;
        assert_eq!(fixture.read_all_events().await, kept_events);
        assert_eq!(fixture.list_tasks(&TaskFilter::default()).await, tasks);
        Self { fixture, waiting_event, kept_events }
    }

    /// Prunes and asserts that the newest events and the waiting task are kept.
    pub async fn assert_prunes_oldest(&self) {
        let Self { fixture, kept_events, .. } = self;
        fixture.prune_events_and_tasks(retention_by_count(2_000), retention_by_count(1_500)).await;
        let left = fixture.read_all_events().await;
        assert!(left.len() >= 2_000 && left.len() < 3_000 && kept_events.ends_with(&left), "{}", left.len());
        self.assert_waiting_task_kept().await;
    }

    /// Asserts that the waiting task still has its event and runs.
    pub async fn assert_waiting_task_runs(self) {
        self.assert_waiting_task_kept().await;
        assert!(self.fixture.lift_pause_rule("index").await);
        assert_eq!(
            event_ids_of_tasks(&self.fixture.run_all_ready_tasks().await),
            [self.waiting_event.id],
            "its event was kept while it waited"
        );
    }

    async fn assert_waiting_task_kept(&self) {
        let tasks = self.fixture.list_tasks(&TaskFilter::default()).await;
        assert_eq!(tasks.len(), 1_501, "the waiting task is kept");
        assert_eq!(self.fixture.read_log_messages(&tasks[0].id).await, ["begun", "done"]);
        assert_eq!(self.fixture.read_task(&self.waiting_event.tasks[0]).await.seq.0, 1);
    }
}

fn retention_by_count(count: u64) -> Retention {
    Retention { max_count: count, ..KEEP_EVERYTHING }
}

/// Emits events of many objects, and some without a key, and runs all ready tasks.
async fn emit_and_run_many(fixture: &StoreFixture<'_>) {
    for batch in 0..EVENT_COUNT / 500 {
        let bulk = new_event("bulk").with_value(&batch.to_string());
        let mut events: Vec<_> = (0..500).map(|n| bulk.clone().with_key(&format!("o{batch}-{n}"))).collect();
        events.push(bulk);
        fixture.emit_in_one_batch(events).await;
    }
    loop {
        let tasks = fixture.claim(500).await;
        if tasks.is_empty() {
            return;
        }
        let attempt = |task| {
            let logs = vec![info_log_line(fixture.now, "begun"), info_log_line(fixture.now, "done")];
            FinishedAttempt { log_lines: logs, ..finished_attempt(task, success()) }
        };
        fixture.finish_attempts(tasks.iter().map(attempt).collect()).await;
    }
}
