//! Decides which planned times fire, as a pure function of times.
//!
//! ```text
//!   processed_up_to                          MISSED_AFTER ago          now
//!      │   ╷     ╷     ╷     ╷     ╷     ╷     ╷      │     ╷     ╷     │     ╷
//!      └───┴─────┴─────┴─────┴─────┴─────┴─────┴──────┼─────┴─────┴─────┘     next
//!                    missed: `catch_up` decides       │  fire, late or on time
//! ```
//!
//! A time is *due* at the planned time plus its share of the jitter. Everything is measured from there. A time that is
//! no longer on time and has been followed by another counts as missed too, so that a frequent schedule does not fire
//! many times after a short gap.

use std::time::Duration;

use pointsman_core::fire::{CatchUpPolicy, FireAction, MISSED_AFTER, ON_TIME_TOLERANCE, Punctuality};
use pointsman_core::{Timestamp, cron};
use sha2::{Digest, Sha256};

use crate::ScheduleSpec;

/// The maximum number of planned times of one schedule that are decided at once. If a gap has more, only the newest get
/// rows in the ledger.
pub(super) const MAX_TIMES_DECIDED_AT_ONCE: usize = 1000;

const ONE_MICROSECOND: Duration = Duration::from_micros(1);

/// Whether one planned time fires or is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedTimeDecision {
    Fire(Punctuality),
    Skip,
}

/// Planned times that are due, in order, with their decisions.
#[derive(Debug, PartialEq)]
pub(super) struct DueTimeDecisions {
    pub(super) planned_times_with_decisions: Vec<(Timestamp, PlannedTimeDecision)>,
    /// Whether older due times were omitted because the gap was too long.
    pub(super) has_omitted_older: bool,
}

/// Decides which of the planned times after `processed_up_to` that are due by now fire.
///
/// Times that became due at most [`MISSED_AFTER`] ago fire. Missed times follow the catch-up policy: `one` ensures that
/// something runs after a gap, so it fires the latest of them only if no newer time fires anyway.
pub(super) fn decide_which_due_times_fire(
    schedule: &ScheduleSpec,
    processed_up_to: Timestamp,
    now: Timestamp,
) -> DueTimeDecisions {
    let (mut planned, has_omitted_older) = newest_planned_times(&schedule.cron, processed_up_to, now);
    // The jitter is less than the gap to the next time, so only the last time can be not due yet.
    planned.pop_if(|last| due_time_with_jitter(schedule, *last) > now);
    let ages: Vec<_> =
        planned.iter().map(|planned| now.duration_since(due_time_with_jitter(schedule, *planned))).collect();
    let old_count = ages.partition_point(|age| *age > MISSED_AFTER);
    let overtaken_count =
        ages.partition_point(|age| *age > ON_TIME_TOLERANCE).min(ages.len().saturating_sub(1));
    let missed_count = old_count.max(overtaken_count);
    let all_missed = missed_count == ages.len();
    let decide = |(index, age): (usize, &Duration)| match age {
        age if *age <= ON_TIME_TOLERANCE => PlannedTimeDecision::Fire(Punctuality::OnTime),
        _ if index >= missed_count => PlannedTimeDecision::Fire(Punctuality::Late),
        age if *age > schedule.catch_up_window => PlannedTimeDecision::Skip,
        _ => match schedule.catch_up {
            CatchUpPolicy::All => PlannedTimeDecision::Fire(Punctuality::CaughtUp),
            CatchUpPolicy::One if all_missed && index + 1 == missed_count => {
                PlannedTimeDecision::Fire(Punctuality::CaughtUp)
            }
            CatchUpPolicy::One | CatchUpPolicy::None => PlannedTimeDecision::Skip,
        },
    };
    let times = planned.iter().copied().zip(ages.iter().enumerate().map(decide)).collect();
    DueTimeDecisions { planned_times_with_decisions: times, has_omitted_older }
}

/// The planned times to catch up after a rule was lifted that paused the schedule from `first_skipped` on. Each of them
/// fires as caught up.
pub(super) fn paused_times_to_catch_up(
    schedule: &ScheduleSpec,
    first_skipped: Timestamp,
    processed_up_to: Timestamp,
    now: Timestamp,
) -> Vec<Timestamp> {
    let (mut paused, _) =
        newest_planned_times(&schedule.cron, first_skipped.minus(ONE_MICROSECOND), processed_up_to);
    paused.retain(|planned| {
        now.duration_since(due_time_with_jitter(schedule, *planned)) <= schedule.catch_up_window
    });
    match schedule.catch_up {
        CatchUpPolicy::All => paused,
        CatchUpPolicy::None => vec![],
        // A newer time is due and will fire.
        CatchUpPolicy::One if next_due_time(schedule, processed_up_to).is_some_and(|next| next <= now) => {
            vec![]
        }
        CatchUpPolicy::One => paused.pop().into_iter().collect(),
    }
}

/// When the first planned time after `processed_up_to` is due.
pub(super) fn next_due_time(schedule: &ScheduleSpec, processed_up_to: Timestamp) -> Option<Timestamp> {
    schedule.cron.next(processed_up_to).map(|planned| due_time_with_jitter(schedule, planned))
}

/// When a planned time is due: delayed by a part of the jitter that is derived from the schedule's name and the time,
/// so that all nodes agree, and by less than the gap to the next planned time.
fn due_time_with_jitter(schedule: &ScheduleSpec, planned: Timestamp) -> Timestamp {
    if schedule.jitter.is_zero() {
        return planned;
    }
    let gap = schedule.cron.next(planned).map_or(Duration::MAX, |next| next.duration_since(planned));
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

/// The newest planned times after `after` and up to and including `until`, in order, and whether older ones were
/// omitted.
fn newest_planned_times(cron: &cron::Schedule, after: Timestamp, until: Timestamp) -> (Vec<Timestamp>, bool) {
    let mut before = until.plus(ONE_MICROSECOND);
    let newest_first = std::iter::from_fn(|| {
        before = cron.prev(before).filter(|planned| *planned > after)?;
        Some(before)
    });
    let mut found: Vec<_> = newest_first.take(MAX_TIMES_DECIDED_AT_ONCE + 1).collect();
    let has_omitted_older = found.len() > MAX_TIMES_DECIDED_AT_ONCE;
    found.truncate(MAX_TIMES_DECIDED_AT_ONCE);
    found.reverse();
    (found, has_omitted_older)
}

/// The action of a schedule at a planned time. The context of an event names the schedule and the planned time.
pub(super) fn action_at_planned_time(schedule: &ScheduleSpec, planned: Timestamp) -> FireAction {
    match &schedule.action {
        FireAction::RunCollection(run) => FireAction::RunCollection(run.clone()),
        FireAction::AddOrder(order) => FireAction::AddOrder(order.clone()),
        FireAction::EmitEvent(event) => {
            let mut event = event.clone();
            event.planned_at = Some(planned);
            event.context.insert("schedule".into(), schedule.name.to_string());
            event.context.insert("planned_at".into(), planned.to_string());
            FireAction::EmitEvent(event)
        }
    }
}

#[cfg(test)]
mod tests;
