//! What a move leaves on Redis is what a node would have written there, key by key.

use std::collections::BTreeMap;

use pointsman_core::store::{Ending, TaskFilter};
use pointsman_store_conformance::moving::{Lair as _, apart, fill, plan};
use pointsman_store_conformance::world::*;
use pointsman_testing::Reply;

use crate::lair::{Kind, Lair, Movers, redis, say};

/// All keys of a store, and what each holds, in an order.
fn dump(lair: &Lair) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut redis = redis();
    let mut dumped = BTreeMap::new();
    for key in redis.command(&["KEYS", &format!("{}*", lair.prefix())]).unwrap().texts() {
        let kind = redis.command(&["TYPE", &key]).unwrap().text().unwrap();
        let (words, pairs): (&[&str], bool) = match kind.as_str() {
            "string" => (&["GET", &key], false),
            "hash" => (&["HGETALL", &key], true),
            "zset" => (&["ZRANGE", &key, "0", "-1", "WITHSCORES"], true),
            "stream" => (&["XRANGE", &key, "-", "+"], false),
            "list" => (&["LRANGE", &key, "0", "-1"], false),
            other => panic!("{key} is a {other}"),
        };
        let mut flat = Vec::new();
        flatten(redis.command(words).unwrap(), &mut flat);
        if pairs {
            let mut joined: Vec<Vec<u8>> = flat.chunks(2).map(|pair| pair.join(&b'=')).collect();
            joined.sort();
            flat = joined;
        }
        dumped.insert(key[lair.prefix().len()..].to_string(), flat);
    }
    dumped
}

fn flatten(reply: Reply, into: &mut Vec<Vec<u8>>) {
    match reply {
        Reply::Bytes(bytes) => into.push(bytes),
        Reply::List(list) => list.into_iter().for_each(|reply| flatten(reply, into)),
        Reply::Nil | Reply::Number(_) | Reply::Error(_) => panic!("{reply:?}"),
    }
}

/// What is of the commits, and not of the contents; what of a node is not moved; what is the same as nothing.
fn comparable(lair: &Lair) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut dumped = dump(lair);
    let of_commits = ["pointsman:point", "pointsman:told", "pointsman:touched", "pointsman:nodes"];
    dumped.retain(|key, _| {
        !of_commits.contains(&key.as_str())
            && !key.starts_with("pointsman:turn")
            && !key.starts_with("event.worker:")
    });
    for (name, nothing) in [("pointsman:gaps", &b"=[]"[..]), ("pointsman:counts", &b"=\0\0\0\0\0\0"[..])] {
        if let Some(rows) = dumped.get_mut(name) {
            rows.retain(|row| !row.ends_with(nothing));
        }
    }
    dumped.retain(|_, rows| !rows.is_empty());
    dumped
}

fn assert_exact(before: &Lair, after: &Lair) {
    let (before, after) = (comparable(before), comparable(after));
    let keys = |dumped: &BTreeMap<String, _>| dumped.keys().cloned().collect::<Vec<String>>();
    assert_eq!(keys(&after), keys(&before));
    assert!(after.len() > 50, "{:?}", keys(&after));
    for ((key, before), (_, after)) in before.iter().zip(&after) {
        let text = |rows: &Vec<Vec<u8>>| {
            rows.iter().map(|row| row.escape_ascii().to_string()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(text(after), text(before), "{key}");
    }
}

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
    apart(move || assert_exact(&first, &last)).await;
}

#[tokio::test]
async fn keys_are_the_same_when_a_store_was_moved_on_redis() {
    let (first, last) = round(&[Kind::Keys, Kind::Keys]).await;
    apart(move || assert_exact(&first, &last)).await;
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
