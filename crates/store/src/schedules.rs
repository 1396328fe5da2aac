//! The fire ledger: one row per planned time, written in the transaction that creates its event, order or run.

use std::collections::BTreeMap;
use std::time::Duration;

use pointsman_core::fire::{
    Fire, FireAction, FireDecision, FireOutcome, OverlapPolicy, Punctuality, SkipReason,
};
use pointsman_core::store::{FireRequest, OrderError, ScheduleDef, ScheduleProgress};
use pointsman_core::task::TaskCommand;
use pointsman_core::{EventId, NewEvent, ScheduleName, TaskId, TaskSeq, Timestamp};

use crate::claim::PendingClaim;
use crate::error::TableResult;
use crate::lifecycle::AttemptOutput;
use crate::row::ScheduleProgressRow;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::{read_named_json, write_named_json};

/// A schedule that no node has registered for this long is deleted.
const DELETE_UNREGISTERED_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The registration of a schedule is recorded at most once in this time.
const REGISTRATION_RECORD_INTERVAL: Duration = Duration::from_secs(3600);

/// The result of processing a planned time: the outcome, and the event or task that was created.
struct FireResult {
    outcome: FireOutcome,
    event: Option<EventId>,
    task: Option<TaskId>,
}

impl FireResult {
    fn from_skip_reason(reason: SkipReason) -> Self {
        Self { outcome: FireOutcome::Skipped(reason), event: None, task: None }
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Starts schedules that are new or have another expression, and deletes those that no node registers any more.
    /// Returns the progress of each registered schedule.
    pub(crate) fn register_schedules(
        &mut self,
        schedules: Vec<ScheduleDef>,
        now: Timestamp,
    ) -> TableResult<Vec<ScheduleProgress>> {
        let mut registered = self.tables.list_schedule_progress()?;
        let mut progress = Vec::with_capacity(schedules.len());
        for schedule in schedules {
            let row = match registered.remove(schedule.name.as_str()) {
                Some(row) if row.expression == schedule.expression_zone_and_dialect => {
                    if row.last_registered_at < now.minus(REGISTRATION_RECORD_INTERVAL) {
                        self.record_schedule_registered(schedule.name.as_str(), &row, now)?;
                    }
                    row
                }
                previous => {
                    let row = ScheduleProgressRow {
                        expression: schedule.expression_zone_and_dialect,
                        processed_up_to: now,
                        next_catch_up: None,
                        last_registered_at: now,
                        last_event: previous.and_then(|row| row.last_event),
                    };
                    self.tables.write_schedule_progress(schedule.name.as_str(), &row)?;
                    row
                }
            };
            progress.push(ScheduleProgress {
                processed_up_to: row.processed_up_to,
                paused: self.state.is_schedule_paused(&schedule.name),
                first_skipped_while_paused: row.next_catch_up,
            });
        }
        self.delete_unregistered_schedules(registered, now)?;
        Ok(progress)
    }

    fn record_schedule_registered(
        &mut self,
        name: &str,
        row: &ScheduleProgressRow,
        now: Timestamp,
    ) -> TableResult<()> {
        self.tables
            .write_schedule_progress(name, &ScheduleProgressRow { last_registered_at: now, ..row.clone() })
    }

    /// Deletes schedules that this node does not register and no other node has registered for a day. If no node
    /// planned any schedule in the meantime, all nodes were down and may be about to come back, and the day starts
    /// again.
    fn delete_unregistered_schedules(
        &mut self,
        not_registered_here: BTreeMap<String, ScheduleProgressRow>,
        now: Timestamp,
    ) -> TableResult<()> {
        let has_recent_activity = self.record_planning_activity(now)?;
        for (name, row) in not_registered_here {
            if !has_recent_activity {
                self.record_schedule_registered(&name, &row, now)?;
            } else if row.last_registered_at < now.minus(DELETE_UNREGISTERED_AFTER) {
                self.tables.delete_schedule_progress(&name)?;
            }
        }
        Ok(())
    }

    /// Records that a node plans schedules now; returns whether a node did so within the last two hours.
    fn record_planning_activity(&mut self, now: Timestamp) -> TableResult<bool> {
        let last: Option<i64> = read_named_json(self.tables, "planned")?;
        let is_within = |time: Duration| last.is_some_and(|last| last >= now.minus(time).micros());
        if !is_within(REGISTRATION_RECORD_INTERVAL) {
            write_named_json(self.tables, "planned", &now.micros())?;
        }
        Ok(is_within(2 * REGISTRATION_RECORD_INTERVAL))
    }

    /// Carries out the clock's decisions about planned times. Returns the row of each, and whether this call wrote it.
    pub(crate) fn process_fire_requests(
        &mut self,
        requests: Vec<FireRequest>,
        now: Timestamp,
    ) -> TableResult<Vec<(Fire, bool)>> {
        requests.into_iter().map(|request| self.process_fire_request(request, now)).collect()
    }

    fn process_fire_request(&mut self, request: FireRequest, now: Timestamp) -> TableResult<(Fire, bool)> {
        let FireRequest { schedule, planned_at, decision } = request;
        let existing = self.tables.read_fire(&schedule, planned_at)?;
        let is_catch_up = matches!(decision, FireDecision::Fire { punctuality: Punctuality::CaughtUp, .. });
        let may_catch_up = is_catch_up && !self.state.is_schedule_paused(&schedule);
        if let Some(fire) = existing
            && !(may_catch_up && fire.outcome == FireOutcome::Skipped(SkipReason::PausedByRule))
        {
            return Ok((fire, false));
        }
        let FireResult { outcome, event, task } =
            self.execute_fire_decision(&schedule, planned_at, decision, now)?;
        let fire = Fire { planned_at, recorded_at: now, outcome, event_id: event, task };
        self.tables.write_fire(&schedule, &fire)?;
        self.record_schedule_progress(&schedule, &fire)?;
        Ok((fire, true))
    }

    /// Advances a schedule past a planned time. A time that a rule skipped is caught up later.
    fn record_schedule_progress(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
        let Some(mut row) = self.tables.read_schedule_progress(schedule.as_str())? else { return Ok(()) };
        row.processed_up_to = row.processed_up_to.max(fire.planned_at);
        let is_skipped_by_rule = fire.outcome == FireOutcome::Skipped(SkipReason::PausedByRule);
        row.next_catch_up = row.next_catch_up.or(is_skipped_by_rule.then_some(fire.planned_at));
        row.last_event = fire.event_id.or(row.last_event);
        self.tables.write_schedule_progress(schedule.as_str(), &row)
    }

    fn execute_fire_decision(
        &mut self,
        schedule: &ScheduleName,
        planned_at: Timestamp,
        decision: FireDecision,
        now: Timestamp,
    ) -> TableResult<FireResult> {
        if self.state.is_schedule_paused(schedule) {
            return Ok(FireResult::from_skip_reason(SkipReason::PausedByRule));
        }
        let FireDecision::Fire { action, punctuality, overlap } = decision else {
            return Ok(FireResult::from_skip_reason(SkipReason::Missed));
        };
        match action {
            FireAction::EmitEvent(event) => {
                self.emit_fired_event(schedule, *event, punctuality, overlap, now)
            }
            FireAction::AddOrder(order) => Ok(match self.add_order_for_event_or_schedule(*order, now)? {
                Ok(added) => FireResult { outcome: punctuality.into(), event: Some(added.event), task: None },
                Err(OrderError::AlreadyExists(..)) => FireResult::from_skip_reason(SkipReason::Overlap),
                Err(_) => FireResult::from_skip_reason(SkipReason::TargetUndefined),
            }),
            FireAction::RunCollection(run) => {
                if overlap == OverlapPolicy::Cancel {
                    let reason = format_overlap_error(schedule);
                    self.cancel_collection_run(
                        &run.source_collection,
                        AttemptOutput::from_error(&reason),
                        now,
                    )?;
                }
                Ok(match self.get_or_create_collection_run(&run, Some(planned_at), now)? {
                    Ok(receipt) if receipt.created => {
                        FireResult { outcome: punctuality.into(), event: None, task: Some(receipt.task) }
                    }
                    Ok(receipt) => FireResult {
                        task: Some(receipt.task),
                        ..FireResult::from_skip_reason(SkipReason::Overlap)
                    },
                    Err(_) => FireResult::from_skip_reason(SkipReason::TargetUndefined),
                })
            }
        }
    }

    fn emit_fired_event(
        &mut self,
        schedule: &ScheduleName,
        event: NewEvent,
        punctuality: Punctuality,
        overlap: OverlapPolicy,
        now: Timestamp,
    ) -> TableResult<FireResult> {
        let unfinished = match overlap {
            OverlapPolicy::Queue => vec![],
            OverlapPolicy::Skip | OverlapPolicy::Cancel => {
                self.list_unfinished_tasks_of_last_event(schedule)?
            }
        };
        if let (OverlapPolicy::Skip, Some(first)) = (overlap, unfinished.first()) {
            let task = self.tables.read_task_with_attempts(*first)?.map(|task| task.id);
            return Ok(FireResult { task, ..FireResult::from_skip_reason(SkipReason::Overlap) });
        }
        let reason = format_overlap_error(schedule);
        for task in unfinished {
            // The command is rejected if the task has ended in the meantime; then there is nothing to cancel.
            let _ =
                self.apply_task_command(task, TaskCommand::Cancel, AttemptOutput::from_error(&reason), now)?;
        }
        let events = self.append_events(vec![event], &mut PendingClaim::default(), now)?;
        Ok(FireResult {
            outcome: punctuality.into(),
            event: events.first().map(|event| event.id),
            task: None,
        })
    }

    /// Lists the tasks of a schedule's last event that are waiting, scheduled or locked, by age.
    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        let last_event =
            self.tables.read_schedule_progress(schedule.as_str())?.and_then(|row| row.last_event);
        let Some(event) = last_event else { return Ok(vec![]) };
        let tasks = self.tables.list_active_tasks_of_event(event)?.into_iter();
        Ok(tasks.filter(|task| task.phase.is_waiting_or_running()).map(|task| task.seq).collect())
    }

    /// Ends the catch-up of planned times up to `up_to`. The first later time that a rule has skipped becomes the next
    /// one to catch up.
    pub(crate) fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        let Some(mut row) = self.tables.read_schedule_progress(schedule.as_str())? else { return Ok(()) };
        let skipped_by_rule = FireOutcome::Skipped(SkipReason::PausedByRule);
        row.next_catch_up = self.tables.find_planned_time_with_outcome(schedule, up_to, &skipped_by_rule)?;
        self.tables.write_schedule_progress(schedule.as_str(), &row)
    }
}

/// Formats the error of a task that its schedule canceled because it fired again.
fn format_overlap_error(schedule: &ScheduleName) -> String {
    format!("the schedule {schedule} fired again")
}
