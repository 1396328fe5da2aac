//! More than a page: events keep their numbers, and what is forgotten is forgotten.

use std::sync::Arc;

use pointsman_core::Event;
use pointsman_core::journal::Retention;
use pointsman_core::store::{Ending, Sequenced, TaskFilter};

use super::{CopyingHarness, StoreLocation};
use crate::Harness;
use crate::fixture::*;

/// More than two pages.
const EVENTS: usize = 10_500;

pub async fn many_events_keep_their_ids_in_the_tested_store<L: StoreLocation>() {
    are_numbered_as_before::<L>(&[L::ELSEWHERE, L::HERE]).await;
}

pub async fn many_events_keep_their_ids_in_the_other_store<L: StoreLocation>() {
    are_numbered_as_before::<L>(&[L::HERE, L::ELSEWHERE]).await;
}

async fn are_numbered_as_before<L: StoreLocation>(way: &[L::Kind]) {
    let movers = CopyingHarness::<L>::along(way);
    let many = LargeStore::new(&movers).await.moved().await;
    many.forgets().await;
    many.goes_on().await;
}

/// A store with many events, which have all been worked off but for one that waits. The oldest are forgotten.
#[derive(Debug)]
pub struct LargeStore<'h> {
    pub world: StoreFixture<'h>,
    waiting: Sequenced,
    events: Vec<Arc<Event>>,
}

impl<'h> LargeStore<'h> {
    pub async fn new(harness: &'h dyn Harness) -> Self {
        let plan = RegistrationBuilder::default()
            .route("bulk", &["loose"])
            .route("record", &["index"])
            .unordered("loose");
        let world = StoreFixture::new(harness, plan).await;
        let waiting = world.emit(new_event("record").with_key("r")).await;
        world.pause("index").await;
        run_many(&world).await;
        world.prune(newest(7_000), newest(8_000)).await;
        let events = world.read_all_events().await;
        assert!(events.len() >= 7_000 && events.len() < 8_000, "{}", events.len());
        Self { world, waiting, events }
    }

    /// Everything is there after a move.
    pub async fn moved(self) -> Self {
        let Self { world, waiting, events } = self;
        let tasks = world.list_tasks(&TaskFilter::default()).await;
        let world = world.reopen().await;
        assert_eq!(world.read_all_events().await, events);
        assert_eq!(world.list_tasks(&TaskFilter::default()).await, tasks);
        Self { world, waiting, events }
    }

    /// The newest stay, and what waits.
    pub async fn forgets(&self) {
        let Self { world, events, .. } = self;
        world.prune(newest(2_000), newest(1_500)).await;
        let left = world.read_all_events().await;
        assert!(left.len() >= 2_000 && left.len() < 3_000 && events.ends_with(&left), "{}", left.len());
        self.keeps_what_it_has().await;
    }

    /// What waited has its event, and runs.
    pub async fn goes_on(self) {
        self.keeps_what_it_has().await;
        assert!(self.world.resume("index").await);
        assert_eq!(
            event_ids_of(&self.world.run_all_ready().await),
            [self.waiting.id],
            "its event was kept for it"
        );
    }

    async fn keeps_what_it_has(&self) {
        let tasks = self.world.list_tasks(&TaskFilter::default()).await;
        assert_eq!(tasks.len(), 1_501, "the waiting one stays");
        assert_eq!(self.world.log_messages(&tasks[0].id).await, ["begun", "done"]);
        assert_eq!(self.world.read_task(&self.waiting.tasks[0]).await.seq.0, 1);
    }
}

fn newest(count: u64) -> Retention {
    Retention { count, ..KEEP_EVERYTHING }
}

/// Emits to as many objects and, now and then, to none, and lets all that is ready end.
async fn run_many(world: &StoreFixture<'_>) {
    for batch in 0..EVENTS / 500 {
        let bulk = new_event("bulk").with_value(&batch.to_string());
        let mut events: Vec<_> = (0..500).map(|n| bulk.clone().with_key(&format!("o{batch}-{n}"))).collect();
        events.push(bulk);
        world.emit_together(events).await;
    }
    loop {
        let tasks = world.claim(500).await;
        if tasks.is_empty() {
            return;
        }
        let ending = |task| {
            let logs = vec![info_line(world.now, "begun"), info_line(world.now, "done")];
            Ending { logs, ..attempt_ending(task, success()) }
        };
        world.finish_attempts(tasks.iter().map(ending).collect()).await;
    }
}
