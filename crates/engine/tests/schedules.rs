//! Schedules: each planned time is settled once, whoever races for it, dies or sleeps.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

#[path = "schedules/catching_up.rs"]
mod catching_up;
#[path = "schedules/holding.rs"]
mod holding;
#[path = "schedules/making.rs"]
mod making;
#[path = "schedules/overlapping.rs"]
mod overlapping;
#[path = "schedules/sharing.rs"]
mod sharing;

use std::time::Duration;

use common::*;
use pointsman_core::fire::{Fire, Makes, Outcome as FireOutcome, Skipped};
use pointsman_core::store::{Plan, Schedules, Standing};
use pointsman_core::{Event, EventId, NewEvent, ScheduleName, Timestamp, cron};
use pointsman_engine::{Engine, ScheduleSpec};
use pointsman_store_sqlite::SqliteStore;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

const MISSED: FireOutcome = FireOutcome::Skipped(Skipped::Missed);
const HELD: FireOutcome = FireOutcome::Skipped(Skipped::Held);

fn schedule_name(text: &str) -> ScheduleName {
    ScheduleName::new(text).unwrap()
}

fn schedule_that(makes: Makes, schedule: &str, when: &str) -> ScheduleSpec {
    ScheduleSpec::new(schedule_name(schedule), cron::Schedule::utc(when).unwrap(), makes)
}

/// One that emits an event named after it.
fn schedule(schedule: &str, when: &str) -> ScheduleSpec {
    schedule_that(Makes::Event(Box::new(NewEvent::of(kind(schedule)))), schedule, when)
}

fn ticking() -> ScheduleSpec {
    schedule("tick", "every 1s")
}

/// One whose last planned time passed a while ago and whose next is far off.
fn long_ago() -> ScheduleSpec {
    let quiet = now().minus(HOUR * 12);
    let time = quiet.to_string();
    let (hour, minute) = (&time[11..13], &time[14..16]);
    schedule("daily", &format!("{minute} {hour} * * *"))
}

/// Makes a schedule stand where it would if it had first been planned then.
async fn planned_since(store: &SqliteStore, schedules: &[&ScheduleSpec], then: Timestamp) -> Vec<Standing> {
    let plan = |schedule: &&ScheduleSpec| {
        let when = &schedule.cron;
        let (zone, dialect) = (when.zone().name(), when.expression().dialect());
        Plan { name: schedule.name.clone(), expression: format!("{} {zone} {dialect}", when.expression()) }
    };
    store.plan(schedules.iter().map(plan).collect(), then).await.unwrap()
}

/// What became of its planned times, the earliest first.
async fn ledger(store: &SqliteStore, schedule: &ScheduleSpec) -> Vec<Fire> {
    let mut fires = store.fires(&schedule.name, None, 10_000).await.unwrap().fires;
    fires.reverse();
    fires
}

/// Waits until the ledger is as wanted.
async fn ledger_when(
    store: &SqliteStore,
    schedule: &ScheduleSpec,
    what: &str,
    wanted: impl Fn(&[Fire]) -> bool,
) -> Vec<Fire> {
    soon(what, async {
        loop {
            let fires = ledger(store, schedule).await;
            if wanted(&fires) {
                return fires;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

fn outcomes(fires: &[Fire]) -> Vec<FireOutcome> {
    fires.iter().map(|fire| fire.outcome).collect()
}

fn made(fires: &[Fire]) -> Vec<EventId> {
    fires.iter().filter_map(|fire| fire.event).collect()
}

fn count(fires: &[Fire], wanted: FireOutcome) -> usize {
    fires.iter().filter(|fire| fire.outcome == wanted).count()
}

/// All events there are, in order.
async fn events(engine: &Engine) -> Vec<std::sync::Arc<Event>> {
    emitted(engine).await
}

/// Waits until the clock has gone past this time.
async fn past(time: Timestamp) {
    soon("time to pass", async {
        while now() <= time {
            tokio::time::sleep(SECOND / 20).await;
        }
    })
    .await;
}
