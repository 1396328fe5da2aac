//! Carries out lifecycle transitions: reads a task, asks [`transition`], and writes the result.

use std::borrow::Cow;
use std::sync::Arc;

use pointsman_core::task::lifecycle::{TaskEffect, transition};
use pointsman_core::task::{
    AttemptOutcome, CollectionRun, QueueSubject, TaskCommand, TaskCommandError, TaskLifecycle, TaskSeq,
    TaskState, TaskSubject,
};
use pointsman_core::{EventId, HandlerDef, Priority, SourceCollection, Timestamp};

use crate::error::{Fault, TableResult};
use crate::lanes::TaskGrouping;
use crate::orders::step_outcome_of_command;
use crate::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, QueueId, SyncGatedTask, TaskPhase, WaitingTask,
};
use crate::tables::Tables;
use crate::task_events::TaskAfterCommand;
use crate::writer::Txn;
use crate::writer_state::{RegisteredHandler, RunningTask};

/// Output of an attempt that is stored with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptOutput<'a> {
    pub(crate) error: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    /// Return code of a failed attempt.
    pub(crate) return_code: i64,
}

impl Default for AttemptOutput<'_> {
    fn default() -> Self {
        Self { error: None, result: None, return_code: 1 }
    }
}

impl<'a> AttemptOutput<'a> {
    pub(crate) fn from_error(error: &'a str) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Applies a command to an active or archived task. A rejected command changes nothing.
    pub(crate) fn apply_task_command(
        &mut self,
        seq: TaskSeq,
        command: TaskCommand,
        output: AttemptOutput<'_>,
        now: Timestamp,
    ) -> TableResult<Result<TaskLifecycle, TaskCommandError>> {
        match self.read_cached_or_active_task(seq)? {
            Some(task_row) => self.apply_command_to_active_task(task_row, command, output, now),
            None => match self.tables.read_archived_task(seq)? {
                Some(archived_row) => self.apply_command_to_archived_task(archived_row, command, now),
                None => Ok(Err(TaskCommandError::NoSuchTask)),
            },
        }
    }

    /// Returns an unfinished task, from the cache of running tasks or from the table.
    pub(crate) fn read_cached_or_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        match self.state.running_tasks.get(&seq) {
            Some(running) => Ok(Some(running.row.clone())),
            None => self.tables.read_active_task(seq),
        }
    }

    pub(crate) fn apply_command_to_active_task(
        &mut self,
        task_row: ActiveTaskRow,
        command: TaskCommand,
        output: AttemptOutput<'_>,
        now: Timestamp,
    ) -> TableResult<Result<TaskLifecycle, TaskCommandError>> {
        let handler = self.state.handler(self.state.queue(task_row.queue)?.handler)?.clone();
        let task_row = if command == TaskCommand::AdoptMissing {
            self.regroup_task(task_row, &handler)?
        } else {
            task_row
        };
        let def = self.effective_handler_def(&task_row, &handler)?;
        let (lifecycle, effects) = match transition(task_row.seq, task_row.lifecycle, command, &def, now) {
            Ok(outcome) => outcome,
            Err(error) => return Ok(Err(error)),
        };
        if effects.contains(&TaskEffect::JoinLane) && self.is_source_collection_busy(&task_row)? {
            return Ok(Err(TaskCommandError::CollectionBusy));
        }
        let (mut subject, order) = match self.state.running_tasks.remove(&task_row.seq) {
            Some(RunningTask { subject, order, .. }) => (Some(subject), order),
            None => {
                if task_row.phase == TaskPhase::Locked {
                    // Another node may have it cached as running.
                    self.tables.invalidate_task_on_peers(task_row.seq);
                }
                (None, None)
            }
        };
        let phase = if effects.contains(&TaskEffect::Archive) {
            // Read before the task is deleted: its event may be stored only because of this task.
            let subject = match &mut subject {
                Some(subject) => subject,
                not_cached => not_cached.insert(self.read_task_subject(&task_row)?),
            };
            self.tables.delete_active_task(&task_row)?;
            self.tables.insert_archived_task(&ArchivedTaskRow::from_ended_task(
                &task_row, subject, lifecycle, now, output,
            ))?;
            self.state.update_counts_for_phase_change(task_row.queue, Some(task_row.phase), None)?;
            self.state.counters.archived_task_count += 1;
            None
        } else {
            let mut task_row = task_row.clone();
            if effects.contains(&TaskEffect::JoinLane) {
                self.join_lane(&mut task_row);
            }
            Some(self.update_unfinished_task(task_row, lifecycle, output.error, now)?)
        };
        for effect in effects {
            match effect {
                TaskEffect::RecordAttempt(outcome) => {
                    self.record_unsuccessful_attempt(&task_row, outcome, output.error, now)?
                }
                TaskEffect::OpenSyncGate => {
                    if let Some(event) = task_row.event.filter(|_| task_row.is_sync) {
                        self.release_gated_tasks(event, now)?;
                    }
                }
                TaskEffect::AdvanceLane => self.unblock_lane_head(task_row.lane, now)?,
                TaskEffect::Archive | TaskEffect::Unarchive | TaskEffect::JoinLane => {}
            }
        }
        self.release_capacity(&task_row, phase, &handler, now)?;
        self.record_step_end(
            &task_row,
            order,
            step_outcome_of_command(&task_row, command, &lifecycle, output),
            now,
        )?;
        let task_after = TaskAfterCommand {
            row_before: &task_row,
            subject: subject.as_ref(),
            lifecycle: &lifecycle,
            output,
        };
        self.publish_attempt_end_if_observed(task_after, &handler, command, now)?;
        Ok(Ok(lifecycle))
    }

    /// Returns the definition of the handler as it applies to a task: a chain node may replace its retry policy.
    fn effective_handler_def<'h>(
        &self,
        task_row: &ActiveTaskRow,
        handler: &'h RegisteredHandler,
    ) -> TableResult<Cow<'h, HandlerDef>> {
        let retry_override = match task_row.order_number {
            Some(_) => self.state.chains.find_retry_override(&self.state.queue(task_row.queue)?.subject),
            None => None,
        };
        Ok(match retry_override {
            Some(retry) => Cow::Owned(HandlerDef { retry: retry.clone(), ..handler.def.clone() }),
            None => Cow::Borrowed(&handler.def),
        })
    }

    /// Assigns the lane, concurrency group and key bucket of a missing task again, by the current definition of its
    /// handler.
    fn regroup_task(
        &mut self,
        mut task_row: ActiveTaskRow,
        handler: &RegisteredHandler,
    ) -> TableResult<ActiveTaskRow> {
        if task_row.event.is_none() {
            return Ok(task_row);
        }
        let subject = self.read_task_subject(&task_row)?;
        let key = subject.key().map(|key| key.as_str());
        let object = self.read_object_number(subject.tenant(), key)?;
        let TaskGrouping { lane, concurrency_group, key_bucket } =
            TaskGrouping::for_object(self.state.hash_salt, handler, object);
        (task_row.lane, task_row.concurrency_group, task_row.key_bucket) =
            (lane, concurrency_group, key_bucket);
        task_row.lifecycle.has_lane = lane.is_some();
        self.tables.set_task_grouping(&task_row)?;
        Ok(task_row)
    }

    /// Lets other tasks use the capacity that a task has released: in its concurrency group and in its handler's
    /// limits.
    fn release_capacity(
        &mut self,
        task_row: &ActiveTaskRow,
        phase: Option<TaskPhase>,
        handler: &RegisteredHandler,
        now: Timestamp,
    ) -> TableResult<()> {
        if let Some(concurrency_group) = task_row.concurrency_group
            && task_row.phase.counts_in_concurrency_group()
            && !phase.is_some_and(TaskPhase::counts_in_concurrency_group)
        {
            self.unblock_in_concurrency_group(concurrency_group, task_row.queue, now)?;
        }
        let has_stopped_running = task_row.phase == TaskPhase::Locked && phase != Some(TaskPhase::Locked);
        if has_stopped_running && self.state.must_check_handler_limits(handler.id)? {
            self.state.refresh_handler_free_slots(handler.id, now)?;
        }
        Ok(())
    }

    /// Returns the subject of an unfinished task. An event is stored as long as it has unfinished tasks.
    pub(crate) fn read_task_subject(&mut self, task_row: &ActiveTaskRow) -> TableResult<TaskSubject> {
        if let Some(order) = self.read_order_of_task(task_row)? {
            return self.build_step_run_of_task(task_row, &order).map(TaskSubject::Step);
        }
        let Some(id) = task_row.event else {
            return self.build_collection_run_of_queue(task_row.queue).map(TaskSubject::CollectionRun);
        };
        if let Some(event) = self.state.recent_events.find_event(id) {
            return Ok(TaskSubject::Event(event));
        }
        let event = self.tables.read_event(id)?;
        let event = event
            .ok_or_else(|| Fault::damaged(format!("the event of task {} does not exist", task_row.seq)))?;
        Ok(TaskSubject::Event(Arc::new(event)))
    }

    fn build_collection_run_of_queue(&self, queue: QueueId) -> TableResult<CollectionRun> {
        let queue = self.state.queue(queue)?;
        let collection = queue
            .collection()
            .ok_or_else(|| Fault::damaged("a task has neither an event, an order nor a collection"))?;
        let source = self.state.handler(queue.handler)?.def.name.clone();
        let source_collection = SourceCollection { source, collection: collection.clone() };
        Ok(CollectionRun { source_collection, tenant: queue.tenant.clone() })
    }

    /// Returns whether a source's task cannot return to its lane, because another task of its collection is queued or
    /// running.
    fn is_source_collection_busy(&mut self, task_row: &ActiveTaskRow) -> TableResult<bool> {
        let queue = self.state.queue(task_row.queue)?;
        let (handler, collection) = (queue.handler, queue.collection().cloned());
        match collection {
            Some(collection) => {
                Ok(self.find_collection_task_in_lane(handler, collection.as_str())?.is_some())
            }
            None => Ok(false),
        }
    }

    /// Puts a task at the end of its lane.
    fn join_lane(&mut self, task_row: &mut ActiveTaskRow) {
        if task_row.lane.is_some() {
            task_row.lane_position = Some(self.state.allocate_task_numbers(1).0);
        }
    }

    /// Applies a command to an archived task, which accepts only [`TaskCommand::Retry`].
    fn apply_command_to_archived_task(
        &mut self,
        mut archived_row: ArchivedTaskRow,
        command: TaskCommand,
        now: Timestamp,
    ) -> TableResult<Result<TaskLifecycle, TaskCommandError>> {
        let queue = self.state.queue(archived_row.queue)?.clone();
        let handler = self.state.handler(queue.handler)?.clone();
        let object = match (&queue.subject, &archived_row.key) {
            (QueueSubject::Events, Some(key)) => self.find_object_number(&queue.tenant, key)?,
            (QueueSubject::Events, None)
            | (QueueSubject::Collection(_) | QueueSubject::ChainNode { .. }, _) => None,
        };
        let grouping = match &queue.subject {
            QueueSubject::Collection(collection) => {
                TaskGrouping::for_source_collection(self.state.hash_salt, handler.id, collection.as_str())
            }
            QueueSubject::Events => TaskGrouping::for_object(self.state.hash_salt, &handler, object),
            QueueSubject::ChainNode { .. } if command == TaskCommand::Retry => {
                return Ok(Err(TaskCommandError::IsOrderStep));
            }
            QueueSubject::ChainNode { .. } => TaskGrouping::default(),
        };
        archived_row.lifecycle.has_lane = grouping.lane.is_some();
        let (lifecycle, _) =
            match transition(archived_row.seq, archived_row.lifecycle, command, &handler.def, now) {
                Ok(outcome) => outcome,
                Err(error) => return Ok(Err(error)),
            };
        if let Some(event) = archived_row.event {
            let is_deleted = archived_row.key.is_some() && object.is_none();
            if is_deleted || self.tables.read_event(event)?.is_none() {
                return Ok(Err(TaskCommandError::EventExpired));
            }
            if let Some(key) =
                archived_row.key.as_deref().filter(|_| event <= self.state.counters.expired_up_to)
            {
                self.mark_object_in_use(&queue.tenant, key, now)?;
            }
        }
        let priority = Priority::try_from(archived_row.priority).map_err(Fault::damaged)?;
        let mut task_row = ActiveTaskRow {
            seq: archived_row.seq,
            queue: archived_row.queue,
            event: archived_row.event,
            order_number: None,
            phase: TaskPhase::SyncGated,
            lane: grouping.lane,
            lane_position: None,
            concurrency_group: grouping.concurrency_group,
            key_bucket: grouping.key_bucket,
            is_sync: archived_row.is_sync,
            sync_stage: archived_row.sync_stage,
            priority: archived_row.priority,
            score: handler.def.limits.task_score_in_queue(priority, archived_row.created_at),
            rank: 0,
            prev_sent_event: archived_row.prev_sent_event,
            planned_at: archived_row.planned_at,
            created_at: archived_row.created_at,
            started_at: archived_row.started_at,
            error: archived_row.error.clone(),
            lifecycle,
        };
        if self.is_source_collection_busy(&task_row)? {
            return Ok(Err(TaskCommandError::CollectionBusy));
        }
        self.tables.delete_archived_task(archived_row.seq)?;
        self.state.counters.archived_task_count -= 1;
        self.join_lane(&mut task_row);
        (task_row.phase, task_row.rank) = self.phase_in_state_new(&task_row, now, now)?;
        self.tables.insert_active_task(&task_row)?;
        self.state.update_counts_for_phase_change(task_row.queue, None, Some(task_row.phase))?;
        Ok(Ok(lifecycle))
    }

    /// Writes the new state of a task that stays unfinished; returns its new phase.
    fn update_unfinished_task(
        &mut self,
        mut task_row: ActiveTaskRow,
        lifecycle: TaskLifecycle,
        error: Option<&str>,
        now: Timestamp,
    ) -> TableResult<TaskPhase> {
        let before = task_row.phase;
        (task_row.phase, task_row.rank) = match lifecycle.state {
            TaskState::New { due } => self.phase_in_state_new(&task_row, due, now)?,
            TaskState::Scheduled => (TaskPhase::Scheduled, task_row.rank),
            TaskState::Locked(_) => (TaskPhase::Locked, task_row.rank),
            TaskState::Error { .. } => (TaskPhase::Halted, 0),
            TaskState::Missing { .. } => (TaskPhase::Missing, 0),
            TaskState::Done => return Err(Fault::damaged("a task that is done is stored as unfinished")),
        };
        // The error that the task had before its handler went missing is obsolete once the task is adopted.
        let error = error.map(str::to_string).or(task_row.error.take());
        task_row.error = error.filter(|_| before != TaskPhase::Missing);
        task_row.lane_position = task_row.lane_position.filter(|_| lifecycle.in_lane);
        task_row.lifecycle = lifecycle;
        task_row.started_at = task_row.lease().map(|lease| lease.since).or(task_row.started_at);
        self.tables.update_active_task(&task_row)?;
        self.state.update_counts_for_phase_change(task_row.queue, Some(before), Some(task_row.phase))?;
        if task_row.phase == TaskPhase::BlockedByTask {
            // The task gave up its position, so the head of the lane may run.
            self.unblock_lane_head(task_row.lane_position.and(task_row.lane), now)?;
        }
        Ok(task_row.phase)
    }

    /// Returns the phase that a task in state `new` gets, and its rank if it becomes ready.
    fn phase_in_state_new(
        &mut self,
        task_row: &ActiveTaskRow,
        due: Timestamp,
        now: Timestamp,
    ) -> TableResult<(TaskPhase, i64)> {
        // A task that was in another phase has passed the sync gate already.
        let may_be_gated = matches!(task_row.phase, TaskPhase::Missing | TaskPhase::SyncGated);
        if let Some(event) = task_row.event.filter(|_| may_be_gated)
            && task_row.sync_stage > 0
            && self.find_gating_sync_stage(event)?.is_some_and(|stage| stage < task_row.sync_stage)
        {
            return Ok((TaskPhase::SyncGated, 0));
        }
        if let (Some(lane), Some(lane_position)) = (task_row.lane, task_row.lane_position)
            && !self.is_lane_head(lane, lane_position)?
        {
            return Ok((TaskPhase::BlockedByTask, 0));
        }
        self.phase_when_unblocked(&WaitingTask::from_row(task_row, due), now)
    }

    /// Returns the sync stage of the first synchronous task of an event that has not ended its first attempt yet. Tasks of
    /// later sync stages wait for it.
    fn find_gating_sync_stage(&mut self, event: EventId) -> TableResult<Option<i64>> {
        for sync_task in self.list_unfinished_sync_tasks(event)? {
            if !sync_task.lifecycle.out_of_order && self.is_first_attempt_pending(&sync_task)? {
                return Ok(Some(sync_task.sync_stage));
            }
        }
        Ok(None)
    }

    /// Lists the synchronous tasks of an event that are waiting, scheduled or locked, by sync stage.
    pub(crate) fn list_unfinished_sync_tasks(&mut self, event: EventId) -> TableResult<Vec<ActiveTaskRow>> {
        let mut tasks = self.tables.list_active_tasks_of_event(event)?;
        tasks.retain(|task| task.is_sync && task.phase.is_waiting_or_running());
        Ok(tasks)
    }

    /// Returns whether no attempt of a task has ended, other than by a release.
    fn is_first_attempt_pending(&mut self, task_row: &ActiveTaskRow) -> TableResult<bool> {
        if task_row.lifecycle.attempt == 0 {
            return Ok(true);
        }
        let outcomes = self.tables.list_attempt_outcomes(task_row.seq)?;
        Ok(outcomes.iter().all(|outcome| *outcome == AttemptOutcome::Released))
    }

    /// Moves gated tasks of the event on, unless they still wait for a synchronous task.
    fn release_gated_tasks(&mut self, event: EventId, now: Timestamp) -> TableResult<()> {
        let gated_tasks = self.tables.list_sync_gated_tasks(event)?;
        if gated_tasks.is_empty() {
            return Ok(());
        }
        let gating_stage = self.find_gating_sync_stage(event)?;
        for SyncGatedTask { task: waiting, lane, lane_position, sync_stage } in gated_tasks {
            if gating_stage.is_some_and(|stage| stage < sync_stage) {
                // The remaining tasks have the same or a later sync stage, so they are gated too.
                break;
            }
            let is_head = match (lane, lane_position) {
                (Some(lane), Some(lane_position)) => self.is_lane_head(lane, lane_position)?,
                _ => true,
            };
            if is_head {
                self.advance_waiting_task(&waiting, TaskPhase::SyncGated, now)?;
            } else {
                self.tables.set_task_phase(waiting.seq, TaskPhase::BlockedByTask, 0)?;
                self.state.update_counts_for_phase_change(
                    waiting.queue,
                    Some(TaskPhase::SyncGated),
                    Some(TaskPhase::BlockedByTask),
                )?;
            }
        }
        Ok(())
    }

    fn record_unsuccessful_attempt(
        &mut self,
        task_row: &ActiveTaskRow,
        outcome: AttemptOutcome,
        error: Option<&str>,
        now: Timestamp,
    ) -> TableResult<()> {
        if outcome == AttemptOutcome::Succeeded {
            return Ok(());
        }
        let ActiveTaskRow { seq: task, started_at, lifecycle: TaskLifecycle { attempt: number, .. }, .. } =
            *task_row;
        let started_at = started_at.unwrap_or(now);
        self.tables.write_attempt(&AttemptRow { task, number, started_at, ended_at: now, outcome, error })
    }
}
