//! Runs that end by themselves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use pointsman_core::store::Registry;
use pointsman_engine::{Bound, Outcome};

fn bounded(diary: &Diary, handlers: &[&str], max_events: u64) -> House {
    let mut house = House::default()
        .slots(4)
        .handler("one", noting(diary))
        .handler("other", noting(diary))
        .route("a", "one")
        .route("b", "other");
    house.settings.bound = Some(Bound { handlers: handlers.iter().map(|h| name(h)).collect(), max_events });
    house
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_attempts_begin_than_were_asked_for() {
    let (store, diary) = (store(), Diary::default());
    let engine = bounded(&diary, &[], 25).start(&store).await;
    // Some are there before, and some are claimed as they are made.
    for round in 0..20 {
        let events = (0..5).map(|number| event("a", &format!("k{round}-{number}"))).collect();
        emit(&engine, events).await;
    }
    soon("the bound", engine.bound_reached()).await;
    assert_eq!(diary.read().len(), 25);
    engine.stop(PATIENCE).await;
    assert_eq!(diary.read().len(), 25);
    let queues = store.queues().await.unwrap();
    let left: u64 = queues.iter().map(|queue| queue.ready + queue.scheduled + queue.running).sum();
    assert_eq!(left, 75);
}

#[tokio::test]
async fn only_the_named_handlers_are_run() {
    let (store, diary) = (store(), Diary::default());
    let engine = bounded(&diary, &["other"], 3).start(&store).await;
    let mut watcher = Watcher::of(&engine);
    emit(&engine, (0..4).map(|number| event("a", &format!("k{number}"))).collect()).await;
    emit(&engine, (0..3).map(|number| event("b", &format!("k{number}"))).collect()).await;
    watcher.ended(3).await;
    soon("the bound", engine.bound_reached()).await;
    assert_eq!(diary.read(), ["other"; 3]);
    let nodes = store.nodes().await.unwrap();
    assert_eq!(nodes[0].abilities.handlers, [name("other")].into());
    engine.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_failure_that_is_tried_again_counts_twice() {
    let (store, diary) = (store(), Diary::default());
    let noted = diary.clone();
    let mut house = House::default()
        .handler("h", move |_| {
            noted.note("ran");
            async { Outcome::failed("again") }
        })
        .route("a", "h");
    house.settings.bound = Some(Bound { handlers: Default::default(), max_events: 2 });
    let engine = house.start(&store).await;
    emit(&engine, vec![event("a", "x")]).await;
    soon("the bound", engine.bound_reached()).await;
    assert_eq!(diary.read().len(), 2);
    engine.stop(PATIENCE).await;
}
