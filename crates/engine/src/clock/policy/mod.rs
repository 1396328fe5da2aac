//! What is to become of planned times, decided from values alone.
//!
//! ```text
//!   settled                                        MISSED ago          now
//!      │   ╷     ╷     ╷     ╷     ╷     ╷     ╷      │     ╷     ╷     │     ╷
//!      └───┴─────┴─────┴─────┴─────┴─────┴─────┴──────┼─────┴─────┴─────┘     next
//!                    missed: `catch_up` decides       │  fire, late or on time
//! ```
//!
//! A time *comes up* at the planned time and its share of the jitter. Everything is measured from there. One that is
//! not on time any more and has been followed by another was missed as well: what runs often does not run many times
//! over after a short gap.

use std::time::Duration;

use pointsman_core::fire::{CatchUp, MISSED, Makes, ON_TIME, Punctual};
use pointsman_core::{Timestamp, cron};
use sha2::{Digest, Sha256};

use crate::ScheduleSpec;

/// The most planned times of one schedule that are looked at in one go. Of a longer gap only the newest get rows
/// in the ledger; the others are passed over.
pub(super) const MAX_PLANNED_TIMES: usize = 1000;

const ONE_MICROSECOND: Duration = Duration::from_micros(1);

/// What is to become of one planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FireDecision {
    Fire(Punctual),
    Skip,
}

/// Planned times whose hour has come, in order.
#[derive(Debug, PartialEq)]
pub(super) struct DueTimes {
    pub(super) times: Vec<(Timestamp, FireDecision)>,
    /// There were more, older ones: the gap was too long to write them all down.
    pub(super) has_omitted_older: bool,
}

/// What is to become of the planned times after `settled` that have come up by now.
///
/// Those that came up a short while ago fire. Those that were missed are caught up with by the policy: `one` is
/// there so that something runs after a gap, so it fires the latest of them only where nothing newer fires
/// anyway.
pub(super) fn decide_due_times(schedule: &ScheduleSpec, settled: Timestamp, now: Timestamp) -> DueTimes {
    let (mut planned, has_omitted_older) = newest_planned_times(&schedule.cron, settled, now);
    // A time is put off by less than what lies between it and the next: only the last can be still to come.
    planned.pop_if(|last| due_time(schedule, *last) > now);
    let ages: Vec<_> = planned.iter().map(|planned| now.since(due_time(schedule, *planned))).collect();
    let too_old = ages.partition_point(|age| *age > MISSED);
    let overtaken = ages.partition_point(|age| *age > ON_TIME).min(ages.len().saturating_sub(1));
    let missed_count = too_old.max(overtaken);
    let all_missed = missed_count == ages.len();
    let decision = |(at, age): (usize, &Duration)| match age {
        age if *age <= ON_TIME => FireDecision::Fire(Punctual::OnTime),
        _ if at >= missed_count => FireDecision::Fire(Punctual::Late),
        age if *age > schedule.catch_up_window => FireDecision::Skip,
        _ => match schedule.catch_up {
            CatchUp::All => FireDecision::Fire(Punctual::CaughtUp),
            CatchUp::One if all_missed && at + 1 == missed_count => FireDecision::Fire(Punctual::CaughtUp),
            CatchUp::One | CatchUp::None => FireDecision::Skip,
        },
    };
    let times = planned.iter().copied().zip(ages.iter().enumerate().map(decision)).collect();
    DueTimes { times, has_omitted_older }
}

/// Which planned times are made up for after a rule was lifted that held the schedule from `unmet` on: all of
/// these fire as caught up.
pub(super) fn times_to_catch_up(
    schedule: &ScheduleSpec,
    unmet: Timestamp,
    settled: Timestamp,
    now: Timestamp,
) -> Vec<Timestamp> {
    let (mut paused, _) = newest_planned_times(&schedule.cron, unmet.minus(ONE_MICROSECOND), settled);
    paused.retain(|planned| now.since(due_time(schedule, *planned)) <= schedule.catch_up_window);
    match schedule.catch_up {
        CatchUp::All => paused,
        CatchUp::None => vec![],
        // A newer one has come up and will run.
        CatchUp::One if next_due_time(schedule, settled).is_some_and(|next| next <= now) => vec![],
        CatchUp::One => paused.pop().into_iter().collect(),
    }
}

/// When the first planned time after `settled` comes up.
pub(super) fn next_due_time(schedule: &ScheduleSpec, settled: Timestamp) -> Option<Timestamp> {
    schedule.cron.next(settled).map(|planned| due_time(schedule, planned))
}

/// When a planned time comes up: put off by a part of the jitter that follows from the schedule's name and the
/// time, so that all nodes agree, and never so far that the next planned time overtakes it.
fn due_time(schedule: &ScheduleSpec, planned: Timestamp) -> Timestamp {
    if schedule.jitter.is_zero() {
        return planned;
    }
    let gap = schedule.cron.next(planned).map_or(Duration::MAX, |next| next.since(planned));
    let span = schedule.jitter.min(gap).as_micros();
    let digest = Sha256::new()
        .chain_update(schedule.name.as_str())
        .chain_update([0])
        .chain_update(planned.micros().to_be_bytes())
        .finalize();
    let share = digest.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let micros = (u128::from(share) * span) >> u64::BITS;
    planned.plus(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
}

/// The newest planned times after `after`, up to `until` and including it, in order, and whether older ones were
/// left out.
fn newest_planned_times(when: &cron::Schedule, after: Timestamp, until: Timestamp) -> (Vec<Timestamp>, bool) {
    let mut before = until.plus(ONE_MICROSECOND);
    let back = std::iter::from_fn(|| {
        before = when.prev(before).filter(|planned| *planned > after)?;
        Some(before)
    });
    let mut found: Vec<_> = back.take(MAX_PLANNED_TIMES + 1).collect();
    let more = found.len() > MAX_PLANNED_TIMES;
    found.truncate(MAX_PLANNED_TIMES);
    found.reverse();
    (found, more)
}

/// What a firing makes: its event says which schedule emitted it, and for which time.
pub(super) fn action_for_time(schedule: &ScheduleSpec, planned: Timestamp) -> Makes {
    match &schedule.action {
        Makes::Run(run) => Makes::Run(run.clone()),
        Makes::Order(order) => Makes::Order(order.clone()),
        Makes::Event(event) => {
            let mut event = event.clone();
            event.planned = Some(planned);
            event.context.insert("schedule".into(), schedule.name.to_string());
            event.context.insert("planned_at".into(), planned.to_string());
            Makes::Event(event)
        }
    }
}

#[cfg(test)]
mod tests;
