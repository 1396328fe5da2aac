//! Sources and targets that are refused.

use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;
use pointsman_store::store_copy::{CopyEndpointError, CopyError, copy_store};
use pointsman_store_conformance::copy::{StoreLocation as _, run_blocking};
use pointsman_store_conformance::fixture::*;
use pointsman_store_redis::{OpenError, RedisStoreCopy};
use pointsman_testing::{RedisServer as Server, RedisSettings};

use crate::store_location::{AnyStoreCopyOnReopenHarness, StoreKind, TestStoreLocation, run_redis_command};

#[tokio::test]
async fn target_with_outbox_events_is_not_empty() {
    let (source, target) = (
        TestStoreLocation::create_with_sample_data(StoreKind::Sqlite).await,
        TestStoreLocation::empty_redis(),
    );
    run_blocking({
        let target = target.clone();
        move || run_redis_command(&["LPUSH", &target.prefixed_key("order:1:events"), "{}", "{}"])
    })
    .await;
    let error = source.copy_to(&target).await.unwrap_err();
    assert!(matches!(&error, CopyError::TargetNotEmpty(contents) if contents == "outbox (2)"), "{error}");
}

#[tokio::test]
async fn copy_refuses_documented_keys_and_keeps_foreign_keys() {
    let source = TestStoreLocation::create_with_sample_data(StoreKind::Sqlite).await;
    for key in [
        "order:1:last.event.id",
        "next.event.id",
        "sync_tasks#a:b:c",
        "sync_tasks_index:source#a:collection#b",
        "event.worker:w:heartbeat",
        "pointsman:journal",
    ] {
        let target = TestStoreLocation::empty_redis();
        let error = run_blocking(move || {
            run_redis_command(&["SET", &target.prefixed_key(key), "1"]);
            RedisStoreCopy::open_target(&target.redis_url()).map(drop).unwrap_err()
        });
        let error = error.await;
        let named = |at: &OpenError| matches!(at, OpenError::KeyOfAnotherApplication { key: found, .. } if found.ends_with(key));
        assert!(matches!(&error, CopyEndpointError::OpenFailed(open) if named(open)), "{key}: {error}");
    }
    let target = TestStoreLocation::empty_redis();
    let foreign = target.prefixed_key("session:1");
    run_blocking({
        let foreign = foreign.clone();
        move || run_redis_command(&["SET", &foreign, "foreign"])
    })
    .await;
    source.copy_to(&target).await.unwrap();
    run_blocking(move || {
        assert_eq!(run_redis_command(&["GET", &foreign]).text().as_deref(), Some("foreign"))
    })
    .await;
}

#[tokio::test]
async fn missing_source_creates_no_keys() {
    let keys = TestStoreLocation::empty_redis();
    run_blocking(move || {
        let error = RedisStoreCopy::open_source(&keys.redis_url()).map(drop).unwrap_err();
        assert!(matches!(error, CopyEndpointError::NoStore(_)), "{error}");
        assert_eq!(run_redis_command(&["KEYS", &keys.prefixed_key("*")]).texts(), [""; 0]);
        let error = RedisStoreCopy::open_source("redis://ann:s3cret@127.0.0.1:1/").map(drop).unwrap_err();
        assert!(matches!(&error, CopyEndpointError::OpenFailed(OpenError::Unreachable { .. })), "{error}");
        assert!(!ErrorChain(&error).to_string().contains("s3cret"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn copy_stops_when_memory_is_full() {
    let harness = AnyStoreCopyOnReopenHarness::with_location_kinds(&[StoreKind::Sqlite]);
    let fixture = StoreFixture::new(&harness, RegistrationBuilder::default()).await;
    let large = format!("\"{}\"", "x".repeat(500_000));
    for _ in 0..100 {
        fixture.emit(new_event("bulk").with_value(&large)).await;
    }
    let file = harness.close_current_store();
    let server = Server::start(RedisSettings::with_directives(&[("maxmemory", "32mb")])).unwrap();
    let (url, from) = (server.url(), file.clone());
    let copying = run_blocking(move || {
        copy_store(&mut *from.open_source(), &mut RedisStoreCopy::open_target(&url).unwrap(), &mut |_| {})
    });
    let error = copying.await.unwrap_err();
    let is_memory_error = matches!(&error, CopyError::WriteTarget(StoreError::Unavailable(cause)) if cause.to_string().contains("raise maxmemory"));
    assert!(is_memory_error, "{error:?}");
    let url = server.url();
    let report = run_blocking(move || {
        server.run_command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        copy_store(&mut *file.open_source(), &mut RedisStoreCopy::open_target(&url).unwrap(), &mut |_| {})
    });
    assert!(report.await.unwrap().differing_tables().is_empty());
}
