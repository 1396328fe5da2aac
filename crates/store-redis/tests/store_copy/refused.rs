//! Sources and targets that are refused.

use pointsman_core::store::StoreError;
use pointsman_store::transfer::{MoveError, NotReady, transfer};
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_conformance::world::*;
use pointsman_store_redis::{OpenError, RedisStoreCopy};
use pointsman_testing::{Redis as Server, RedisSettings};

use crate::store_location::{CopyHarness, StoreKind, StoreLocation, run_command};

#[tokio::test]
async fn target_with_outbox_events_is_not_empty() {
    let (source, target) = (StoreLocation::filled(StoreKind::Sqlite).await, StoreLocation::empty_redis());
    apart({
        let target = target.clone();
        move || run_command(&["LPUSH", &target.key("order:1:events"), "{}", "{}"])
    })
    .await;
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(&error, MoveError::NotEmpty(what) if what == "outbox (2)"), "{error}");
}

#[tokio::test]
async fn copy_refuses_documented_keys_and_keeps_foreign_keys() {
    let source = StoreLocation::filled(StoreKind::Sqlite).await;
    for key in [
        "order:1:last.event.id",
        "next.event.id",
        "sync_tasks#a:b:c",
        "sync_tasks_index:source#a:collection#b",
        "event.worker:w:heartbeat",
        "pointsman:journal",
    ] {
        let target = StoreLocation::empty_redis();
        let error = apart(move || {
            run_command(&["SET", &target.key(key), "1"]);
            RedisStoreCopy::target(&target.url()).map(drop).unwrap_err()
        });
        let error = error.await;
        let named =
            |at: &OpenError| matches!(at, OpenError::ForeignKey { key: found, .. } if found.ends_with(key));
        assert!(matches!(&error, NotReady::Unopened(open) if named(open)), "{key}: {error}");
    }
    let target = StoreLocation::empty_redis();
    let foreign = target.key("session:1");
    apart({
        let foreign = foreign.clone();
        move || run_command(&["SET", &foreign, "theirs"])
    })
    .await;
    source.move_to(&target).await.unwrap();
    apart(move || assert_eq!(run_command(&["GET", &foreign]).text().as_deref(), Some("theirs"))).await;
}

#[tokio::test]
async fn missing_source_creates_no_keys() {
    let keys = StoreLocation::empty_redis();
    apart(move || {
        let error = RedisStoreCopy::source(&keys.url()).map(drop).unwrap_err();
        assert!(matches!(error, NotReady::NoStore(_)), "{error}");
        assert_eq!(run_command(&["KEYS", &keys.key("*")]).texts(), [""; 0]);
        let error = RedisStoreCopy::source("redis://ann:s3cret@127.0.0.1:1/").map(drop).unwrap_err();
        assert!(matches!(&error, NotReady::Unopened(OpenError::Unreachable { .. })), "{error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn copy_stops_when_memory_is_full() {
    let harness = CopyHarness::along(&[StoreKind::Sqlite]);
    let world = World::new(&harness, Plan::default()).await;
    let large = format!("\"{}\"", "x".repeat(500_000));
    for _ in 0..100 {
        world.emit(event("bulk").value(&large)).await;
    }
    let file = harness.leave();
    let server = Server::start(RedisSettings::with(&[("maxmemory", "32mb")])).unwrap();
    let (url, from) = (server.url(), file.clone());
    let moved =
        apart(move || transfer(&mut *from.source(), &mut RedisStoreCopy::target(&url).unwrap(), &mut |_| {}));
    let error = moved.await.unwrap_err();
    let told = matches!(&error, MoveError::Target(StoreError::Unavailable(what)) if what.contains("raise maxmemory"));
    assert!(told, "{error:?}");
    let url = server.url();
    let report = apart(move || {
        server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        transfer(&mut *file.source(), &mut RedisStoreCopy::target(&url).unwrap(), &mut |_| {})
    });
    assert!(report.await.unwrap().differences().is_empty());
}
