//! Ends attempts, together with everything that commits with them.

use std::sync::Arc;

use pointsman_core::limit::Target;
use pointsman_core::store::{Ended, Ending, Finished, NewLogLine};
use pointsman_core::task::lifecycle::transition;
use pointsman_core::task::{Command, Lease, LogLine, Rejected, State, TaskSeq};
use pointsman_core::{Json, Timestamp};

use crate::claim::ClaimSlots;
use crate::error::Result;
use crate::lifecycle::AttemptOutput;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::RegisteredHandler;

impl<T: Tables> Txn<'_, T> {
    pub(crate) fn finish_attempt(
        &mut self,
        ending: Ending,
        slots: &mut ClaimSlots,
        now: Timestamp,
    ) -> Result<std::result::Result<Finished, Rejected>> {
        let Ending { task, fence, ended, target, emits, logs } = ending;
        // Most attempts report nothing about a target; they need no lookup of the handler.
        let handler = if target.is_some() { self.find_task_handler(task)? } else { None };
        let command = match &ended {
            Ended::Succeeded { .. } => Command::Succeed { fence },
            Ended::Failed { after, last, .. } => Command::Fail { fence, after: *after, last: *last },
            Ended::Snoozed { until } => Command::Snooze { fence, until: *until },
            Ended::Released => Command::Release { fence },
        };
        let output = match &ended {
            Ended::Succeeded { result } => {
                AttemptOutput { result: result.as_ref().map(Json::as_str), ..AttemptOutput::default() }
            }
            Ended::Failed { error, code, .. } => {
                AttemptOutput { return_code: *code, ..AttemptOutput::from_error(error) }
            }
            Ended::Snoozed { .. } | Ended::Released => AttemptOutput::default(),
        };
        let life = match self.apply_command(task, command, output, now)? {
            Ok(life) => life,
            Err(rejected) => return Ok(Err(rejected)),
        };
        if let (Some(target), Some(handler)) = (target, handler) {
            self.record_target_report(&handler, target, now)?;
        }
        self.append_log_lines(task, logs)?;
        let emitted = self.append_events(emits, slots, now)?;
        let due = match life.state {
            State::New { due } => Some(due),
            State::Scheduled
            | State::Locked(_)
            | State::Done
            | State::Error { .. }
            | State::Missing { .. } => None,
        };
        Ok(Ok(Finished { status: life.state.status(), due, emitted }))
    }

    fn find_task_handler(&self, task: TaskSeq) -> Result<Option<Arc<RegisteredHandler>>> {
        let queue = match self.state.running_tasks.get(&task) {
            Some(running) => Some(running.row.queue),
            None => self.tables.read_active_task(task)?.map(|task_row| task_row.queue),
        };
        queue.map(|queue| self.state.handler(self.state.queue(queue)?.handler).cloned()).transpose()
    }

    /// Records what an attempt reported about the handler's target. It concerns all tasks of the handler.
    fn record_target_report(
        &mut self,
        handler: &RegisteredHandler,
        target: Target,
        now: Timestamp,
    ) -> Result<()> {
        self.state.update_limiter_state(handler.id, |limiter_state| {
            limiter_state.told(target, &handler.def.retry, now)
        })?;
        self.state.apply_limits(handler.id, now)
    }

    /// Appends log lines of running attempts; drops lines of attempts that have ended. Returns how many lines were
    /// stored.
    pub(crate) fn append_attempt_logs(&mut self, lines: Vec<NewLogLine>) -> Result<usize> {
        let mut kept = 0;
        let mut lines = lines.into_iter().peekable();
        while let Some(first) = lines.next() {
            let mut of_task = vec![first.line];
            while let Some(next) = lines.next_if(|l| l.task == first.task && l.fence == first.fence) {
                of_task.push(next.line);
            }
            let lease = self.read_cached_or_active_task(first.task)?.and_then(|task_row| task_row.lease());
            let holds = lease.is_some_and(|lease| lease.fence == first.fence);
            if holds {
                kept += of_task.len();
                self.append_log_lines(first.task, of_task)?;
            }
        }
        Ok(kept)
    }

    /// Releases an attempt whose start was never reported, if the commit that began it took effect. If it did not,
    /// another attempt may have the same fence, so the whole lease is compared.
    pub(crate) fn release_unreported_attempt(&mut self, task: TaskSeq, lease: Lease) -> Result<()> {
        let now = self.state.last_observed_time();
        if let Some(task_row) =
            self.tables.read_active_task(task)?.filter(|task_row| task_row.lease() == Some(lease))
        {
            let release = Command::Release { fence: lease.fence };
            // A refusal means that the task is no longer locked with this fence.
            let _ = self.apply_command_to_active(task_row, release, AttemptOutput::default(), now)?;
        }
        Ok(())
    }

    /// Extends the lease of a worker that is still running the task.
    pub(crate) fn renew_lease(
        &mut self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> Result<std::result::Result<(), Rejected>> {
        let Some(task_row) = self.read_cached_or_active_task(task)? else {
            let ended =
                self.tables.read_archived_task(task)?.map(|archived_row| archived_row.life.state.status());
            return Ok(Err(ended.map_or(Rejected::NoSuchTask, Rejected::WrongState)));
        };
        let handler = self.state.handler(self.state.queue(task_row.queue)?.handler)?.clone();
        let renew = Command::Renew { fence, until };
        let life = match transition(task, task_row.life, renew, &handler.def, until) {
            Ok((life, _)) => life,
            Err(rejected) => return Ok(Err(rejected)),
        };
        // The lease of a node has no end and gets none.
        if let State::Locked(Lease { until: Some(until), .. }) = life.state {
            self.tables.set_lease_end(task, until)?;
        }
        match self.state.running_tasks.get_mut(&task) {
            Some(running) => running.row.life = life,
            None => self.tables.invalidate_task_on_peers(task),
        }
        Ok(Ok(()))
    }

    fn append_log_lines(&self, task: TaskSeq, lines: Vec<LogLine>) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.tables.append_log_lines(task, lines)
    }
}
