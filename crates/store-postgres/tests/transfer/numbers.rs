//! More than a page: events keep their numbers, and what is kept in slices is forgotten by slices.

use pointsman_core::journal::Retention;
use pointsman_core::store::{Ending, Store, TaskFilter};
use pointsman_store_conformance::world::*;
use pointsman_store_postgres::Postgres;

use crate::house::connect;
use crate::lair::{Lair, Movers};

const SLICE: i64 = 1000;
/// More than two pages.
const EVENTS: usize = 10_500;

fn newest(count: u64) -> Retention {
    Retention { count, ..EVERYTHING }
}

/// Emits so many, and lets all that is ready end, some after a failure.
async fn run_many(world: &World<'_>, count: usize) {
    for batch in 0..count / 500 {
        world.emit_many(500, event("bulk").value(&batch.to_string())).await;
    }
    loop {
        let tasks = world.claim(500).await;
        if tasks.is_empty() {
            return;
        }
        let ending = |task| {
            let logs = vec![line(world.now, "done")];
            Ending { logs, ..ending(task, succeeded()) }
        };
        world.end_all(tasks.iter().map(ending).collect()).await;
    }
}

async fn slices(lair: &Lair, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM pg_inherits WHERE inhparent = 'pointsman.{table}'::regclass");
    connect(lair.url()).await.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn many_are_numbered_as_before() {
    let movers = Movers::new();
    let plan = Plan::default().on("bulk", &["loose"]).on("record", &["index"]).free("loose");
    let world = World::new(&movers, plan).await;
    let kept = world.emit(event("record").key("r")).await;
    world.pause("index").await;
    run_many(&world, EVENTS).await;
    world.prune(newest(7_000), newest(8_000)).await;
    let (events, tasks) = (world.read_all().await, world.tasks(&TaskFilter::default()).await);
    assert!(events.len() >= 7_000 && events.len() < 8_000, "{}", events.len());
    // Its slices are of no use to another test.
    let database = Lair::own_database();
    database.open(world.now).await.close();
    let set = format!("INSERT INTO pointsman.meta (name, text) VALUES ('slice', '{SLICE}')");
    connect(database.url()).await.batch_execute(&set).await.unwrap();
    movers.go_next_to(&database);
    let world = world.reopen().await;
    let (journal, history) = (slices(&database, "journal").await, slices(&database, "history").await);
    // One for what is kept though it is forgotten; none for what was forgotten before.
    assert!((8..=10).contains(&journal) && (8..=10).contains(&history), "{journal} {history}");

    assert_eq!(world.read_all().await, events);
    assert_eq!(world.tasks(&TaskFilter::default()).await, tasks);
    world.prune(newest(2_000), newest(1_500)).await;
    let left = world.read_all().await;
    assert!(left.len() >= 2_000 && left.len() < 3_000 && events.ends_with(&left), "{}", left.len());
    let ended = world.tasks(&TaskFilter::default()).await;
    assert_eq!(ended.len(), 1_501, "the waiting one stays");
    assert_eq!(world.messages(&ended[0].id).await, ["done"]);
    assert_eq!(world.task(&kept.tasks[0]).await.seq.0, 1);

    let sweeper = Postgres::open(database.url(), world.now).await.unwrap();
    sweeper.sweep().await.unwrap();
    sweeper.close();
    assert!(slices(&database, "journal").await <= journal - 4);
    for table in ["history", "attempt", "log"] {
        assert!(slices(&database, table).await <= history - 4, "{table}");
    }
    assert_eq!(world.messages(&ended[0].id).await, ["done"]);
    assert!(world.resume("index").await);
    assert_eq!(events_of(&world.run_all().await), [kept.id], "its event was kept for it");
}
