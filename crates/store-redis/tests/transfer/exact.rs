//! What a move leaves on Redis is what a node would have written there, key by key.

use pointsman_core::store::{Ending, TaskFilter};
use pointsman_store_conformance::moving::{Lair as _, apart, fill, plan};
use pointsman_store_conformance::world::*;

use crate::keys::assert_exact;
use crate::lair::{Kind, Lair, Movers, say};

/// Fills a store on Redis, moves it on along other kinds of places, and answers where it was and where it came to.
async fn round(way: &[Kind]) -> (Lair, Lair) {
    let movers = Movers::along(way);
    let mut world = World::new(&movers, plan()).await;
    fill(&mut world).await;
    for name in ["shop/orders", "shop/customers"] {
        world.run(name).await;
    }
    for task in world.claim_for(&["shop"], 1).await {
        let logs = vec![line(world.now, "begun"), line(world.later(1), "half")];
        world.end(Ending { logs, ..ending(&task, failed()) }).await.unwrap();
    }
    let first = movers.leave();
    let mut from = first.clone();
    for kind in &way[1..] {
        let to = Lair::empty(*kind).await;
        assert_eq!(from.move_to(&to).await.unwrap().differences(), []);
        from = to;
    }
    (first, from)
}

#[tokio::test]
async fn keys_are_the_same_when_a_store_has_been_in_a_file() {
    let (first, last) = round(&[Kind::Keys, Kind::File, Kind::Keys]).await;
    apart(move || assert!(assert_exact(first.prefix(), last.prefix(), &[]) > 50)).await;
}

#[tokio::test]
async fn keys_are_the_same_when_a_store_was_moved_on_redis() {
    let (first, last) = round(&[Kind::Keys, Kind::Keys]).await;
    apart(move || assert!(assert_exact(first.prefix(), last.prefix(), &[]) > 50)).await;
}

#[tokio::test]
async fn the_keys_of_the_documents_are_there() {
    let movers = Movers::along(&[Kind::File]);
    let mut world = World::new(&movers, plan()).await;
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
    let (file, keys) = (movers.leave(), Lair::keys());
    file.move_to(&keys).await.unwrap();
    apart(move || {
        assert_eq!(say(&["GET", &keys.key("next.event.id")]).text(), Some(object.id.to_string()));
        assert_eq!(say(&["GET", &keys.key("daily:last.event.id")]).text(), Some(object.id.to_string()));
        let hash = keys.key(&format!("sync_tasks#{}", run.id));
        assert_eq!(say(&["HGET", &hash, "id"]).text(), Some(run.id.to_string()));
        assert_eq!(say(&["HGET", &hash, "source"]).text().as_deref(), Some("shop"));
        let index = keys.key("sync_tasks_index:source#shop:collection#orders");
        assert!(!say(&["ZRANGE", &index, "0", "-1"]).texts().is_empty());
        let log = keys.key(&format!("sync_tasks#{logged}:logs"));
        assert_eq!(say(&["ZCARD", &log]).number(), Some(lines as i64));
    })
    .await;
}
