//! A copy writes the same keys as a node would have.

use pointsman_core::store::{Ending, TaskFilter};
use pointsman_store_conformance::moving::{Lair as _, apart, fill, plan};
use pointsman_store_conformance::world::*;

use crate::key_dump::assert_same_keys;
use crate::store_location::{CopyHarness, StoreKind, StoreLocation, run_command};

/// Fills a store on Redis, moves it on along other kinds of places, and answers where it was and where it came to.
async fn copy_along(way: &[StoreKind]) -> (StoreLocation, StoreLocation) {
    let harness = CopyHarness::along(way);
    let mut world = World::new(&harness, plan()).await;
    fill(&mut world).await;
    for name in ["shop/orders", "shop/customers"] {
        world.run(name).await;
    }
    for task in world.claim_for(&["shop"], 1).await {
        let logs = vec![line(world.now, "begun"), line(world.later(1), "half")];
        world.end(Ending { logs, ..ending(&task, failed()) }).await.unwrap();
    }
    let first = harness.leave();
    let mut from = first.clone();
    for kind in &way[1..] {
        let to = StoreLocation::empty(*kind).await;
        assert_eq!(from.move_to(&to).await.unwrap().differences(), []);
        from = to;
    }
    (first, from)
}

#[tokio::test]
async fn keys_are_unchanged_after_a_round_trip_through_sqlite() {
    let (first, last) = copy_along(&[StoreKind::Redis, StoreKind::Sqlite, StoreKind::Redis]).await;
    apart(move || assert!(assert_same_keys(first.prefix(), last.prefix(), &[]) > 50)).await;
}

#[tokio::test]
async fn keys_are_unchanged_after_a_copy_within_redis() {
    let (first, last) = copy_along(&[StoreKind::Redis, StoreKind::Redis]).await;
    apart(move || assert!(assert_same_keys(first.prefix(), last.prefix(), &[]) > 50)).await;
}

#[tokio::test]
async fn copy_writes_the_documented_keys() {
    let harness = CopyHarness::along(&[StoreKind::Sqlite]);
    let mut world = World::new(&harness, plan()).await;
    fill(&mut world).await;
    let last = world.extent().await.head;
    let run =
        world.tasks(&TaskFilter::default()).await.into_iter().find(|task| task.id.as_str().contains("shop"));
    let run = run.unwrap();
    let noted = world.tasks(&TaskFilter::default()).await;
    let mut logged = None;
    for task in &noted {
        let messages = world.messages(&task.id).await;
        if !messages.is_empty() {
            logged = Some((task.id.clone(), messages.len()));
        }
    }
    let (logged, lines) = logged.unwrap();
    let object = world.emit(event("report").key("daily")).await;
    assert!(object.id > last);
    let (file, keys) = (harness.leave(), StoreLocation::empty_redis());
    file.move_to(&keys).await.unwrap();
    apart(move || {
        assert_eq!(run_command(&["GET", &keys.key("next.event.id")]).text(), Some(object.id.to_string()));
        assert_eq!(
            run_command(&["GET", &keys.key("daily:last.event.id")]).text(),
            Some(object.id.to_string())
        );
        let hash = keys.key(&format!("sync_tasks#{}", run.id));
        assert_eq!(run_command(&["HGET", &hash, "id"]).text(), Some(run.id.to_string()));
        assert_eq!(run_command(&["HGET", &hash, "source"]).text().as_deref(), Some("shop"));
        let index = keys.key("sync_tasks_index:source#shop:collection#orders");
        assert!(!run_command(&["ZRANGE", &index, "0", "-1"]).texts().is_empty());
        let log = keys.key(&format!("sync_tasks#{logged}:logs"));
        assert_eq!(run_command(&["ZCARD", &log]).number(), Some(lines as i64));
    })
    .await;
}
