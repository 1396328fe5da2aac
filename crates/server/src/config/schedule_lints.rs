//! What a schedule does that its author may not expect, each in a sentence about it.

use pointsman_core::fire::{Makes, Overlap};
use pointsman_core::route::ChainRoutes;
use pointsman_core::{Routes, Timestamp};
use pointsman_engine::Schedule;

use super::decode::format_duration;

/// By when it fires, after `now`.
pub(crate) fn lint_schedule_times(schedule: &Schedule, now: Timestamp) -> Vec<String> {
    let mut found = schedule.when.warnings(now);
    found.extend(lint_jitter(schedule, now));
    found
}

/// By what it makes, where events of a type lead to these handlers and chains.
pub(crate) fn lint_fired_action(
    schedule: &Schedule,
    routes: &Routes,
    chains: &ChainRoutes,
) -> Option<String> {
    match &schedule.makes {
        Makes::Event(event) => {
            let kind = &event.kind;
            let is_unrouted = routes.resolve(kind).is_empty() && chains.resolve(kind).is_empty();
            is_unrouted.then(|| format!("emits {kind}, which is routed to no handler"))
        }
        Makes::Order(_) => (schedule.overlap != Overlap::default()).then(|| {
            "`overlap` speaks of an event's tasks; an order with an `id` is not added while it is on its way".into()
        }),
        Makes::Run(_) => None,
    }
}

/// A firing may be put off beyond the one that follows it.
fn lint_jitter(schedule: &Schedule, now: Timestamp) -> Option<String> {
    let mut times = schedule.when.upcoming(now);
    let gap = times.next().zip(times.next()).map(|(first, second)| second.since(first))?;
    let jitter = schedule.jitter;
    (jitter > gap).then(|| {
        format!(
            "is put off by up to {}, but fires again after {}",
            format_duration(jitter),
            format_duration(gap)
        )
    })
}
