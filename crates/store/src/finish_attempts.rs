//! Ends attempts, together with everything that commits with them.

use std::sync::Arc;

use pointsman_core::limit::TargetHealth;
use pointsman_core::store::{AttemptLogLine, AttemptResult, FinishReceipt, FinishedAttempt};
use pointsman_core::task::lifecycle::transition;
use pointsman_core::task::{Lease, LogLine, TaskCommand, TaskCommandError, TaskSeq, TaskState};
use pointsman_core::{Json, Timestamp};

use crate::claim::PendingClaim;
use crate::error::TableResult;
use crate::lifecycle::AttemptOutput;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::RegisteredHandler;

impl<T: Tables> Txn<'_, T> {
    /// Ends an attempt: applies its result to the task, stores its log lines, and appends the events it emitted.
    pub(crate) fn finish_attempt(
        &mut self,
        attempt: FinishedAttempt,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<Result<FinishReceipt, TaskCommandError>> {
        let FinishedAttempt {
            task_seq: task,
            fence,
            result,
            target_health: target,
            emitted_events,
            log_lines,
        } = attempt;
        // Most attempts report nothing about a target; they need no lookup of the handler.
        let handler = if target.is_some() { self.find_task_handler(task)? } else { None };
        let command = match &result {
            AttemptResult::Succeeded { .. } => TaskCommand::Succeed { fence },
            AttemptResult::Failed { retry_at, permanent, .. } => {
                TaskCommand::Fail { fence, retry_at: *retry_at, permanent: *permanent }
            }
            AttemptResult::Snoozed { until } => TaskCommand::Snooze { fence, until: *until },
            AttemptResult::Released => TaskCommand::Release { fence },
        };
        let output = match &result {
            AttemptResult::Succeeded { result } => {
                AttemptOutput { result: result.as_ref().map(Json::as_str), ..AttemptOutput::default() }
            }
            AttemptResult::Failed { error, return_code, .. } => {
                AttemptOutput { return_code: *return_code, ..AttemptOutput::from_error(error) }
            }
            AttemptResult::Snoozed { .. } | AttemptResult::Released => AttemptOutput::default(),
        };
        let lifecycle = match self.apply_task_command(task, command, output, now)? {
            Ok(lifecycle) => lifecycle,
            Err(error) => return Ok(Err(error)),
        };
        if let (Some(target), Some(handler)) = (target, handler) {
            self.record_target_health(&handler, target, now)?;
        }
        self.append_log_lines(task, log_lines)?;
        let emitted = self.append_events(emitted_events, slots, now)?;
        let due = match lifecycle.state {
            TaskState::New { due } => Some(due),
            TaskState::Scheduled
            | TaskState::Locked(_)
            | TaskState::Done
            | TaskState::Error { .. }
            | TaskState::Missing { .. } => None,
        };
        Ok(Ok(FinishReceipt {
            status: lifecycle.state.status(),
            next_attempt_due_at: due,
            emitted_events: emitted,
        }))
    }

    fn find_task_handler(&mut self, task: TaskSeq) -> TableResult<Option<Arc<RegisteredHandler>>> {
        let queue = match self.state.running_tasks.get(&task) {
            Some(running) => Some(running.row.queue),
            None => self.tables.read_active_task(task)?.map(|task_row| task_row.queue),
        };
        queue.map(|queue| self.state.handler(self.state.queue(queue)?.handler).cloned()).transpose()
    }

    /// Records what an attempt reported about the handler's target. It affects all tasks of the handler, because the
    /// circuit breaker is the handler's.
    fn record_target_health(
        &mut self,
        handler: &RegisteredHandler,
        target: TargetHealth,
        now: Timestamp,
    ) -> TableResult<()> {
        self.state.update_limiter_state(handler.id, |limiter_state| {
            limiter_state.record_target_health(target, &handler.def.retry, now)
        })?;
        self.state.refresh_handler_free_slots(handler.id, now)
    }

    /// Appends log lines of running attempts; drops lines of attempts that have ended. Returns how many lines were
    /// stored.
    pub(crate) fn append_running_attempt_logs(&mut self, lines: Vec<AttemptLogLine>) -> TableResult<usize> {
        let mut stored_count = 0;
        let mut lines = lines.into_iter().peekable();
        while let Some(first) = lines.next() {
            let mut lines_of_attempt = vec![first.line];
            while let Some(next) = lines.next_if(|l| l.task_seq == first.task_seq && l.fence == first.fence) {
                lines_of_attempt.push(next.line);
            }
            let lease =
                self.read_cached_or_active_task(first.task_seq)?.and_then(|task_row| task_row.lease());
            let is_leased = lease.is_some_and(|lease| lease.fence == first.fence);
            if is_leased {
                stored_count += lines_of_attempt.len();
                self.append_log_lines(first.task_seq, lines_of_attempt)?;
            }
        }
        Ok(stored_count)
    }

    /// Releases the task of an attempt whose start was never reported to its claimant, if the commit that began the
    /// attempt took effect. If the commit did not, another attempt may have the same fence, so the whole lease is
    /// compared.
    pub(crate) fn release_unreported_attempt(&mut self, task: TaskSeq, lease: Lease) -> TableResult<()> {
        let now = self.state.last_observed_time();
        if let Some(task_row) =
            self.tables.read_active_task(task)?.filter(|task_row| task_row.lease() == Some(lease))
        {
            let release = TaskCommand::Release { fence: lease.fence };
            // The command is rejected if the task is no longer locked with this fence; then nothing is to be released.
            let _ = self.apply_command_to_active_task(task_row, release, AttemptOutput::default(), now)?;
        }
        Ok(())
    }

    /// Extends the lease of a pull worker that is still running the task.
    pub(crate) fn renew_lease(
        &mut self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> TableResult<Result<(), TaskCommandError>> {
        let Some(task_row) = self.read_cached_or_active_task(task)? else {
            let ended_status = self
                .tables
                .read_archived_task(task)?
                .map(|archived_row| archived_row.lifecycle.state.status());
            return Ok(Err(ended_status.map_or(TaskCommandError::NoSuchTask, TaskCommandError::WrongState)));
        };
        let handler = self.state.handler(self.state.queue(task_row.queue)?.handler)?.clone();
        let renew = TaskCommand::RenewLease { fence, until };
        let lifecycle = match transition(task, task_row.lifecycle, renew, &handler.def, until) {
            Ok((lifecycle, _)) => lifecycle,
            Err(error) => return Ok(Err(error)),
        };
        // Only a worker's lease has an end; a node's lease lasts as long as the node sends heartbeats.
        if let TaskState::Locked(Lease { until: Some(until), .. }) = lifecycle.state {
            self.tables.set_lease_end(task, until)?;
        }
        match self.state.running_tasks.get_mut(&task) {
            Some(running) => running.row.lifecycle = lifecycle,
            None => self.tables.invalidate_task_on_peers(task),
        }
        Ok(Ok(()))
    }

    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.tables.append_log_lines(task, lines)
    }
}
