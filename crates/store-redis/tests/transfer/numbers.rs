//! More than a page: events keep their numbers, and what is forgotten is forgotten.

use pointsman_core::journal::Retention;
use pointsman_core::store::{Ending, TaskFilter};
use pointsman_store_conformance::world::*;

use crate::lair::{Kind, Movers};

/// More than two pages.
const EVENTS: usize = 10_500;

fn newest(count: u64) -> Retention {
    Retention { count, ..EVERYTHING }
}

/// Emits so many to as many objects, and lets all that is ready end.
async fn run_many(world: &World<'_>, count: usize) {
    for batch in 0..count / 500 {
        let events = (0..500).map(|n| event("bulk").key(&format!("o{batch}-{n}")).value(&batch.to_string()));
        world.emit_all(events.collect()).await;
    }
    loop {
        let tasks = world.claim(500).await;
        if tasks.is_empty() {
            return;
        }
        let ending = |task| {
            let logs = vec![line(world.now, "begun"), line(world.now, "done")];
            Ending { logs, ..ending(task, succeeded()) }
        };
        world.end_all(tasks.iter().map(ending).collect()).await;
    }
}

async fn many_are_numbered_as_before(way: &'static [Kind]) {
    let movers = Movers::along(way);
    let plan = Plan::default().on("bulk", &["loose"]).on("record", &["index"]).free("loose");
    let world = World::new(&movers, plan).await;
    let kept = world.emit(event("record").key("r")).await;
    world.pause("index").await;
    run_many(&world, EVENTS).await;
    world.prune(newest(7_000), newest(8_000)).await;
    let (events, tasks) = (world.read_all().await, world.tasks(&TaskFilter::default()).await);
    assert!(events.len() >= 7_000 && events.len() < 8_000, "{}", events.len());
    let world = world.reopen().await;
    assert_eq!(world.read_all().await, events);
    assert_eq!(world.tasks(&TaskFilter::default()).await, tasks);
    world.prune(newest(2_000), newest(1_500)).await;
    let left = world.read_all().await;
    assert!(left.len() >= 2_000 && left.len() < 3_000 && events.ends_with(&left), "{}", left.len());
    let ended = world.tasks(&TaskFilter::default()).await;
    assert_eq!(ended.len(), 1_501, "the waiting one stays");
    assert_eq!(world.messages(&ended[0].id).await, ["begun", "done"]);
    assert_eq!(world.task(&kept.tasks[0]).await.seq.0, 1);
    assert!(world.resume("index").await);
    assert_eq!(events_of(&world.run_all().await), [kept.id], "its event was kept for it");
}

#[tokio::test]
async fn many_are_numbered_as_before_on_redis() {
    many_are_numbered_as_before(&[Kind::File, Kind::Keys]).await;
}

#[tokio::test]
async fn many_are_numbered_as_before_away_from_redis() {
    many_are_numbered_as_before(&[Kind::Keys, Kind::File]).await;
}
