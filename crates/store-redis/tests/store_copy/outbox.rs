//! Copies of a store with outbox events, and of objects that are older than the store.

use pointsman_core::EventId;
use pointsman_core::store::EmitBatch;
use pointsman_store::store_copy::{CopyEndpoint, CopyEndpointError, CopyError, TableKind, copy_store};
use pointsman_store_conformance::copy::{StoreLocation as _, run_blocking};
use pointsman_store_conformance::fixture::*;
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::{RedisServer as Server, RedisSettings};

use crate::store_location::{AnyStoreCopyOnReopenHarness, StoreKind, TestStoreLocation, run_redis_command};

/// Pushes an event of an object as in document 001.
fn push_event(location: &TestStoreLocation, object: &str, event: &str) {
    run_redis_command(&["LPUSH", &location.prefixed_key(&format!("{object}:events")), event]);
    run_redis_command(&["LPUSH", &location.prefixed_key("objects.with.events"), object]);
}

/// Returns how many events the outboxes of a source contain, as the error of opening it says; `None` if it can be opened.
fn undrained_event_count_text(location: &TestStoreLocation) -> Option<String> {
    match RedisStoreCopy::open_source(&location.redis_url()) {
        Err(CopyEndpointError::OutboxNotEmpty { events, .. }) => Some(events),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn source_with_outbox_events_is_refused_until_drained() {
    let source = TestStoreLocation::create_with_sample_data(StoreKind::Redis).await;
    let location = source.clone();
    run_blocking(move || {
        assert_eq!(undrained_event_count_text(&location), None);
        push_event(&location, "order:1", r#"{"type": "a"}"#);
        assert_eq!(undrained_event_count_text(&location).as_deref(), Some("1 event"));
        push_event(&location, "shop/order:2", r#"{"type": "a", "tenant": "shop"}"#);
        // In flight at a dead worker.
        run_redis_command(&["LPUSH", &location.prefixed_key("event.worker:dead:event"), r#"{"type": "a"}"#]);
        assert_eq!(undrained_event_count_text(&location).as_deref(), Some("3 events"));
        run_redis_command(&["DEL", &location.prefixed_key("event.worker:dead:event")]);
        push_event(&location, "order:1", "not an event");
    })
    .await;
    // A node drains the events, and sets the invalid entry aside.
    let store = source.open(START_TIME).await;
    let location = source.clone();
    run_blocking(move || {
        let begun = std::time::Instant::now();
        while undrained_event_count_text(&location).is_some() {
            assert!(begun.elapsed().as_secs() < 60, "the outbox is not drained");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(
            RedisStoreCopy::open_source(&location.redis_url()).unwrap().count_set_aside_entries().unwrap(),
            1
        );
    })
    .await;
    store.close();
    let report = source.copy_to(&TestStoreLocation::empty_redis()).await.unwrap();
    assert!(report.differing_tables().is_empty());
}

#[tokio::test]
async fn events_pushed_during_a_copy_are_detected() {
    let (source, target) = (
        TestStoreLocation::create_with_sample_data(StoreKind::Redis).await,
        TestStoreLocation::create_empty(StoreKind::Sqlite).await,
    );
    let location = source.clone();
    let copying = source.copy_to_with_hook_before_page(&target, 1, move || {
        push_event(&location, "order:1", r#"{"type": "a"}"#)
    });
    let error = copying.await.unwrap_err();
    assert!(matches!(error, CopyError::SourceWrittenDuringCopy), "{error}");
}

#[tokio::test]
async fn store_can_be_copied_within_its_database() {
    let (file, target) = (
        TestStoreLocation::create_with_sample_data(StoreKind::Sqlite).await,
        TestStoreLocation::create_empty(StoreKind::Sqlite).await,
    );
    let server = Server::start(RedisSettings::default()).unwrap();
    let (plain, other) = (server.url(), server.admin().url_with_prefix("other:"));
    run_blocking(move || {
        let copy = |from: &mut dyn CopyEndpoint, to: &mut dyn CopyEndpoint| {
            let report = copy_store(from, to, &mut |_| {}).unwrap();
            assert!(report.differing_tables().is_empty(), "{report:?}");
        };
        copy(&mut *file.open_source(), &mut RedisStoreCopy::open_target(&plain).unwrap());
        copy(
            &mut RedisStoreCopy::open_source(&plain).unwrap(),
            &mut RedisStoreCopy::open_target(&other).unwrap(),
        );
        server.run_command(&["LPUSH", "other:order:1:events", "{}"]).unwrap();
        copy(&mut RedisStoreCopy::open_source(&plain).unwrap(), &mut *target.open_target());
        let error = RedisStoreCopy::open_source(&other).map(drop).unwrap_err();
        assert!(
            matches!(&error, CopyEndpointError::ObjectsMissingFromOutboxList { objects, .. } if objects == "order:1"),
            "{error}"
        );
        let call = format!("redis-cli -h {} -p {} -n 0 ", server.address().ip(), server.port());
        let message = error.to_string();
        let command = message.split_once(&call).unwrap_or_else(|| panic!("{message}")).1;
        server.run_command(&command.split(' ').collect::<Vec<_>>()).unwrap();
        let error = RedisStoreCopy::open_source(&other).map(drop).unwrap_err();
        assert!(matches!(error, CopyEndpointError::OutboxNotEmpty { .. }), "{error}");
    })
    .await;
}

#[tokio::test]
async fn objects_with_only_a_last_event_id_are_copied() {
    let harness = AnyStoreCopyOnReopenHarness::with_location_kinds(&[StoreKind::Redis]);
    let fixture = StoreFixture::new(&harness, RegistrationBuilder::default()).await;
    let first = fixture.emit(new_event("a").with_key("order:1")).await;
    let emitted = fixture.emit(new_event("a").with_key("order:3").for_tenant("shop")).await;
    let location = harness.close_current_store();
    let at = location.clone();
    run_blocking(move || {
        run_redis_command(&["SET", &at.prefixed_key("order:2:last.event.id"), "1600000000000000"]);
        run_redis_command(&["SET", &at.prefixed_key("shop/order:4:last.event.id"), "1600000000000001"]);
        run_redis_command(&["SET", &at.prefixed_key("invalid:last.event.id"), "not an id"]);
    })
    .await;
    let (file, keys) =
        (TestStoreLocation::create_empty(StoreKind::Sqlite).await, TestStoreLocation::empty_redis());
    for (from, to) in [(&location, &file), (&file, &keys)] {
        let report = from.copy_to(to).await.unwrap();
        assert!(report.differing_tables().is_empty(), "{report:?}");
        let objects = run_blocking({
            let to = to.clone();
            move || to.open_source().count_rows(TableKind::Objects).unwrap()
        });
        // The name with a slash may belong to two objects.
        assert_eq!(objects.await, Some(5));
    }
    for at in [file, keys] {
        let store = harness.open_store_at(at, fixture.now).await;
        for (event, prev) in [
            (new_event("a").with_key("order:1"), Some(first.id)),
            (new_event("a").with_key("order:3").for_tenant("shop"), Some(emitted.id)),
            (new_event("a").with_key("order:2"), Some(EventId::from_i64(1_600_000_000_000_000))),
            (
                new_event("a").with_key("order:4").for_tenant("shop"),
                Some(EventId::from_i64(1_600_000_000_000_001)),
            ),
            (new_event("a").with_key("order:5"), None),
        ] {
            let batch = EmitBatch { events: vec![event], idempotency_key: None };
            let (receipts, _) = expect_ok(store.append(vec![batch], None, fixture.now).await);
            assert_eq!(receipts[0].as_ref().unwrap().events[0].prev, prev);
        }
        harness.close_current_store();
    }
}
