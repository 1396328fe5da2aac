//! Schedules: each planned time is recorded once, even if nodes compete for it, die or are suspended.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

#[path = "schedules/catch_up.rs"]
mod catch_up;
#[path = "schedules/firing.rs"]
mod firing;
#[path = "schedules/overlap.rs"]
mod overlap;
#[path = "schedules/pauses.rs"]
mod pauses;
#[path = "schedules/several_nodes.rs"]
mod several_nodes;

use std::time::Duration;

use common::*;
use pointsman_core::fire::{Fire, FireAction, FireOutcome, SkipReason};
use pointsman_core::store::{ScheduleDef, ScheduleProgress, Schedules};
use pointsman_core::{EventId, NewEvent, ScheduleName, Timestamp, cron};
use pointsman_engine::{Engine, ScheduleSpec};
use pointsman_store_sqlite::SqliteStore;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

const SKIPPED_AS_MISSED: FireOutcome = FireOutcome::Skipped(SkipReason::Missed);
const SKIPPED_BY_PAUSE: FireOutcome = FireOutcome::Skipped(SkipReason::PausedByRule);

fn schedule_name(text: &str) -> ScheduleName {
    ScheduleName::new(text).unwrap()
}

fn schedule_with_action(action: FireAction, schedule: &str, expression: &str) -> ScheduleSpec {
    ScheduleSpec::new(schedule_name(schedule), cron::Schedule::parse_utc(expression).unwrap(), action)
}

/// A schedule that emits an event named after it.
fn event_schedule(schedule: &str, when: &str) -> ScheduleSpec {
    schedule_with_action(FireAction::EmitEvent(Box::new(NewEvent::new(event_type(schedule)))), schedule, when)
}

fn every_second_schedule() -> ScheduleSpec {
    event_schedule("tick", "every 1s")
}

/// A schedule whose last planned time was twelve hours ago, and whose next is in twelve hours.
fn daily_schedule_due_twelve_hours_ago() -> ScheduleSpec {
    let last_planned = now().minus(HOUR * 12);
    let time = last_planned.to_string();
    let (hour, minute) = (&time[11..13], &time[14..16]);
    event_schedule("daily", &format!("{minute} {hour} * * *"))
}

/// Registers schedules as if the time were `registered_at`.
async fn register_schedules_at(
    store: &SqliteStore,
    schedules: &[&ScheduleSpec],
    registered_at: Timestamp,
) -> Vec<ScheduleProgress> {
    let to_def = |schedule: &&ScheduleSpec| {
        let cron = &schedule.cron;
        let (zone, dialect) = (cron.zone().name(), cron.expression().dialect());
        ScheduleDef {
            name: schedule.name.clone(),
            expression_zone_and_dialect: format!("{} {zone} {dialect}", cron.expression()),
        }
    };
    store.register_schedules(schedules.iter().map(to_def).collect(), registered_at).await.unwrap()
}

/// Reads the ledger of a schedule, the earliest planned time first.
async fn read_ledger(store: &SqliteStore, schedule: &ScheduleSpec) -> Vec<Fire> {
    let mut fires = store.list_fires(&schedule.name, None, 10_000).await.unwrap().fires;
    fires.reverse();
    fires
}

/// Waits until the ledger fulfils a condition.
async fn wait_for_ledger(
    store: &SqliteStore,
    schedule: &ScheduleSpec,
    description: &str,
    is_complete: impl Fn(&[Fire]) -> bool,
) -> Vec<Fire> {
    within_timeout(description, async {
        loop {
            let fires = read_ledger(store, schedule).await;
            if is_complete(&fires) {
                return fires;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

fn fire_outcomes(fires: &[Fire]) -> Vec<FireOutcome> {
    fires.iter().map(|fire| fire.outcome).collect()
}

fn created_event_ids(fires: &[Fire]) -> Vec<EventId> {
    fires.iter().filter_map(|fire| fire.event_id).collect()
}

fn count_outcome(fires: &[Fire], outcome: FireOutcome) -> usize {
    fires.iter().filter(|fire| fire.outcome == outcome).count()
}

/// Waits until this time has passed.
async fn wait_until_time_has_passed(time: Timestamp) {
    within_timeout("time to pass", async {
        while now() <= time {
            tokio::time::sleep(SECOND / 20).await;
        }
    })
    .await;
}
