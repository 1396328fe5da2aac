//! The room that emits what has a time: each schedule at its planned times.
//!
//! Several nodes may have the same schedule, and any of them may die and start again around a planned time.
//! The planned time is a part of the emission's idempotency key, so that whoever comes second gets the answer
//! of the first, and the event is there once.
//!
//! When planned times went by unseen (the machine slept, the store did not answer), the latest of them is
//! emitted and the others are not.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{Emission, Idempotency};
use pointsman_core::{Timestamp, cron};
use sha2::{Digest, Sha256};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Schedule;
use crate::node::Node;
use crate::sequencer::Intake;
use crate::time::now;

/// The longest sleep: a clock that is put right is noticed within it.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// How soon a planned time is tried again that could not be emitted.
const RETRY: Duration = Duration::from_secs(1);

/// The room.
pub(crate) struct Clock {
    node: Arc<Node>,
    intake: Intake,
    plans: Vec<Plan>,
}

/// A schedule and when it is next to be emitted, if ever.
#[derive(Debug, PartialEq)]
struct Plan {
    schedule: Schedule,
    next: Option<Timestamp>,
}

impl Clock {
    pub(crate) fn new(node: Arc<Node>, intake: Intake) -> Self {
        Self { node, intake, plans: vec![] }
    }

    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut reconfigured = self.node.reconfigured();
        self.plan();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = reconfigured.changed() => match changed {
                    Ok(()) => self.plan(),
                    Err(_) => return,
                },
                () = sleep(self.nap()) => self.fire_due().await,
            }
        }
    }

    /// Takes the schedules that are set up. One that stays as it was keeps its place.
    fn plan(&mut self) {
        let now = now();
        let mut old = std::mem::take(&mut self.plans);
        for schedule in &self.node.configured().setup.schedules {
            let kept = old.iter().position(|plan| plan.schedule == *schedule).map(|at| old.swap_remove(at));
            let fresh = || Plan { next: schedule.when.next(now), schedule: schedule.clone() };
            self.plans.push(kept.unwrap_or_else(fresh));
        }
    }

    fn nap(&self) -> Duration {
        let next = self.plans.iter().filter_map(|plan| plan.next).min();
        next.map_or(LONGEST_SLEEP, |next| next.since(now()).min(LONGEST_SLEEP))
    }

    async fn fire_due(&mut self) {
        let now = now();
        let due = self.plans.iter_mut().filter(|plan| plan.next.is_some_and(|next| next <= now));
        let intake = &self.intake;
        futures::future::join_all(due.map(|plan| async move {
            let when = &plan.schedule.when;
            // The clock may have been put back since: then nothing is due any more.
            let Some(planned) = latest(when, now) else {
                plan.next = when.next(now);
                return;
            };
            match intake.emit(emission(&plan.schedule, planned)).await {
                Ok(_) => plan.next = when.next(planned),
                Err(error) => {
                    tracing::warn!(schedule = plan.schedule.name, %planned, %error, "a planned time waits");
                    plan.next = Some(now.plus(RETRY));
                }
            }
        }))
        .await;
    }
}

/// What makes a planned time one. It begins with a character that no producer can send in a key of its own, so
/// that nobody can take a planned time away.
fn planned_key(schedule: &str, planned: Timestamp) -> String {
    format!("\u{1}schedule:{schedule}:{}", planned.micros())
}

/// The emission of one planned time: the same whoever makes it.
fn emission(schedule: &Schedule, planned: Timestamp) -> Emission {
    let key = planned_key(&schedule.name, planned);
    // The digest covers the key alone: a configuration that was changed between two tries does not make the
    // planned time another one.
    let digest = Sha256::digest(&key).into();
    let idempotency = Some(Idempotency { tenant: schedule.emit.tenant.clone(), key, digest });
    Emission { events: vec![schedule.emit.clone()], idempotency }
}

/// The latest planned time up to `now`.
fn latest(when: &cron::Schedule, now: Timestamp) -> Option<Timestamp> {
    when.prev(now.plus(Duration::from_micros(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointsman_core::{HandlingKey, NewEvent};

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_latest_planned_time_may_be_now() {
        let when = cron::Schedule::utc("every 1m").unwrap();
        assert_eq!(latest(&when, at("2026-01-31T12:34:56Z")), Some(at("2026-01-31T12:34:00Z")));
        assert_eq!(latest(&when, at("2026-01-31T12:34:00Z")), Some(at("2026-01-31T12:34:00Z")));
        let when = cron::Schedule::utc("0 3 * * *").unwrap();
        assert_eq!(latest(&when, at("2026-01-31T02:59:59Z")), Some(at("2026-01-30T03:00:00Z")));
    }

    #[test]
    fn a_planned_time_has_one_key_and_one_digest() {
        let emit = NewEvent::of(HandlingKey::new("tick").unwrap());
        let when = cron::Schedule::utc("every 1m").unwrap();
        let schedule = Schedule { name: "minutely".into(), when, emit };
        let planned = Timestamp::from_micros(60_000_000);
        let one = emission(&schedule, planned).idempotency.unwrap();
        assert_eq!(one.key, "\u{1}schedule:minutely:60000000");
        assert_eq!(Some(one.clone()), emission(&schedule, planned).idempotency);
        assert_ne!(Some(one), emission(&schedule, planned.plus(MINUTE)).idempotency);
    }
}
