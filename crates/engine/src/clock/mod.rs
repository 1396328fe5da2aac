//! The clock: creates the events, tasks and orders of schedules at their planned times.
//!
//! ```text
//!   register_schedules ──▶ last recorded time of each ──▶ due queue ──▶ policy ──▶ execute_fire_requests ──▶ the next time
//!       ▲                                                                               │
//!       └── at the start, after a new setup, when a rule is lifted, and every half minute
//! ```
//!
//! Several nodes may have the same schedules, and any of them may die around a planned time. All their state is in the
//! store: the time up to which a schedule is processed, and a ledger row for each planned time. The row and what it
//! creates are one transaction, and a time has one row; so a time fires once, and times that a node did not record are
//! recorded by the next. No leader is needed.
//!
//! Times follow the node's [`TimeSource`](crate::TimeSource). Whether a planned time fires is decided by its row alone:
//! if rows were written by a clock that was ahead, those times are not repeated, and all the others fire.
//!
//! Every planned time has a row in the ledger, up to a limit: after a gap of more than a thousand planned times only
//! the newest thousand get a row, and the log says so.
//!
//! When the store fails, everything is retried after a second.

mod due_queue;
mod planned_time_decisions;
#[cfg(test)]
mod simulation;

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::chain::OrderKey;
use pointsman_core::fire::{
    Fire, FireAction, FireDecision, FireOutcome, MISSED_AFTER, OverlapPolicy, Punctuality, SkipReason,
};
use pointsman_core::store::{FireRequest, ScheduleDef, ScheduleProgress, StoreError};
use pointsman_core::{ErrorChain, Event, Timestamp};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub use due_queue::DueQueue;
use planned_time_decisions::{DueTimeDecisions, PlannedTimeDecision};

use crate::node::Node;
use crate::{ScheduleSpec, Setup};

/// How often the schedules are read from the store, so that changes by other nodes and a corrected clock are noticed.
const SCHEDULE_REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The delay before a failed store call is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of planned times that are recorded in one transaction.
const MAX_FIRES_PER_BATCH: usize = 500;

/// The service that fires schedules.
struct Clock {
    node: Arc<Node>,
    setup: Arc<Setup>,
    /// The time up to which each schedule is processed, in the order of the setup.
    processed_up_to: Vec<Timestamp>,
    due_queue: DueQueue,
}

/// A planned time to be recorded in the store, and the index of its schedule in the setup.
struct PendingFire {
    schedule_index: usize,
    request: FireRequest,
}

/// Fires schedules until stopped. May be interrupted anywhere: times that are not recorded by then are recorded later.
pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(Clock::new(node).fire_until_stopped()).await;
}

impl Clock {
    fn new(node: Arc<Node>) -> Self {
        Self { node, setup: Arc::default(), processed_up_to: vec![], due_queue: DueQueue::new() }
    }

    async fn fire_until_stopped(&mut self) {
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
                refresh_at = Instant::now()
                    + if self.is_ok_or_log(result) { SCHEDULE_REFRESH_INTERVAL } else { RETRY_INTERVAL };
            }
            let result = self.record_due_fires(node.time_source.now()).await;
            let duration = if self.is_ok_or_log(result) {
                self.time_until_next_due(node.time_source.now())
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

    /// Whether a store call succeeded. Logs and counts a failure.
    fn is_ok_or_log(&self, result: Result<(), StoreError>) -> bool {
        if let Err(error) = &result {
            self.node.count_store_error();
            tracing::debug!(
                error = %ErrorChain(&error),
                "could not record planned times; retrying in a second. Times that are missed by then fire or are \
                 skipped by their catch-up policy"
            );
        }
        result.is_ok()
    }

    fn time_until_next_due(&self, now: Timestamp) -> Duration {
        self.due_queue.earliest_due_time().map_or(SCHEDULE_REFRESH_INTERVAL, |next| next.duration_since(now))
    }

    /// Reads the active schedules and the times up to which they are processed, and catches up on times that a
    /// rule paused.
    async fn refresh_schedules(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let setup = self.node.active_setup().setup.clone();
        let progress_by_schedule = self
            .node
            .store
            .register_schedules(setup.schedules.iter().map(build_schedule_def).collect(), now)
            .await?;
        if !Arc::ptr_eq(&setup, &self.setup) {
            (self.processed_up_to, self.due_queue) = (Vec::new(), DueQueue::new());
        }
        self.setup = setup;
        for (index, progress) in progress_by_schedule.iter().enumerate() {
            let processed_up_to = choose_processed_up_to(
                progress.processed_up_to,
                self.processed_up_to.get(index).copied(),
                now,
            );
            // A schedule that has not changed keeps its due time.
            if self.processed_up_to.get(index) != Some(&processed_up_to) {
                self.set_processed_up_to(index, processed_up_to);
            }
        }
        self.catch_up_paused_times(&progress_by_schedule, now).await
    }

    /// Sets the time up to which a schedule is processed, and its next due time.
    fn set_processed_up_to(&mut self, index: usize, processed_up_to: Timestamp) {
        if self.processed_up_to.len() <= index {
            self.processed_up_to.resize(index + 1, Timestamp::MIN);
        }
        self.processed_up_to[index] = processed_up_to;
        self.due_queue.set_due_time(
            index,
            planned_time_decisions::next_due_time(&self.setup.schedules[index], processed_up_to),
        );
    }

    /// Records due times as fired or skipped, up to one batch.
    async fn record_due_fires(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let (schedule_indexes, pending) = self.collect_due_fires(now);
        let result = self.record_all_fires(pending, now).await;
        for index in schedule_indexes {
            self.set_processed_up_to(index, self.processed_up_to[index]);
        }
        result
    }

    /// Collects due schedules until their planned times fill a batch. The last schedule may exceed the batch.
    fn collect_due_fires(&mut self, now: Timestamp) -> (Vec<usize>, Vec<PendingFire>) {
        let (mut schedule_indexes, mut pending) = (Vec::new(), Vec::new());
        while pending.len() < MAX_FIRES_PER_BATCH
            && let Some(index) = self.due_queue.pop_due_item(now)
        {
            schedule_indexes.push(index);
            let schedule = &self.setup.schedules[index];
            let DueTimeDecisions { planned_times_with_decisions: times, has_omitted_older } =
                planned_time_decisions::decide_which_due_times_fire(
                    schedule,
                    self.processed_up_to[index],
                    now,
                );
            if has_omitted_older {
                tracing::warn!(
                    schedule = %schedule.name,
                    missed_since = %self.processed_up_to[index],
                    recorded_count = times.len(),
                    "schedule has more missed times than its ledger records; only the newest ones are recorded, \
                     older ones are dropped"
                );
            }
            pending.extend(times.into_iter().map(|(planned, decision)| {
                let decision = match decision {
                    PlannedTimeDecision::Fire(punctuality) => {
                        build_fire_decision(schedule, planned, punctuality)
                    }
                    PlannedTimeDecision::Skip => FireDecision::Skip,
                };
                PendingFire {
                    schedule_index: index,
                    request: FireRequest { schedule: schedule.name.clone(), planned_at: planned, decision },
                }
            }));
        }
        (schedule_indexes, pending)
    }

    /// Records these times in order, in as few transactions as possible. If a transaction fails,
    /// the earlier ones stay recorded.
    async fn record_all_fires(
        &mut self,
        pending: Vec<PendingFire>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut pending = pending.into_iter().peekable();
        while pending.peek().is_some() {
            let (recorded_times, requests): (Vec<_>, Vec<_>) = pending
                .by_ref()
                .take(MAX_FIRES_PER_BATCH)
                .map(|PendingFire { schedule_index, request }| {
                    ((schedule_index, request.planned_at), request)
                })
                .unzip();
            self.record_fire_batch(requests, now).await?;
            for (index, planned) in recorded_times {
                self.processed_up_to[index] = planned;
            }
        }
        Ok(())
    }

    /// Records one batch, and wakes services and watchers for the events, tasks and orders it created. Returns the
    /// fires with whether this call recorded them.
    async fn record_fire_batch(
        &self,
        requests: Vec<FireRequest>,
        now: Timestamp,
    ) -> Result<Vec<(Fire, bool)>, StoreError> {
        let has_cancel_overlap = requests.iter().any(|request| {
            matches!(
                request.decision,
                FireDecision::Fire { overlap, .. } if overlap == OverlapPolicy::Cancel
            )
        });
        let adds_order = |request: &FireRequest| {
            matches!(&request.decision, FireDecision::Fire { action: FireAction::AddOrder(_), .. })
        };
        let adds_order: Vec<bool> = requests.iter().map(adds_order).collect();
        let rows = self.node.store.execute_fire_requests(requests, now).await?;
        let newly_recorded = rows.iter().zip(adds_order).filter(|((_, is_new), _)| *is_new);
        self.wake_services_and_watchers_of_fires(
            newly_recorded.map(|((fire, _), adds_order)| (fire, adds_order)),
        )
        .await;
        if has_cancel_overlap {
            // A task that the batch cancelled may be running on this node.
            self.node.attempt_check_requested.notify_one();
        }
        Ok(rows)
    }

    /// Wakes services and watchers for the events, tasks and orders that these fires created; the flag of a fire is
    /// true if it adds an order.
    async fn wake_services_and_watchers_of_fires<'a>(&self, fires: impl Iterator<Item = (&'a Fire, bool)>) {
        let node = &self.node;
        let fires_with_effect: Vec<_> =
            fires.filter(|(fire, _)| !matches!(fire.outcome, FireOutcome::Skipped(_))).collect();
        if fires_with_effect.is_empty() {
            return;
        }
        // The event of an order is an engine event: it does not count as emitted.
        let emitted = fires_with_effect
            .iter()
            .filter(|(fire, adds_order)| fire.event_id.is_some() && !adds_order)
            .count();
        node.metrics.events_emitted.inc_by(emitted as u64);
        if let Some(last) = fires_with_effect.iter().filter_map(|(fire, _)| fire.event_id).max() {
            node.wake_signals.advance_journal_head(last);
        }
        node.wake_signals.notify_work();
        if node.task_changes.has_subscribers()
            && let Err(error) = self.notify_watchers_of_created_tasks(&fires_with_effect).await
        {
            node.count_store_error();
            tracing::warn!(
                error = %ErrorChain(&error),
                "watchers were not notified of some tasks that schedules created; the tasks run all the same"
            );
        }
    }

    /// Notifies watchers of the tasks that these fires created.
    async fn notify_watchers_of_created_tasks(
        &self,
        fires_with_effect: &[(&Fire, bool)],
    ) -> Result<(), StoreError> {
        let node = &self.node;
        for (fire, adds_order) in fires_with_effect {
            let view = match fire.event_id {
                Some(event) => node.store.read_event(event).await?,
                None => None,
            };
            if let (true, Some(view)) = (*adds_order, &view) {
                if let Some(order_key) = order_key_of_event(&view.event) {
                    node.notify_watchers_of_next_step(&view.event.tenant, &order_key).await?;
                }
                continue;
            }
            let tasks = match (view, &fire.task) {
                (Some(view), _) => view.tasks,
                (None, Some(task)) => {
                    node.store.read_task(task).await?.map(|(task, _)| task).into_iter().collect()
                }
                (None, None) => vec![],
            };
            for task in tasks {
                node.task_changes.notify_task_state(task, fire.recorded_at);
            }
        }
        Ok(())
    }

    /// Fires planned times that were skipped under a rule that has been lifted, by the catch-up policy.
    async fn catch_up_paused_times(
        &self,
        progress_by_schedule: &[ScheduleProgress],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for ((schedule, progress), processed_up_to) in
            self.setup.schedules.iter().zip(progress_by_schedule).zip(&self.processed_up_to)
        {
            let Some(first_skipped) = progress.first_skipped_while_paused.filter(|_| !progress.paused) else {
                continue;
            };
            let mut is_paused_again = false;
            for times in planned_time_decisions::paused_times_to_catch_up(
                schedule,
                first_skipped,
                *processed_up_to,
                now,
            )
            .chunks(MAX_FIRES_PER_BATCH)
            {
                let fire_request = |planned: &Timestamp| FireRequest {
                    schedule: schedule.name.clone(),
                    planned_at: *planned,
                    decision: build_fire_decision(schedule, *planned, Punctuality::CaughtUp),
                };
                let rows = self.record_fire_batch(times.iter().map(fire_request).collect(), now).await?;
                is_paused_again |=
                    rows.iter().any(|(row, _)| row.outcome == FireOutcome::Skipped(SkipReason::PausedByRule));
            }
            // If a new rule pauses the times again, they are caught up when that rule is lifted.
            if !is_paused_again {
                self.node.store.mark_caught_up(&schedule.name, *processed_up_to).await?;
            }
        }
        Ok(())
    }
}

/// The key of the order that an engine event is about.
fn order_key_of_event(event: &Event) -> Option<OrderKey> {
    event.key.as_ref()?.as_str().strip_prefix("Order:")?.parse().ok()
}

/// Builds the definition of a schedule for the store, with everything that affects its planned times.
fn build_schedule_def(schedule: &ScheduleSpec) -> ScheduleDef {
    let (expression, zone) = (schedule.cron.expression(), schedule.cron.zone());
    let expression = format!("{expression} {} {}", zone.name(), expression.dialect());
    ScheduleDef { name: schedule.name.clone(), expression_zone_and_dialect: expression }
}

fn build_fire_decision(
    schedule: &ScheduleSpec,
    planned: Timestamp,
    punctuality: Punctuality,
) -> FireDecision {
    FireDecision::Fire {
        action: planned_time_decisions::action_at_planned_time(schedule, planned),
        punctuality,
        overlap: schedule.overlap,
    }
}

/// Chooses the time after which this node examines planned times. `stored` is the latest planned time that has a row.
/// If it is in the future, a clock was ahead when the row was written. This node then keeps its `previous` time, or
/// else starts with the times that do not count as missed yet; times that have a row are not repeated.
fn choose_processed_up_to(stored: Timestamp, previous: Option<Timestamp>, now: Timestamp) -> Timestamp {
    if stored <= now {
        return stored;
    }
    previous.filter(|previous| *previous <= now).unwrap_or_else(|| now.minus(MISSED_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_row_in_the_future_does_not_stop_a_schedule() {
        let (now, minute) = (Timestamp::from_millis(1_800_000_000_000), Duration::from_secs(60));
        for stored in [now.minus(minute * 60 * 24), now.minus(minute), now] {
            assert_eq!(choose_processed_up_to(stored, None, now), stored);
            assert_eq!(choose_processed_up_to(stored, Some(now.minus(minute * 2)), now), stored);
        }
        for stored in [now.plus(minute), now.plus(minute * 50), now.plus(minute * 60 * 24 * 365)] {
            assert_eq!(choose_processed_up_to(stored, None, now), now.minus(MISSED_AFTER));
            assert_eq!(choose_processed_up_to(stored, Some(stored), now), now.minus(MISSED_AFTER));
            let previous = now.minus(minute / 2);
            assert_eq!(choose_processed_up_to(stored, Some(previous), now), previous);
        }
    }

    #[test]
    fn a_schedule_def_contains_everything_that_affects_planned_times() {
        use pointsman_core::cron::{Dialect, Expression, Schedule as CronSchedule, Zone};
        use pointsman_core::{EventType, NewEvent, ScheduleName};
        let expression_of = |text, dialect, zone| {
            let cron =
                CronSchedule::new(Expression::parse(text, dialect).unwrap(), Zone::from_name(zone).unwrap());
            let event = NewEvent::new(EventType::new("tick").unwrap());
            let name = ScheduleName::new("s").unwrap();
            build_schedule_def(&ScheduleSpec::new(name, cron, FireAction::EmitEvent(Box::new(event))))
                .expression_zone_and_dialect
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
