//! What producers have left, and what they knew before there was a store.

use pointsman_core::EventId;
use pointsman_core::store::Emission;
use pointsman_store::transfer::{Movable, MoveError, NotReady, Section, transfer};
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_conformance::world::*;
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::{Redis as Server, RedisSettings};

use crate::store_location::{CopyHarness, StoreKind, StoreLocation, run_command};

/// Leaves an event for an object, as document 001 says.
fn push_event(location: &StoreLocation, object: &str, event: &str) {
    run_command(&["LPUSH", &location.key(&format!("{object}:events")), event]);
    run_command(&["LPUSH", &location.key("objects.with.events"), object]);
}

fn undrained_events(location: &StoreLocation) -> Option<String> {
    match RedisStoreCopy::source(&location.url()) {
        Err(NotReady::Undrained { events, .. }) => Some(events),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn source_with_outbox_events_is_refused_until_drained() {
    let source = StoreLocation::filled(StoreKind::Redis).await;
    let location = source.clone();
    apart(move || {
        assert_eq!(undrained_events(&location), None);
        push_event(&location, "order:1", r#"{"type": "a"}"#);
        assert_eq!(undrained_events(&location).as_deref(), Some("1 event"));
        push_event(&location, "shop/order:2", r#"{"type": "a", "tenant": "shop"}"#);
        // In flight with a worker that has died.
        run_command(&["LPUSH", &location.key("event.worker:dead:event"), r#"{"type": "a"}"#]);
        assert_eq!(undrained_events(&location).as_deref(), Some("3 events"));
        run_command(&["DEL", &location.key("event.worker:dead:event")]);
        push_event(&location, "order:1", "no event");
    })
    .await;
    // A server drains what events there are, and sets aside what is none.
    let store = source.open(BEGINNING).await;
    let location = source.clone();
    apart(move || {
        let begun = std::time::Instant::now();
        while undrained_events(&location).is_some() {
            assert!(begun.elapsed().as_secs() < 60, "it is not drained");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(RedisStoreCopy::source(&location.url()).unwrap().set_aside().unwrap(), 1);
    })
    .await;
    store.close();
    let report = source.move_to(&StoreLocation::empty_redis()).await.unwrap();
    assert!(report.differences().is_empty());
}

#[tokio::test]
async fn events_pushed_during_a_copy_are_detected() {
    let (source, target) =
        (StoreLocation::filled(StoreKind::Redis).await, StoreLocation::empty(StoreKind::Sqlite).await);
    let location = source.clone();
    let moved =
        source.move_to_while(&target, 1, move || push_event(&location, "order:1", r#"{"type": "a"}"#));
    let error = moved.await.unwrap_err();
    assert!(matches!(error, MoveError::Written), "{error}");
}

#[tokio::test]
async fn store_can_be_copied_within_its_database() {
    let (file, target) =
        (StoreLocation::filled(StoreKind::Sqlite).await, StoreLocation::empty(StoreKind::Sqlite).await);
    let server = Server::start(RedisSettings::default()).unwrap();
    let (plain, other) = (server.url(), server.admin().url_under("other:"));
    apart(move || {
        let moved = |from: &mut dyn Movable, to: &mut dyn Movable| {
            let report = transfer(from, to, &mut |_| {}).unwrap();
            assert!(report.differences().is_empty(), "{report:?}");
        };
        moved(&mut *file.source(), &mut RedisStoreCopy::target(&plain).unwrap());
        moved(&mut RedisStoreCopy::source(&plain).unwrap(), &mut RedisStoreCopy::target(&other).unwrap());
        server.command(&["LPUSH", "other:order:1:events", "{}"]).unwrap();
        moved(&mut RedisStoreCopy::source(&plain).unwrap(), &mut *target.target());
        let error = RedisStoreCopy::source(&other).map(drop).unwrap_err();
        assert!(matches!(&error, NotReady::Stray { objects, .. } if objects == "order:1"), "{error}");
        let call = format!("redis-cli -h {} -p {} -n 0 ", server.address().ip(), server.port());
        let told = error.to_string();
        let command = told.split_once(&call).unwrap_or_else(|| panic!("{told}")).1;
        server.command(&command.split(' ').collect::<Vec<_>>()).unwrap();
        let error = RedisStoreCopy::source(&other).map(drop).unwrap_err();
        assert!(matches!(error, NotReady::Undrained { .. }), "{error}");
    })
    .await;
}

#[tokio::test]
async fn objects_with_only_a_last_event_id_are_copied() {
    let harness = CopyHarness::along(&[StoreKind::Redis]);
    let world = World::new(&harness, Plan::default()).await;
    let known = world.emit(event("a").key("order:1")).await;
    let emitted = world.emit(event("a").key("order:3").tenant("shop")).await;
    let location = harness.leave();
    let at = location.clone();
    apart(move || {
        run_command(&["SET", &at.key("order:2:last.event.id"), "1600000000000000"]);
        run_command(&["SET", &at.key("shop/order:4:last.event.id"), "1600000000000001"]);
        run_command(&["SET", &at.key("strange:last.event.id"), "no id"]);
    })
    .await;
    let (file, keys) = (StoreLocation::empty(StoreKind::Sqlite).await, StoreLocation::empty_redis());
    for (from, to) in [(&location, &file), (&file, &keys)] {
        let report = from.move_to(to).await.unwrap();
        assert!(report.differences().is_empty(), "{report:?}");
        let objects = apart({
            let to = to.clone();
            move || to.source().count(Section::Objects).unwrap()
        });
        // The name with a slash may be that of two objects.
        assert_eq!(objects.await, Some(5));
    }
    for at in [file, keys] {
        let store = harness.settle(at, world.now).await;
        for (to, prev) in [
            (event("a").key("order:1"), Some(known.id)),
            (event("a").key("order:3").tenant("shop"), Some(emitted.id)),
            (event("a").key("order:2"), Some(EventId::from_i64(1_600_000_000_000_000))),
            (event("a").key("order:4").tenant("shop"), Some(EventId::from_i64(1_600_000_000_000_001))),
            (event("a").key("order:5"), None),
        ] {
            let emission = Emission { events: vec![to], idempotency: None };
            let (receipts, _) = must(store.append(vec![emission], None, world.now).await);
            assert_eq!(receipts[0].as_ref().unwrap().events[0].prev, prev);
        }
        harness.leave();
    }
}
