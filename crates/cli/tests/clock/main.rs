//! A wrong clock deletes nothing and starts nothing early: real servers on every store, whose clocks are off by 26 hours
//! and by 40 days, ahead and behind, at the start and while they run.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod fake_clock;
mod on_shared_stores;
mod on_sqlite;
#[path = "../common/test_server.rs"]
mod test_server;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use fake_clock::get_json;
use pointsman_core::Timestamp;
use serde_json::Value;
use test_server::{ServerFixture, wait_until};

/// `note` appends to a file when it runs; `later` must not run in a test.
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

/// The age at which a node has pruned at least once: the pruner runs every ten seconds.
const NODE_HAS_PRUNED_AFTER: Duration = Duration::from_secs(12);

/// Data stored before a clock goes wrong, which must still exist afterwards.
struct StoredData {
    /// The id of an event that was emitted with an idempotency key, and that of its task, which has succeeded.
    event_id: u64,
    done_task_id: String,
    /// The id of a task that is due in half an hour.
    delayed_task_id: String,
}

/// The arguments of an emit that can be repeated, because it has an idempotency key.
const EMIT_WITH_IDEMPOTENCY_KEY: [&str; 6] = ["emit", "record", "--key", "k", "--idempotency-key", "once"];

fn first_task_id(emitted: &Value) -> String {
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

impl StoredData {
    fn create(pointsman: &ServerFixture) -> Self {
        let once = pointsman.run_json(&EMIT_WITH_IDEMPOTENCY_KEY);
        let done_task = first_task_id(&once);
        wait_until("the task has run", || {
            pointsman.run_json(&["tasks", "show", &done_task])["status"] == "SUCCESS"
        });
        let delayed_task = first_task_id(&pointsman.run_json(&["emit", "later", "--delay", "30m"]));
        Self {
            event_id: once["eventId"].as_u64().unwrap(),
            done_task_id: done_task,
            delayed_task_id: delayed_task,
        }
    }

    /// Checks that nothing was deleted and nothing started early.
    fn assert_intact(&self, pointsman: &ServerFixture) {
        assert_eq!(
            pointsman.run_json(&EMIT_WITH_IDEMPOTENCY_KEY)["eventId"],
            self.event_id,
            "the idempotency key is stored"
        );
        let journal = get_json(pointsman, "/api/v1/events?return=record&after=0&limit=1");
        assert_eq!(journal["eventSnapshots"][0]["eventId"], self.event_id, "{journal}");
        assert_eq!(pointsman.run_json(&["tasks", "show", &self.done_task_id])["status"], "SUCCESS");
        let delayed = pointsman.run_json(&["tasks", "show", &self.delayed_task_id]);
        assert_eq!(delayed["status"], "SCHEDULED", "{delayed}");
        assert_eq!(delayed["attempts"].as_array().map(Vec::len), Some(0), "{delayed}");
        for fire in list_tick_fires(pointsman) {
            let planned: Timestamp = fire["planned_at"].as_str().unwrap().parse().unwrap();
            assert!(
                planned <= real_time_now().plus(Duration::from_secs(1)),
                "a future planned time has a row: {fire}"
            );
        }
    }
}

/// The fires of the schedule `tick`, the newest first.
fn list_tick_fires(pointsman: &ServerFixture) -> Vec<Value> {
    let ledger = get_json(pointsman, "/api/v1/schedules/tick/fires?limit=1000");
    ledger["fires"].as_array().unwrap().clone()
}

/// Waits until this many planned times have fired from now on.
fn wait_for_ticks(pointsman: &ServerFixture, count: u32) {
    let from = real_time_now();
    let is_new = |fire: &Value| fire["planned_at"].as_str().unwrap().parse::<Timestamp>().unwrap() > from;
    wait_until("planned times have fired", || {
        list_tick_fires(pointsman).into_iter().filter(is_new).count() >= usize::try_from(count).unwrap()
    });
}

/// Checks that each planned time of the schedule `tick` fired exactly once.
fn assert_each_tick_fired_once(pointsman: &ServerFixture) {
    let fires = list_tick_fires(pointsman);
    let planned: BTreeSet<i64> = fires
        .iter()
        .map(|fire| fire["planned_at"].as_str().unwrap().parse::<Timestamp>().unwrap().micros() / 1_000_000)
        .collect();
    assert_eq!(planned.len(), fires.len(), "a time has one row");
    let (first, last) = (planned.first().unwrap(), planned.last().unwrap());
    assert_eq!(planned.len() as i64, last - first + 1, "a time was left out: {fires:?}");
    assert!(fires.iter().all(|fire| fire["event_id"].is_u64()), "{fires:?}");
}

/// The output of `doctor`. It fails on the settings of test databases.
fn doctor_output(pointsman: &ServerFixture) -> String {
    String::from_utf8(pointsman.run_command(&["doctor"]).stdout).unwrap()
}

/// The true time: the tests' own clock is not faked.
fn real_time_now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}
