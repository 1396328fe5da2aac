//! The room that makes what has a time: the events, tasks and orders of schedules, at their planned times.
//!
//! ```text
//!   store.plan ──▶ where each schedule stands ──▶ agenda ──due──▶ policy ──▶ store.settle ──▶ the next time
//!       ▲                                                                          │
//!       └── at the start, when something else is set up, when a rule is lifted, and every half minute
//! ```
//!
//! Several nodes may have the same schedules, and any of them may die around a planned time. All that they know
//! of the past is in the store: up to which time a schedule is settled, and a row for each time. The row and what
//! it makes are one transaction, and a time has one row; so a time fires once, and what a node did not get to is
//! still to be settled by the next. Nothing here needs a leader.
//!
//! Times follow the node's [`TimeSource`](crate::TimeSource). Whether a planned time fires is decided by its row alone: if
//! rows were written by a clock that was ahead, those times are not repeated, and all the others fire.
//!
//! Every planned time has a row in the ledger, up to a bound: of a gap of more than a thousand times the newest
//! thousand are written down and the older ones passed over, which the log tells.
//!
//! When the store does not answer, everything is tried again after a second.

mod due_queue;
mod policy;
#[cfg(test)]
mod simulation;

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::chain::OrderKey;
use pointsman_core::fire::{Fire, MISSED, Makes, Outcome, Overlap, Punctual, Settle, Skipped};
use pointsman_core::store::{Firing, Plan, Standing, StoreError};
use pointsman_core::{Event, Timestamp};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub use due_queue::DueQueue;
use policy::{DueTimes, FireDecision};

use crate::node::Node;
use crate::{ScheduleSpec, Setup};

/// How often the store is asked where the schedules stand: changes that this node is not told of, and a clock
/// that is put right, are noticed within it.
const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// How soon a store is tried again that did not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How many planned times are settled in one transaction.
const SETTLE_BATCH: usize = 500;

/// The room.
pub(crate) struct Clock {
    node: Arc<Node>,
    setup: Arc<Setup>,
    /// Up to which time each schedule is settled, in the order of the setup.
    settled_until: Vec<Timestamp>,
    due_queue: DueQueue,
}

/// A planned time on its way to the store, and the place of its schedule in the setup.
struct PendingFiring {
    schedule_index: usize,
    firing: Firing,
}

impl Clock {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, setup: Arc::default(), settled_until: vec![], due_queue: DueQueue::new() }
    }

    /// Runs until told to stop. It may be cut short anywhere: what is not settled then is settled later.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.fire_repeatedly()).await;
    }

    async fn fire_repeatedly(&mut self) {
        let node = self.node.clone();
        let mut reconfigured = node.subscribe_setup_changes();
        let mut refresh_at = Instant::now();
        loop {
            if !node.time.may_fire_and_prune() {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
            if refresh_at <= Instant::now() {
                let result = self.refresh_schedules(node.time.now()).await;
                refresh_at =
                    Instant::now() + if self.ok_or_log(result) { REFRESH_INTERVAL } else { RETRY_INTERVAL };
            }
            let result = self.settle_due(node.time.now()).await;
            let duration =
                if self.ok_or_log(result) { self.sleep_duration(node.time.now()) } else { RETRY_INTERVAL };
            tokio::select! {
                changed = reconfigured.changed() => match changed {
                    Ok(()) => refresh_at = Instant::now(),
                    Err(_) => return,
                },
                () = node.rule_lifted.notified() => refresh_at = Instant::now(),
                () = sleep_until(refresh_at) => {}
                () = sleep(duration) => {}
            }
        }
    }

    fn ok_or_log(&self, result: Result<(), StoreError>) -> bool {
        if let Err(error) = &result {
            self.node.count_store_error();
            tracing::debug!(%error, "planned times wait");
        }
        result.is_ok()
    }

    fn sleep_duration(&self, now: Timestamp) -> Duration {
        self.due_queue.next_due().map_or(REFRESH_INTERVAL, |next| next.since(now))
    }

    /// Takes the schedules that are set up, asks where they stand, and makes up for what rules held back.
    async fn refresh_schedules(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let setup = self.node.active_setup().setup.clone();
        let standings =
            self.node.store.plan(setup.schedules.iter().map(plan_of_schedule).collect(), now).await?;
        if !Arc::ptr_eq(&setup, &self.setup) {
            (self.settled_until, self.due_queue) = (Vec::new(), DueQueue::new());
        }
        self.setup = setup;
        for (index, standing) in standings.iter().enumerate() {
            let settled = resume_position(standing.settled, self.settled_until.get(index).copied(), now);
            // What stands where it stood keeps its place on the agenda.
            if self.settled_until.get(index) != Some(&settled) {
                self.set_settled_until(index, settled);
            }
        }
        self.catch_up_paused(&standings, now).await
    }

    /// Notes up to which time a schedule is settled, and when it comes up next.
    fn set_settled_until(&mut self, index: usize, settled: Timestamp) {
        if self.settled_until.len() <= index {
            self.settled_until.resize(index + 1, Timestamp::MIN);
        }
        self.settled_until[index] = settled;
        self.due_queue.set_due_time(index, policy::next_due_time(&self.setup.schedules[index], settled));
    }

    /// Settles what has come up, as far as it makes a batch.
    async fn settle_due(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let (indexes, pending) = self.collect_due(now);
        let result = self.settle_all(pending, now).await;
        for index in indexes {
            self.set_settled_until(index, self.settled_until[index]);
        }
        result
    }

    /// Takes schedules from the agenda until there is enough for a batch. The last one may bring more.
    fn collect_due(&mut self, now: Timestamp) -> (Vec<usize>, Vec<PendingFiring>) {
        let (mut indexes, mut pending) = (Vec::new(), Vec::new());
        while pending.len() < SETTLE_BATCH
            && let Some(index) = self.due_queue.pop_due(now)
        {
            indexes.push(index);
            let schedule = &self.setup.schedules[index];
            let DueTimes { times, has_omitted_older } =
                policy::decide_due_times(schedule, self.settled_until[index], now);
            if has_omitted_older {
                tracing::warn!(
                    schedule = %schedule.name,
                    after = %self.settled_until[index],
                    written = times.len(),
                    "the gap is too long for its ledger: only the newest planned times are written down"
                );
            }
            pending.extend(times.into_iter().map(|(planned, decision)| {
                let settle = match decision {
                    FireDecision::Fire(when) => fire_settlement(schedule, planned, when),
                    FireDecision::Skip => Settle::Skip,
                };
                PendingFiring {
                    schedule_index: index,
                    firing: Firing { schedule: schedule.name.clone(), planned, settle },
                }
            }));
        }
        (indexes, pending)
    }

    /// Settles these in order, in as few transactions as may be. What was settled is noted also if a later
    /// transaction fails.
    async fn settle_all(&mut self, pending: Vec<PendingFiring>, now: Timestamp) -> Result<(), StoreError> {
        let mut pending = pending.into_iter().peekable();
        while pending.peek().is_some() {
            let (positions, firings): (Vec<_>, Vec<_>) = pending
                .by_ref()
                .take(SETTLE_BATCH)
                .map(|PendingFiring { schedule_index: index, firing }| ((index, firing.planned), firing))
                .unzip();
            self.settle_batch(firings, now).await?;
            for (index, planned) in positions {
                self.settled_until[index] = planned;
            }
        }
        Ok(())
    }

    /// Settles one batch and tells of what it created.
    async fn settle_batch(
        &self,
        firings: Vec<Firing>,
        now: Timestamp,
    ) -> Result<Vec<(Fire, bool)>, StoreError> {
        let cancels = firings.iter().any(
            |firing| matches!(firing.settle, Settle::Fire { overlap, .. } if overlap == Overlap::Cancel),
        );
        let makes_order =
            |firing: &Firing| matches!(&firing.settle, Settle::Fire { makes: Makes::Order(_), .. });
        let orders: Vec<bool> = firings.iter().map(makes_order).collect();
        let rows = self.node.store.settle(firings, now).await?;
        let written = rows.iter().zip(orders).filter(|((_, written), _)| *written);
        self.notify_created(written.map(|((fire, _), order)| (fire, order))).await;
        if cancels {
            // What it ended may run here.
            self.node.attempt_check_requested.notify_one();
        }
        Ok(rows)
    }

    /// Wakes whoever waits for what these firings made; with each comes whether that is an order.
    async fn notify_created<'a>(&self, fires: impl Iterator<Item = (&'a Fire, bool)>) {
        let node = &self.node;
        let created: Vec<_> =
            fires.filter(|(fire, _)| !matches!(fire.outcome, Outcome::Skipped(_))).collect();
        if created.is_empty() {
            return;
        }
        // What tells of an order is the engine's own: nobody emitted it.
        let emitted = created.iter().filter(|(fire, order)| fire.event.is_some() && !order).count();
        node.metrics.events_emitted.inc_by(emitted as u64);
        if let Some(last) = created.iter().filter_map(|(fire, _)| fire.event).max() {
            node.signals.advance_journal_head(last);
        }
        node.signals.notify_work();
        if node.task_changes.has_subscribers()
            && let Err(error) = self.notify_watchers(&created).await
        {
            node.count_store_error();
            tracing::warn!(%error, "those who watch are not told of some new tasks");
        }
    }

    /// Shows the tasks that these firings made to those who watch.
    async fn notify_watchers(&self, created: &[(&Fire, bool)]) -> Result<(), StoreError> {
        let node = &self.node;
        for (fire, order) in created {
            let view = match fire.event {
                Some(event) => node.store.event(event).await?,
                None => None,
            };
            if let (true, Some(view)) = (*order, &view) {
                if let Some(order) = order_of_event(&view.event) {
                    node.notify_order_step(&view.event.tenant, &order).await?;
                }
                continue;
            }
            let tasks = match (view, &fire.task) {
                (Some(view), _) => view.tasks,
                (None, Some(task)) => {
                    node.store.task(task).await?.map(|(task, _)| task).into_iter().collect()
                }
                (None, None) => vec![],
            };
            for task in tasks {
                node.task_changes.notify_task_state(task, fire.at);
            }
        }
        Ok(())
    }

    /// Makes up for planned times that a rule held back which no longer stands.
    async fn catch_up_paused(&self, standings: &[Standing], now: Timestamp) -> Result<(), StoreError> {
        for ((schedule, standing), settled) in
            self.setup.schedules.iter().zip(standings).zip(&self.settled_until)
        {
            let Some(unmet) = standing.unmet.filter(|_| !standing.held) else { continue };
            let mut is_paused_again = false;
            for times in policy::times_to_catch_up(schedule, unmet, *settled, now).chunks(SETTLE_BATCH) {
                let firing = |planned: &Timestamp| Firing {
                    schedule: schedule.name.clone(),
                    planned: *planned,
                    settle: fire_settlement(schedule, *planned, Punctual::CaughtUp),
                };
                let rows = self.settle_batch(times.iter().map(firing).collect(), now).await?;
                is_paused_again |= rows.iter().any(|(row, _)| row.outcome == Outcome::Skipped(Skipped::Held));
            }
            // What a new rule holds is made up for when that one is lifted.
            if !is_paused_again {
                self.node.store.made_up(&schedule.name, *settled).await?;
            }
        }
        Ok(())
    }
}

/// The order that an event tells of.
fn order_of_event(event: &Event) -> Option<OrderKey> {
    event.key.as_ref()?.as_str().strip_prefix("Order:")?.parse().ok()
}

/// What the store is told of a schedule.
fn plan_of_schedule(schedule: &ScheduleSpec) -> Plan {
    let (expression, zone) = (schedule.cron.expression(), schedule.cron.zone());
    let expression = format!("{expression} {} {}", zone.name(), expression.dialect());
    Plan { name: schedule.name.clone(), expression }
}

fn fire_settlement(schedule: &ScheduleSpec, planned: Timestamp, when: Punctual) -> Settle {
    Settle::Fire { makes: policy::action_for_time(schedule, planned), when, overlap: schedule.overlap }
}

/// From where on planned times are looked at. `settled` is the latest time that has a row. If it is still to come, a clock
/// was ahead when the row was written, and the rows themselves decide: times that have one are not repeated, and all the
/// others fire. This node then continues where it is, or with the times that are not missed yet.
fn resume_position(settled: Timestamp, here: Option<Timestamp>, now: Timestamp) -> Timestamp {
    if settled <= now {
        return settled;
    }
    here.filter(|here| *here <= now).unwrap_or_else(|| now.minus(MISSED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_written_ahead_of_time_does_not_stop_a_schedule() {
        let (now, minute) = (Timestamp::from_millis(1_800_000_000_000), Duration::from_secs(60));
        for past in [now.minus(minute * 60 * 24), now.minus(minute), now] {
            assert_eq!(resume_position(past, None, now), past);
            assert_eq!(resume_position(past, Some(now.minus(minute * 2)), now), past);
        }
        for ahead in [now.plus(minute), now.plus(minute * 50), now.plus(minute * 60 * 24 * 365)] {
            assert_eq!(resume_position(ahead, None, now), now.minus(MISSED));
            assert_eq!(resume_position(ahead, Some(ahead), now), now.minus(MISSED));
            let here = now.minus(minute / 2);
            assert_eq!(resume_position(ahead, Some(here), now), here);
        }
    }

    #[test]
    fn a_plan_contains_everything_that_affects_planned_times() {
        use pointsman_core::cron::{Dialect, Expression, Schedule as When, Zone};
        use pointsman_core::{HandlingKey, NewEvent, ScheduleName};
        let expression_of = |text, dialect, zone| {
            let when = When::new(Expression::parse(text, dialect).unwrap(), Zone::named(zone).unwrap());
            let event = NewEvent::of(HandlingKey::new("tick").unwrap());
            let name = ScheduleName::new("s").unwrap();
            plan_of_schedule(&ScheduleSpec::new(name, when, Makes::Event(Box::new(event)))).expression
        };
        let berlin = "Europe/Berlin";
        assert_eq!(expression_of("0 3 *  * 1", Dialect::Auto, berlin), "0 3 * * 1 Europe/Berlin vixie");
        assert_eq!(
            expression_of("0 3 * * 1", Dialect::Vixie, berlin),
            expression_of("0 3 * * 1", Dialect::Auto, berlin)
        );
        assert_ne!(
            expression_of("0 3 * * ?", Dialect::Quartz, berlin),
            expression_of("0 3 * * *", Dialect::Auto, berlin)
        );
        assert_ne!(
            expression_of("0 3 * * 1", Dialect::Auto, "UTC"),
            expression_of("0 3 * * 1", Dialect::Auto, berlin)
        );
    }
}
