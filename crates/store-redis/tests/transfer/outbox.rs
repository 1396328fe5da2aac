//! What producers have left, and what they knew before there was a store.

use pointsman_core::EventId;
use pointsman_core::store::Emission;
use pointsman_store::transfer::{Movable, MoveError, NotReady, Section, transfer};
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_conformance::world::*;
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::{Redis as Server, RedisSettings};

use crate::lair::{Kind, Lair, Movers, say};

/// Leaves an event for an object, as document 001 says.
fn leave(lair: &Lair, object: &str, event: &str) {
    say(&["LPUSH", &lair.key(&format!("{object}:events")), event]);
    say(&["LPUSH", &lair.key("objects.with.events"), object]);
}

fn undrained(lair: &Lair) -> Option<String> {
    match RedisStoreCopy::source(&lair.url()) {
        Err(NotReady::Undrained { events, .. }) => Some(events),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_in_outboxes_is_not_left_behind_unseen() {
    let source = Lair::filled(Kind::Keys).await;
    let lair = source.clone();
    apart(move || {
        assert_eq!(undrained(&lair), None);
        leave(&lair, "order:1", r#"{"type": "a"}"#);
        assert_eq!(undrained(&lair).as_deref(), Some("1 event"));
        leave(&lair, "shop/order:2", r#"{"type": "a", "tenant": "shop"}"#);
        // In flight with a worker that has died.
        say(&["LPUSH", &lair.key("event.worker:dead:event"), r#"{"type": "a"}"#]);
        assert_eq!(undrained(&lair).as_deref(), Some("3 events"));
        say(&["DEL", &lair.key("event.worker:dead:event")]);
        leave(&lair, "order:1", "no event");
    })
    .await;
    // A server drains what events there are, and sets aside what is none.
    let store = source.open(BEGINNING).await;
    let lair = source.clone();
    apart(move || {
        let begun = std::time::Instant::now();
        while undrained(&lair).is_some() {
            assert!(begun.elapsed().as_secs() < 60, "it is not drained");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(RedisStoreCopy::source(&lair.url()).unwrap().set_aside().unwrap(), 1);
    })
    .await;
    store.close();
    let report = source.move_to(&Lair::keys()).await.unwrap();
    assert!(report.differences().is_empty());
}

#[tokio::test]
async fn what_is_left_while_it_is_moved_is_noticed() {
    let (source, target) = (Lair::filled(Kind::Keys).await, Lair::empty(Kind::File).await);
    let lair = source.clone();
    let moved = source.move_to_while(&target, 1, move || leave(&lair, "order:1", r#"{"type": "a"}"#));
    let error = moved.await.unwrap_err();
    assert!(matches!(error, MoveError::Written), "{error}");
}

#[tokio::test]
async fn a_store_may_move_within_its_database() {
    let (file, target) = (Lair::filled(Kind::File).await, Lair::empty(Kind::File).await);
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
async fn objects_that_are_known_by_their_last_event_alone_go_along() {
    let movers = Movers::along(&[Kind::Keys]);
    let world = World::new(&movers, Plan::default()).await;
    let known = world.emit(event("a").key("order:1")).await;
    let emitted = world.emit(event("a").key("order:3").tenant("shop")).await;
    let lair = movers.leave();
    let at = lair.clone();
    apart(move || {
        say(&["SET", &at.key("order:2:last.event.id"), "1600000000000000"]);
        say(&["SET", &at.key("shop/order:4:last.event.id"), "1600000000000001"]);
        say(&["SET", &at.key("strange:last.event.id"), "no id"]);
    })
    .await;
    let (file, keys) = (Lair::empty(Kind::File).await, Lair::keys());
    for (from, to) in [(&lair, &file), (&file, &keys)] {
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
        let store = movers.settle(at, world.now).await;
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
        movers.leave();
    }
}
