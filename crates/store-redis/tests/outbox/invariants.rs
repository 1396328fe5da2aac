//! The one who looks at the invariants sees when one does not hold.

use crate::common::invariants::{Watch, findings};
use crate::common::place::{Hand, Place};

/// What is said of keys that were written by hand.
fn said_of(write: impl Fn(&mut Hand)) -> String {
    let place = Place::shared();
    let mut hand = place.connect();
    write(&mut hand);
    findings(&mut hand, false).unwrap().join("; ")
}

/// What is said, and of what.
type Case = (&'static str, fn(&mut Hand));

#[test]
fn what_must_not_be_is_seen() {
    let cases: [Case; 8] = [
        ("o has events, is not in line, and nobody holds it", |hand| {
            hand.ask(&["LPUSH", ":o:events", "e"]);
        }),
        ("o is held by w which does not know it", |hand| {
            hand.ask(&["SET", ":o:event.worker", "w"]);
        }),
        ("o is held by w which does not know it; w names p which it does not hold", |hand| {
            hand.holds("w", "o", None);
            hand.ask(&["LSET", ":event.worker:w:object", "0", "p"]);
        }),
        ("w names o which it does not hold", |hand| {
            hand.ask(&["LPUSH", ":event.worker:w:object", "o"]);
        }),
        ("w has an event in flight, and no object", |hand| {
            hand.ask(&["LPUSH", ":event.worker:w:event", "e"]);
            hand.ask(&["SET", ":event.worker:w:event.id", "7"]);
        }),
        ("o has an event that is in flight and queued: e", |hand| {
            hand.holds("w", "o", Some(("e", "7")));
            hand.push("o", &["d", "e"]);
        }),
        ("w has 1 events, and the id none", |hand| {
            hand.holds("w", "o", Some(("e", "7")));
            hand.ask(&["DEL", ":event.worker:w:event.id"]);
        }),
        ("w has 0 events, and the id 7", |hand| {
            hand.holds("w", "o", None);
            hand.ask(&["SET", ":event.worker:w:event.id", "7"]);
        }),
    ];
    for (wrong, write) in cases {
        let mut said: Vec<String> = said_of(write).split("; ").map(String::from).collect();
        said.sort();
        assert_eq!(said.join("; "), wrong);
    }
}

#[test]
fn what_may_be_is_not_complained_of() {
    let said = said_of(|hand| {
        hand.push("o", &["e", "d"]);
        hand.push("p", &["e", "d"]);
        hand.holds("w", "p", Some(("c", "7")));
        hand.lives("w");
        hand.ask(&["LPUSH", ":objects.with.events", "nothing"]);
    });
    assert_eq!(said, "");
}

#[test]
fn it_is_seen_in_passing_too() {
    let place = Place::shared();
    let watch = Watch::start(&place);
    place.connect().ask(&["LPUSH", ":o:events", "e"]);
    while !watch.has_found_something() {
        std::thread::yield_now();
    }
    let (found, _) = watch.stop();
    assert!(found.iter().all(|wrong| wrong.starts_with("o has events")), "{found:?}");
}
