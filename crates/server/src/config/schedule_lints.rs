//! Warnings about schedules that may do something their author does not expect. Each is a phrase about the schedule.

use pointsman_core::fire::{FireAction, OverlapPolicy};
use pointsman_core::route::ChainRoutes;
use pointsman_core::{Routes, Timestamp};
use pointsman_engine::ScheduleSpec;

use super::decode::format_duration;

/// Warnings about the times at which a schedule fires after `now`.
pub(crate) fn lint_schedule_times(schedule: &ScheduleSpec, now: Timestamp) -> Vec<String> {
    let mut found = schedule.cron.warnings(now);
    found.extend(lint_jitter(schedule, now));
    found
}

/// The warning about the event, run or order that a schedule creates, given these routes.
pub(crate) fn lint_fire_action(
    schedule: &ScheduleSpec,
    routes: &Routes,
    chains: &ChainRoutes,
) -> Option<String> {
    match &schedule.action {
        FireAction::EmitEvent(event) => {
            let event_type = &event.event_type;
            let is_unrouted = routes.find_handlers_of_event_type(event_type).is_empty()
                && chains.find_chains_of_event_type(event_type).is_empty();
            is_unrouted.then(|| format!("emits {event_type}, which is routed to no handler"))
        }
        FireAction::AddOrder(_) => (schedule.overlap != OverlapPolicy::default()).then(|| {
            "`overlap` applies to tasks of events; an order with an `id` is not added while it runs".into()
        }),
        FireAction::RunCollection(_) => None,
    }
}

/// Warns if the jitter can delay a firing beyond the next one.
fn lint_jitter(schedule: &ScheduleSpec, now: Timestamp) -> Option<String> {
    let mut times = schedule.cron.upcoming(now);
    let gap = times.next().zip(times.next()).map(|(first, second)| second.duration_since(first))?;
    let jitter = schedule.jitter;
    (jitter > gap).then(|| {
        format!(
            "is delayed by up to {}, but fires again after {}",
            format_duration(jitter),
            format_duration(gap)
        )
    })
}
