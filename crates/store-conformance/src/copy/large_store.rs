//! More than a page: events keep their numbers, and what is forgotten is forgotten.

use std::sync::Arc;

use pointsman_core::Event;
use pointsman_core::journal::Retention;
use pointsman_core::store::{Ending, Sequenced, TaskFilter};

use super::{CopyingHarness, StoreLocation};
use crate::Harness;
use crate::fixture::*;

/// More than two pages.
const EVENT_COUNT: usize = 10_500;

pub async fn many_events_keep_their_ids_in_the_tested_store<L: StoreLocation>() {
    assert_ids_survive_copy::<L>(&[L::ELSEWHERE, L::HERE]).await;
}

pub async fn many_events_keep_their_ids_in_the_other_store<L: StoreLocation>() {
    assert_ids_survive_copy::<L>(&[L::HERE, L::ELSEWHERE]).await;
}

async fn assert_ids_survive_copy<L: StoreLocation>(way: &[L::Kind]) {
    let movers = CopyingHarness::<L>::along(way);
    let many = LargeStore::new(&movers).await.moved().await;
    many.forgets().await;
    many.goes_on().await;
}

/// A store with many events, which have all been worked off but for one that waits. The oldest are forgotten.
#[derive(Debug)]
pub struct LargeStore<'h> {
    pub fixture: StoreFixture<'h>,
    waiting: Sequenced,
    events: Vec<Arc<Event>>,
}

impl<'h> LargeStore<'h> {
    pub async fn new(harness: &'h dyn Harness) -> Self {
        let registration = RegistrationBuilder::default()
            .route("bulk", &["loose"])
            .route("record", &["index"])
            .unordered("loose");
        let fixture = StoreFixture::new(harness, registration).await;
        let waiting = fixture.emit(new_event("record").with_key("r")).await;
        fixture.pause("index").await;
        emit_and_run_many(&fixture).await;
        fixture.prune(keep_newest(7_000), keep_newest(8_000)).await;
        let events = fixture.read_all_events().await;
        assert!(events.len() >= 7_000 && events.len() < 8_000, "{}", events.len());
        Self { fixture, waiting, events }
    }

    /// Everything is there after a move.
    pub async fn moved(self) -> Self {
        let Self { fixture, waiting, events } = self;
        let tasks = fixture.list_tasks(&TaskFilter::default()).await;
        let fixture = fixture.reopen().await;
        assert_eq!(fixture.read_all_events().await, events);
        assert_eq!(fixture.list_tasks(&TaskFilter::default()).await, tasks);
        Self { fixture, waiting, events }
    }

    /// The newest stay, and what waits.
    pub async fn forgets(&self) {
        let Self { fixture, events, .. } = self;
        fixture.prune(keep_newest(2_000), keep_newest(1_500)).await;
        let left = fixture.read_all_events().await;
        assert!(left.len() >= 2_000 && left.len() < 3_000 && events.ends_with(&left), "{}", left.len());
        self.keeps_what_it_has().await;
    }

    /// What waited has its event, and runs.
    pub async fn goes_on(self) {
        self.keeps_what_it_has().await;
        assert!(self.fixture.resume("index").await);
        assert_eq!(
            event_ids_of(&self.fixture.run_all_ready().await),
            [self.waiting.id],
            "its event was kept for it"
        );
    }

    async fn keeps_what_it_has(&self) {
        let tasks = self.fixture.list_tasks(&TaskFilter::default()).await;
        assert_eq!(tasks.len(), 1_501, "the waiting one stays");
        assert_eq!(self.fixture.log_messages(&tasks[0].id).await, ["begun", "done"]);
        assert_eq!(self.fixture.read_task(&self.waiting.tasks[0]).await.seq.0, 1);
    }
}

fn keep_newest(count: u64) -> Retention {
    Retention { count, ..KEEP_EVERYTHING }
}

/// Emits to as many objects and, now and then, to none, and lets all that is ready end.
async fn emit_and_run_many(fixture: &StoreFixture<'_>) {
    for batch in 0..EVENT_COUNT / 500 {
        let bulk = new_event("bulk").with_value(&batch.to_string());
        let mut events: Vec<_> = (0..500).map(|n| bulk.clone().with_key(&format!("o{batch}-{n}"))).collect();
        events.push(bulk);
        fixture.emit_together(events).await;
    }
    loop {
        let tasks = fixture.claim(500).await;
        if tasks.is_empty() {
            return;
        }
        let ending = |task| {
            let logs = vec![info_line(fixture.now, "begun"), info_line(fixture.now, "done")];
            Ending { logs, ..attempt_ending(task, success()) }
        };
        fixture.finish_attempts(tasks.iter().map(ending).collect()).await;
    }
}
