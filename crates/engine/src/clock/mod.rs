//! The clock: creates the events, tasks and orders of schedules at their planned times.
//!
//! ```text
//!   store.plan ──▶ last resolved time of each schedule ──▶ due queue ──▶ policy ──▶ store.settle ──▶ the next time
//!       ▲                                                                               │
//!       └── at the start, after a new setup, when a rule is lifted, and every half minute
//! ```
//!
//! Several nodes may have the same schedules, and any of them may die around a planned time. All their state is in the
//! store: the time up to which a schedule is resolved, and a ledger row for each planned time. The row and what it
//! creates are one transaction, and a time has one row; so a time fires once, and times that a node did not resolve are
//! resolved by the next. No leader is needed.
//!
//! Times follow the node's [`TimeSource`](crate::TimeSource). Whether a planned time fires is decided by its row alone:
//! if rows were written by a clock that was ahead, those times are not repeated, and all the others fire.
//!
//! Every planned time has a row in the ledger, up to a limit: after a gap of more than a thousand planned times only
//! the newest thousand get a row, and the log says so.
//!
//! When the store fails, everything is retried after a second.

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

/// How often the schedules are read from the store, so that changes by other nodes and a corrected clock are noticed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The delay before a failed store call is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of planned times that are resolved in one transaction.
const RESOLVE_BATCH: usize = 500;

/// The service that fires schedules.
pub(crate) struct Clock {
    node: Arc<Node>,
    setup: Arc<Setup>,
    /// The time up to which each schedule is resolved, in the order of the setup.
    resolved_until: Vec<Timestamp>,
    due_queue: DueQueue,
}

/// A planned time that is sent to the store, and the index of its schedule in the setup.
struct PendingFiring {
    schedule_index: usize,
    firing: Firing,
}

impl Clock {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, setup: Arc::default(), resolved_until: vec![], due_queue: DueQueue::new() }
    }

    /// Runs until stopped. It may be interrupted anywhere: times that are not resolved then are resolved later.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.fire_repeatedly()).await;
    }

    async fn fire_repeatedly(&mut self) {
        let node = self.node.clone();
        let mut reconfigured = node.subscribe_setup_changes();
        let mut refresh_at = Instant::now();
        loop {
            if !node.time_source.may_fire_and_prune() {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
            if refresh_at <= Instant::now() {
                let result = self.refresh_schedules(node.time_source.now()).await;
                refresh_at =
                    Instant::now() + if self.ok_or_log(result) { REFRESH_INTERVAL } else { RETRY_INTERVAL };
            }
            let result = self.resolve_due(node.time_source.now()).await;
            let duration = if self.ok_or_log(result) {
                self.sleep_duration(node.time_source.now())
            } else {
                RETRY_INTERVAL
            };
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
            tracing::debug!(
                %error,
                "could not resolve planned times; retrying in a second, late times fire or are skipped by their \
                 catch-up policy"
            );
        }
        result.is_ok()
    }

    fn sleep_duration(&self, now: Timestamp) -> Duration {
        self.due_queue.next_due().map_or(REFRESH_INTERVAL, |next| next.since(now))
    }

    /// Reads the active schedules and the times up to which they are resolved, and catches up on times that were
    /// paused.
    async fn refresh_schedules(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let setup = self.node.active_setup().setup.clone();
        let standings =
            self.node.store.plan(setup.schedules.iter().map(plan_of_schedule).collect(), now).await?;
        if !Arc::ptr_eq(&setup, &self.setup) {
            (self.resolved_until, self.due_queue) = (Vec::new(), DueQueue::new());
        }
        self.setup = setup;
        for (index, standing) in standings.iter().enumerate() {
            let resolved = resume_position(standing.settled, self.resolved_until.get(index).copied(), now);
            // A schedule that has not changed keeps its due time.
            if self.resolved_until.get(index) != Some(&resolved) {
                self.set_resolved_until(index, resolved);
            }
        }
        self.catch_up_paused(&standings, now).await
    }

    /// Sets the time up to which a schedule is resolved, and its next due time.
    fn set_resolved_until(&mut self, index: usize, resolved: Timestamp) {
        if self.resolved_until.len() <= index {
            self.resolved_until.resize(index + 1, Timestamp::MIN);
        }
        self.resolved_until[index] = resolved;
        self.due_queue.set_due_time(index, policy::next_due_time(&self.setup.schedules[index], resolved));
    }

    /// Resolves due times, up to one batch.
    async fn resolve_due(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let (indexes, pending) = self.collect_due(now);
        let result = self.resolve_all(pending, now).await;
        for index in indexes {
            self.set_resolved_until(index, self.resolved_until[index]);
        }
        result
    }

    /// Collects due schedules until their planned times fill a batch. The last schedule may exceed it.
    fn collect_due(&mut self, now: Timestamp) -> (Vec<usize>, Vec<PendingFiring>) {
        let (mut indexes, mut pending) = (Vec::new(), Vec::new());
        while pending.len() < RESOLVE_BATCH
            && let Some(index) = self.due_queue.pop_due(now)
        {
            indexes.push(index);
            let schedule = &self.setup.schedules[index];
            let DueTimes { times, has_omitted_older } =
                policy::decide_due_times(schedule, self.resolved_until[index], now);
            if has_omitted_older {
                tracing::warn!(
                    schedule = %schedule.name,
                    after = %self.resolved_until[index],
                    written = times.len(),
                    "schedule has more missed times than its ledger records; only the newest ones are recorded, \
                     older ones are dropped"
                );
            }
            pending.extend(times.into_iter().map(|(planned, decision)| {
                let settle = match decision {
                    FireDecision::Fire(when) => fire_resolution(schedule, planned, when),
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

    /// Resolves these times in order, in as few transactions as possible. Resolved times are recorded also if a later
    /// transaction fails.
    async fn resolve_all(&mut self, pending: Vec<PendingFiring>, now: Timestamp) -> Result<(), StoreError> {
        let mut pending = pending.into_iter().peekable();
        while pending.peek().is_some() {
            let (positions, firings): (Vec<_>, Vec<_>) = pending
                .by_ref()
                .take(RESOLVE_BATCH)
                .map(|PendingFiring { schedule_index: index, firing }| ((index, firing.planned), firing))
                .unzip();
            self.resolve_batch(firings, now).await?;
            for (index, planned) in positions {
                self.resolved_until[index] = planned;
            }
        }
        Ok(())
    }

    /// Resolves one batch and notifies of what it created.
    async fn resolve_batch(
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
            // A task that it cancelled may be running on this node.
            self.node.attempt_check_requested.notify_one();
        }
        Ok(rows)
    }

    /// Wakes services and watchers for what these firings created; the flag tells whether that is an order.
    async fn notify_created<'a>(&self, fires: impl Iterator<Item = (&'a Fire, bool)>) {
        let node = &self.node;
        let created: Vec<_> =
            fires.filter(|(fire, _)| !matches!(fire.outcome, Outcome::Skipped(_))).collect();
        if created.is_empty() {
            return;
        }
        // The event of an order is an engine event: it does not count as emitted.
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
            tracing::warn!(%error, "watchers were not notified of some scheduled tasks; the tasks run all the same");
        }
    }

    /// Notifies watchers of the tasks that these firings created.
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

    /// Catches up on planned times that were paused by a rule that has been lifted.
    async fn catch_up_paused(&self, standings: &[Standing], now: Timestamp) -> Result<(), StoreError> {
        for ((schedule, standing), resolved) in
            self.setup.schedules.iter().zip(standings).zip(&self.resolved_until)
        {
            let Some(unmet) = standing.unmet.filter(|_| !standing.held) else { continue };
            let mut is_paused_again = false;
            for times in policy::times_to_catch_up(schedule, unmet, *resolved, now).chunks(RESOLVE_BATCH) {
                let firing = |planned: &Timestamp| Firing {
                    schedule: schedule.name.clone(),
                    planned: *planned,
                    settle: fire_resolution(schedule, *planned, Punctual::CaughtUp),
                };
                let rows = self.resolve_batch(times.iter().map(firing).collect(), now).await?;
                is_paused_again |= rows.iter().any(|(row, _)| row.outcome == Outcome::Skipped(Skipped::Held));
            }
            // Times that a new rule pauses are caught up when that one is lifted.
            if !is_paused_again {
                self.node.store.made_up(&schedule.name, *resolved).await?;
            }
        }
        Ok(())
    }
}

/// The key of the order that an engine event is about.
fn order_of_event(event: &Event) -> Option<OrderKey> {
    event.key.as_ref()?.as_str().strip_prefix("Order:")?.parse().ok()
}

/// The plan of a schedule, as it is registered in the store.
fn plan_of_schedule(schedule: &ScheduleSpec) -> Plan {
    let (expression, zone) = (schedule.cron.expression(), schedule.cron.zone());
    let expression = format!("{expression} {} {}", zone.name(), expression.dialect());
    Plan { name: schedule.name.clone(), expression }
}

fn fire_resolution(schedule: &ScheduleSpec, planned: Timestamp, when: Punctual) -> Settle {
    Settle::Fire { makes: policy::action_for_time(schedule, planned), when, overlap: schedule.overlap }
}

/// The time after which planned times are examined. `resolved` is the latest time that has a row. If it is in the
/// future, a clock was ahead when the row was written, and the rows themselves decide: times that have one are not
/// repeated, and all others fire. This node then continues where it is, or with the times that are not missed yet.
fn resume_position(resolved: Timestamp, here: Option<Timestamp>, now: Timestamp) -> Timestamp {
    if resolved <= now {
        return resolved;
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
