//! The fire ledger: one row per planned time, written in the transaction that creates its event, order or run.

use std::collections::BTreeMap;
use std::time::Duration;

use pointsman_core::fire::{
    Fire, FireAction, FireDecision, FireOutcome, OverlapPolicy, Punctuality, SkipReason,
};
use pointsman_core::store::{FireRequest, OrderError, ScheduleDef, ScheduleProgress};
use pointsman_core::task::TaskCommand;
use pointsman_core::{EventId, NewEvent, ScheduleName, TaskId, Timestamp};

use crate::claim::ClaimSlots;
use crate::error::Result;
use crate::lifecycle::AttemptOutput;
use crate::row::ScheduleRow;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::{read_named_json, write_named_json};

/// A schedule that no node has registered for this long is deleted.
const DELETE_UNREGISTERED_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How often the registration of a schedule is recorded.
const REGISTRATION_RECORD_INTERVAL: Duration = Duration::from_secs(3600);

/// Result of processing a planned time: the outcome, and the event or task it created.
struct FireResult {
    outcome: FireOutcome,
    event: Option<EventId>,
    task: Option<TaskId>,
}

impl FireResult {
    fn from_skip_reason(message: SkipReason) -> Self {
        Self { outcome: FireOutcome::Skipped(message), event: None, task: None }
    }
}

impl<T: Tables> Txn<'_, T> {
    pub(crate) fn register_schedules(
        &mut self,
        plans: Vec<ScheduleDef>,
        now: Timestamp,
    ) -> Result<Vec<ScheduleProgress>> {
        let mut registered = self.tables.list_schedules()?;
        let (mut progress, mut registered_names) = (Vec::with_capacity(plans.len()), Vec::new());
        for plan in plans {
            let is_paused = self.state.is_schedule_paused(&plan.name);
            let before = registered.remove(plan.name.as_str());
            progress.push(match before.filter(|row| row.expression == plan.expression) {
                Some(row) => {
                    if row.last_registered_at < now.minus(REGISTRATION_RECORD_INTERVAL) {
                        registered_names.push(plan.name.to_string());
                    }
                    ScheduleProgress {
                        processed_up_to: row.processed_up_to,
                        paused: is_paused,
                        first_skipped_while_paused: row.next_catch_up,
                    }
                }
                None => {
                    self.tables.start_schedule(&plan.name, &plan.expression, now)?;
                    ScheduleProgress {
                        processed_up_to: now,
                        paused: is_paused,
                        first_skipped_while_paused: None,
                    }
                }
            });
        }
        self.delete_unregistered_schedules(registered, &mut registered_names, now)?;
        if !registered_names.is_empty() {
            self.tables.record_schedules_registered(&registered_names, now)?;
        }
        Ok(progress)
    }

    /// Deletes schedules that no node has registered for a day; another node may have schedules that this one lacks. If
    /// no node planned at all in the meantime, the nodes may be about to come back, and the day starts again.
    fn delete_unregistered_schedules(
        &mut self,
        unnamed: BTreeMap<String, ScheduleRow>,
        registered_names: &mut Vec<String>,
        now: Timestamp,
    ) -> Result<()> {
        if !self.record_planning_activity(now)? {
            registered_names.extend(unnamed.into_keys());
            return Ok(());
        }
        let unregistered_names =
            unnamed.iter().filter(|(_, row)| row.last_registered_at < now.minus(DELETE_UNREGISTERED_AFTER));
        unregistered_names.map(|(name, _)| name).try_for_each(|name| self.tables.delete_schedule(name))
    }

    /// Records that a node plans schedules now; returns whether one did within the last hours.
    fn record_planning_activity(&mut self, now: Timestamp) -> Result<bool> {
        let last: Option<i64> = read_named_json(self.tables, "planned")?;
        let is_within = |time: Duration| last.is_some_and(|last| last >= now.minus(time).micros());
        if !is_within(REGISTRATION_RECORD_INTERVAL) {
            write_named_json(self.tables, "planned", &now.micros())?;
        }
        Ok(is_within(2 * REGISTRATION_RECORD_INTERVAL))
    }

    pub(crate) fn process_fire_requests(
        &mut self,
        firings: Vec<FireRequest>,
        now: Timestamp,
    ) -> Result<Vec<(Fire, bool)>> {
        firings.into_iter().map(|firing| self.process_fire_request(firing, now)).collect()
    }

    fn process_fire_request(&mut self, firing: FireRequest, now: Timestamp) -> Result<(Fire, bool)> {
        let FireRequest { schedule, planned_at: planned, decision: settle } = firing;
        let existing = self.tables.read_fire(&schedule, planned)?;
        let caught_up = matches!(settle, FireDecision::Fire { punctuality: Punctuality::CaughtUp, .. });
        let may_make_up = caught_up && !self.state.is_schedule_paused(&schedule);
        if let Some(fire) = existing
            && !(may_make_up && fire.outcome == FireOutcome::Skipped(SkipReason::PausedByRule))
        {
            return Ok((fire, false));
        }
        let FireResult { outcome, event, task } =
            self.execute_fire_decision(&schedule, planned, settle, now)?;
        let fire = Fire { planned_at: planned, recorded_at: now, outcome, event, task };
        self.tables.write_fire(
            &schedule,
            &fire,
            fire.outcome == FireOutcome::Skipped(SkipReason::PausedByRule),
        )?;
        Ok((fire, true))
    }

    fn execute_fire_decision(
        &mut self,
        schedule: &ScheduleName,
        planned: Timestamp,
        settle: FireDecision,
        now: Timestamp,
    ) -> Result<FireResult> {
        if self.state.is_schedule_paused(schedule) {
            return Ok(FireResult::from_skip_reason(SkipReason::PausedByRule));
        }
        let FireDecision::Fire { action: makes, punctuality: when, overlap } = settle else {
            return Ok(FireResult::from_skip_reason(SkipReason::Missed));
        };
        match makes {
            FireAction::EmitEvent(event) => self.emit_fired_event(schedule, *event, when, overlap, now),
            FireAction::AddOrder(order) => Ok(match self.add_order(*order, now)? {
                Ok(added) => FireResult { outcome: when.into(), event: Some(added.event), task: None },
                Err(OrderError::AlreadyExists(..)) => FireResult::from_skip_reason(SkipReason::Overlap),
                Err(_) => FireResult::from_skip_reason(SkipReason::TargetUndefined),
            }),
            FireAction::RunCollection(run) => {
                if overlap == OverlapPolicy::Cancel {
                    let message = format_overlap_error(schedule);
                    self.cancel_collection_run(
                        &run.source_collection,
                        AttemptOutput::from_error(&message),
                        now,
                    )?;
                }
                Ok(match self.create_collection_run(&run, Some(planned), now)? {
                    Ok(ran) if ran.created => {
                        FireResult { outcome: when.into(), event: None, task: Some(ran.task) }
                    }
                    Ok(ran) => FireResult {
                        task: Some(ran.task),
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
        when: Punctuality,
        overlap: OverlapPolicy,
        now: Timestamp,
    ) -> Result<FireResult> {
        let unfinished = match overlap {
            OverlapPolicy::Queue => vec![],
            OverlapPolicy::Skip | OverlapPolicy::Cancel => {
                self.tables.list_unfinished_schedule_tasks(schedule)?
            }
        };
        if let (OverlapPolicy::Skip, Some(first)) = (overlap, unfinished.first()) {
            let task = self.tables.read_task_with_attempts(*first)?.map(|task| task.id);
            return Ok(FireResult { task, ..FireResult::from_skip_reason(SkipReason::Overlap) });
        }
        let message = format_overlap_error(schedule);
        for task in unfinished {
            // A refusal means that the task has ended in the meantime.
            let _ =
                self.apply_task_command(task, TaskCommand::Cancel, AttemptOutput::from_error(&message), now)?;
        }
        let made = self.append_events(vec![event], &mut ClaimSlots::default(), now)?;
        Ok(FireResult { outcome: when.into(), event: made.first().map(|made| made.id), task: None })
    }

    pub(crate) fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        self.tables.advance_catch_up(schedule, up_to)
    }
}

/// Formats the error of a task that its schedule canceled because it fired again.
fn format_overlap_error(schedule: &ScheduleName) -> String {
    format!("the schedule {schedule} fired again")
}
