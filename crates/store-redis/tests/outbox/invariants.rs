//! The invariant check finds violations.

use crate::common::invariants::{InvariantMonitor, find_violations};
use crate::common::redis_location::{RawClient, RedisLocation};

/// Returns the violations after some keys were written.
fn violations_after(write: impl Fn(&mut RawClient)) -> String {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    write(&mut client);
    find_violations(&mut client, false).unwrap().join("; ")
}

/// Expected violations, and the writes that cause them.
type ViolationCase = (&'static str, fn(&mut RawClient));

#[test]
fn invariant_violations_are_found() {
    let cases: [ViolationCase; 8] = [
        ("o has events, is not queued and has no owner", |client| {
            client.run_command(&["LPUSH", ":o:events", "e"]);
        }),
        ("o is owned by w which does not name it", |client| {
            client.run_command(&["SET", ":o:event.worker", "w"]);
        }),
        ("o is owned by w which does not name it; w names p which it does not own", |client| {
            client.set_object_owner("w", "o", None);
            client.run_command(&["LSET", ":event.worker:w:object", "0", "p"]);
        }),
        ("w names o which it does not own", |client| {
            client.run_command(&["LPUSH", ":event.worker:w:object", "o"]);
        }),
        ("w has an event in flight, and no object", |client| {
            client.run_command(&["LPUSH", ":event.worker:w:event", "e"]);
            client.run_command(&["SET", ":event.worker:w:event.id", "7"]);
        }),
        ("o has an event that is in flight and queued: e", |client| {
            client.set_object_owner("w", "o", Some(("e", "7")));
            client.push_events("o", &["d", "e"]);
        }),
        ("w has 1 events, and the id none", |client| {
            client.set_object_owner("w", "o", Some(("e", "7")));
            client.run_command(&["DEL", ":event.worker:w:event.id"]);
        }),
        ("w has 0 events, and the id 7", |client| {
            client.set_object_owner("w", "o", None);
            client.run_command(&["SET", ":event.worker:w:event.id", "7"]);
        }),
    ];
    for (expected, write) in cases {
        let mut violations: Vec<String> = violations_after(write).split("; ").map(String::from).collect();
        violations.sort();
        assert_eq!(violations.join("; "), expected);
    }
}

#[test]
fn allowed_states_are_no_violations() {
    let violations = violations_after(|client| {
        client.push_events("o", &["e", "d"]);
        client.push_events("p", &["e", "d"]);
        client.set_object_owner("w", "p", Some(("c", "7")));
        client.set_worker_heartbeat("w");
        client.run_command(&["LPUSH", ":objects.with.events", "nothing"]);
    });
    assert_eq!(violations, "");
}

#[test]
fn monitor_finds_a_violation_while_running() {
    let location = RedisLocation::on_shared_server();
    let monitor = InvariantMonitor::start(&location);
    location.connect().run_command(&["LPUSH", ":o:events", "e"]);
    while !monitor.has_violations() {
        std::thread::yield_now();
    }
    let (found, _) = monitor.stop();
    assert!(found.iter().all(|violation| violation.starts_with("o has events")), "{found:?}");
}
