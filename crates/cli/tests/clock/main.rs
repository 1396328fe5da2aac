//! A wrong clock deletes nothing and starts nothing early: real servers on every store, whose clocks are off by 26 hours
//! and by 40 days, ahead and behind, at the start and while they run.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod embedded;
mod fake_clock;
mod shared;
#[path = "../common/test_server.rs"]
mod test_server;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use fake_clock::get_json;
use pointsman_core::Timestamp;
use serde_json::Value;
use test_server::{TestServer, wait_until};

/// `note` writes down that it ran, and where; `later` must not run in a test.
const CONFIG: &str = r#"
handlers:
  note: {run: {command: ["sh", "-c", "echo $POINTSMAN_EVENT_ID >> ran"]}}
  later: {run: {command: ["sh", "-c", "echo $POINTSMAN_EVENT_ID >> too-early"]}}
event_handlers:
  record: [note]
  later: [later]
schedules:
  tick: {cron: "every 1s", emit: {type: tick}, catch_up: all}
"#;

/// The pruner looks every ten seconds; a node that has lived for longer has had its rng.
const PRUNED_BY: Duration = Duration::from_secs(12);

/// What is stored before a clock goes wrong, and must be there afterwards.
struct Kept {
    /// The id of an event that was emitted with an idempotency key, and of its task.
    event: u64,
    done: String,
    /// A task that is due in half an hour.
    delayed: String,
}

const ONCE: [&str; 6] = ["emit", "record", "--key", "k", "--idempotency-key", "once"];

fn task_of(emitted: &Value) -> String {
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

impl Kept {
    fn store(pointsman: &TestServer) -> Self {
        let once = pointsman.run_json(&ONCE);
        let done = task_of(&once);
        wait_until("the task has run", || {
            pointsman.run_json(&["tasks", "show", &done])["status"] == "SUCCESS"
        });
        let delayed = task_of(&pointsman.run_json(&["emit", "later", "--delay", "30m"]));
        Self { event: once["eventId"].as_u64().unwrap(), done, delayed }
    }

    /// Nothing was deleted, and nothing has started early.
    fn check(&self, pointsman: &TestServer) {
        assert_eq!(pointsman.run_json(&ONCE)["eventId"], self.event, "the idempotency key is known");
        let journal = get_json(pointsman, "/api/v1/events?return=record&after=0&limit=1");
        assert_eq!(journal["eventSnapshots"][0]["eventId"], self.event, "{journal}");
        assert_eq!(pointsman.run_json(&["tasks", "show", &self.done])["status"], "SUCCESS");
        let delayed = pointsman.run_json(&["tasks", "show", &self.delayed]);
        assert_eq!(delayed["status"], "SCHEDULED", "{delayed}");
        assert_eq!(delayed["attempts"].as_array().map(Vec::len), Some(0), "{delayed}");
        for fire in fires(pointsman) {
            let planned: Timestamp = fire["planned_at"].as_str().unwrap().parse().unwrap();
            assert!(
                planned <= now().plus(Duration::from_secs(1)),
                "a planned time that is still to come has a row: {fire}"
            );
        }
    }
}

/// The ledger of the schedule, the newest first.
fn fires(pointsman: &TestServer) -> Vec<Value> {
    let ledger = get_json(pointsman, "/api/v1/schedules/tick/fires?limit=1000");
    ledger["fires"].as_array().unwrap().clone()
}

/// Waits until so many planned times have come up since now.
fn ticks(pointsman: &TestServer, count: u32) {
    let from = now();
    let is_new = |fire: &Value| fire["planned_at"].as_str().unwrap().parse::<Timestamp>().unwrap() > from;
    wait_until("planned times have come up", || {
        fires(pointsman).into_iter().filter(is_new).count() >= usize::try_from(count).unwrap()
    });
}

/// No planned time was left out or fired twice.
fn check_ticks(pointsman: &TestServer) {
    let fires = fires(pointsman);
    let planned: BTreeSet<i64> = fires
        .iter()
        .map(|fire| fire["planned_at"].as_str().unwrap().parse::<Timestamp>().unwrap().micros() / 1_000_000)
        .collect();
    assert_eq!(planned.len(), fires.len(), "a time has one row");
    let (first, last) = (planned.first().unwrap(), planned.last().unwrap());
    assert_eq!(planned.len() as i64, last - first + 1, "a time was left out: {fires:?}");
    assert!(fires.iter().all(|fire| fire["event_id"].is_u64()), "{fires:?}");
}

/// What the doctor says. The databases of tests have settings that it calls faults.
fn doctor(pointsman: &TestServer) -> String {
    String::from_utf8(pointsman.run(&["doctor"]).stdout).unwrap()
}

/// The true time: the tests' own clock is not faked.
fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}
