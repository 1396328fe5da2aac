//! What is not moved, and what is not moved to.

use std::time::SystemTime;

use pointsman_core::Timestamp;
use pointsman_core::store::{Registry, Store, StoreError};
use pointsman_store::transfer::{MoveError, NotReady, transfer};
use pointsman_store_conformance::moving::Before;
use pointsman_store_conformance::world::*;
use pointsman_store_redis::{OpenError, Redis, RedisMove};
use pointsman_testing::{Redis as Server, RedisSettings};

use crate::cut::{filled, move_pages};
use crate::lair::{Kind, Lair, Movers, apart, say};

async fn with_a_handler(lair: &Lair) {
    let store = lair.open(BEGINNING).await;
    must(store.register(Plan::simple().registration(), BEGINNING).await);
    store.close();
}

async fn cut_off(from: &Lair, to: &Lair) {
    let (from, to) = (from.clone(), to.clone());
    apart(move || move_pages(&from, &to, 3)).await.unwrap_err();
}

#[tokio::test]
async fn a_target_that_is_not_empty_says_what_is_in_it() {
    let (_movers, source) = filled(&[Kind::File]).await;
    let target = Lair::keys();
    with_a_handler(&target).await;
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(&error, MoveError::NotEmpty(what) if what.contains("handlers (1)")), "{error}");
    let target = Lair::keys();
    apart({
        let target = target.clone();
        move || say(&["LPUSH", &target.key("order:1:events"), "{}", "{}"])
    })
    .await;
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(&error, MoveError::NotEmpty(what) if what == "outbox (2)"), "{error}");
    source.move_to(&Lair::keys()).await.unwrap();
}

#[tokio::test]
async fn what_was_moved_is_told_apart_from_what_is_there_otherwise() {
    let (_movers, source) = filled(&[Kind::File]).await;
    let target = Lair::keys();
    source.move_to(&target).await.unwrap();
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(error, MoveError::Done), "{error}");
}

#[tokio::test]
async fn keys_of_the_documents_are_not_written_over_and_others_may_be_there() {
    let (_movers, source) = filled(&[Kind::File]).await;
    for key in [
        "order:1:last.event.id",
        "next.event.id",
        "sync_tasks#a:b:c",
        "sync_tasks_index:source#a:collection#b",
        "event.worker:w:heartbeat",
        "pointsman:journal",
    ] {
        let target = Lair::keys();
        let error = apart(move || {
            say(&["SET", &target.key(key), "1"]);
            RedisMove::target(&target.url()).map(drop).unwrap_err()
        });
        let error = error.await;
        let named =
            |at: &OpenError| matches!(at, OpenError::NotOurs { key: found, .. } if found.ends_with(key));
        assert!(matches!(&error, NotReady::Unopened(open) if named(open)), "{key}: {error}");
    }
    let target = Lair::keys();
    let foreign = target.key("session:1");
    apart({
        let foreign = foreign.clone();
        move || say(&["SET", &foreign, "theirs"])
    })
    .await;
    source.move_to(&target).await.unwrap();
    apart(move || assert_eq!(say(&["GET", &foreign]).text().as_deref(), Some("theirs"))).await;
}

#[tokio::test]
async fn a_server_that_joins_at_the_target_is_noticed_before_anything_is_mixed() {
    let (_movers, source) = filled(&[Kind::File]).await;
    for (at, joins) in [(1, true), (5, false)] {
        let target = Lair::keys();
        let store = target.open(BEGINNING).await;
        let runtime = tokio::runtime::Handle::current();
        let (from, to, server) = (source.clone(), target.clone(), store.clone());
        let moved = apart(move || {
            let mut pages = 0;
            let page = move || {
                pages += 1;
                // Once the move has begun, a server that was there before finds only a part of a store.
                if pages == at {
                    let joined = runtime.block_on(server.join("meanwhile", BEGINNING));
                    assert_eq!(joined.is_ok(), joins, "{joined:?}");
                }
                Ok(())
            };
            let mut target = Before { target: to.target(), page };
            transfer(&mut *from.source(), &mut target, &mut |_| {})
        });
        let moved = moved.await;
        assert_eq!(matches!(moved, Err(MoveError::Disturbed)), joins, "{moved:?}");
        assert!(joins || moved.unwrap().differences().is_empty());
        store.close();
    }
}

#[tokio::test]
async fn a_move_goes_on_from_the_same_source_only() {
    let (movers, source) = filled(&[Kind::File]).await;
    let (other, target) = (movers.file(), Lair::keys());
    with_a_handler(&other).await;
    cut_off(&source, &target).await;
    let error = other.move_to(&target).await.unwrap_err();
    assert!(matches!(error, MoveError::Another), "{error}");
    let error = target.move_to(&movers.file()).await.unwrap_err();
    assert!(matches!(error, MoveError::Part), "{error}");
}

#[tokio::test]
async fn a_source_that_was_used_in_between_is_moved_anew() {
    let (movers, source) = filled(&[Kind::Keys]).await;
    let target = movers.file();
    cut_off(&source, &target).await;
    let store = source.open(BEGINNING).await;
    must(store.join("again", BEGINNING).await);
    store.close();
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(error, MoveError::Changed), "{error}");
}

#[tokio::test]
async fn a_source_that_is_written_to_meanwhile_is_not_moved() {
    let (movers, source) = filled(&[Kind::Keys]).await;
    let target = movers.file();
    let store = source.open(BEGINNING).await;
    let (runtime, writer) = (tokio::runtime::Handle::current(), store.clone());
    let moved = apart(move || {
        let mut written = false;
        let page = move || match std::mem::replace(&mut written, true) {
            true => Ok(()),
            false => runtime.block_on(writer.join("meanwhile", BEGINNING)).map(drop),
        };
        let mut target = Before { target: target.target(), page };
        transfer(&mut *source.source(), &mut target, &mut |_| {})
    });
    let error = moved.await.unwrap_err();
    assert!(matches!(error, MoveError::Written), "{error}");
    store.close();
}

#[tokio::test]
async fn what_a_server_has_is_in_use() {
    let keys = Lair::keys();
    let now = Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
    let store = Redis::open(&keys.url(), now).await.unwrap();
    let node = store.join("server-1", now).await.unwrap();
    for open in [RedisMove::source, RedisMove::target] {
        let url = keys.url();
        let error = apart(move || open(&url).map(drop).unwrap_err()).await;
        assert!(matches!(&error, NotReady::InUse { nodes, .. } if nodes == "server-1"), "{error}");
        let told = error.to_string();
        assert!(told.contains("stop the servers first") && told.contains("gone a minute after"), "{error}");
    }
    store.leave(node, now).await.unwrap();
    store.close();
    for open in [RedisMove::source, RedisMove::target] {
        let url = keys.url();
        apart(move || drop(open(&url).unwrap())).await;
    }
}

#[tokio::test]
async fn where_there_is_no_store_nothing_is_made() {
    let keys = Lair::keys();
    apart(move || {
        let error = RedisMove::source(&keys.url()).map(drop).unwrap_err();
        assert!(matches!(error, NotReady::NoStore(_)), "{error}");
        assert_eq!(say(&["KEYS", &keys.key("*")]).texts(), [""; 0]);
        let error = RedisMove::source("redis://ann:s3cret@127.0.0.1:1/").map(drop).unwrap_err();
        assert!(matches!(&error, NotReady::Unopened(OpenError::Unreachable { .. })), "{error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_server_is_not_filled_beyond_what_it_may_use() {
    let movers = Movers::along(&[Kind::File]);
    let world = World::new(&movers, Plan::default()).await;
    let large = format!("\"{}\"", "x".repeat(500_000));
    for _ in 0..100 {
        world.emit(event("bulk").value(&large)).await;
    }
    let file = movers.leave();
    let server = Server::start(RedisSettings::with(&[("maxmemory", "32mb")])).unwrap();
    let (url, from) = (server.url(), file.clone());
    let moved =
        apart(move || transfer(&mut *from.source(), &mut RedisMove::target(&url).unwrap(), &mut |_| {}));
    let error = moved.await.unwrap_err();
    let told = matches!(&error, MoveError::Target(StoreError::Unavailable(what)) if what.contains("raise maxmemory"));
    assert!(told, "{error:?}");
    let url = server.url();
    let report = apart(move || {
        server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        transfer(&mut *file.source(), &mut RedisMove::target(&url).unwrap(), &mut |_| {})
    });
    assert!(report.await.unwrap().differences().is_empty());
}
