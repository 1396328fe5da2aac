//! Engine events about tasks (TaskStarted, TaskEnded, TaskClosed), as far as the handler is observed.

use pointsman_core::engine_event::EngineEvent;
use pointsman_core::handler::AttemptEventPolicy;
use pointsman_core::task::{QueueSubject, TaskCommand, TaskLifecycle, TaskState, TaskSubject};
use pointsman_core::{TaskId, Timestamp};

use crate::error::TableResult;
use crate::lifecycle::AttemptOutput;
use crate::row::{ActiveTaskRow, TaskPhase};
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::RegisteredHandler;

/// A task to which a command was just applied, with the output of the attempt.
pub(crate) struct TaskAfterCommand<'a> {
    /// The row of the task before the command.
    pub(crate) row_before: &'a ActiveTaskRow,
    /// The subject of the task, if it is cached.
    pub(crate) subject: Option<&'a TaskSubject>,
    pub(crate) lifecycle: &'a TaskLifecycle,
    pub(crate) output: AttemptOutput<'a>,
}

impl<T: Tables> Txn<'_, T> {
    /// Publishes the start of an attempt, if the handler is observed.
    pub(crate) fn publish_attempt_start_if_observed(
        &mut self,
        task_row: &ActiveTaskRow,
        handler: &RegisteredHandler,
        task: &TaskId,
        now: Timestamp,
    ) -> TableResult<()> {
        match handler.def.attempt_event_policy {
            AttemptEventPolicy::All => {
                let (handler, task) = (handler.def.name.clone(), task.clone());
                self.publish_engine_event_of_task(task_row, &EngineEvent::TaskStarted { handler, task }, now)
            }
            AttemptEventPolicy::Failures | AttemptEventPolicy::None => Ok(()),
        }
    }

    /// Publishes the end of an attempt, the end of the task, or both, as a command has caused them.
    pub(crate) fn publish_attempt_end_if_observed(
        &mut self,
        task: TaskAfterCommand<'_>,
        handler: &RegisteredHandler,
        command: TaskCommand,
        now: Timestamp,
    ) -> TableResult<()> {
        let TaskAfterCommand { row_before: task_row, subject, lifecycle, output } = task;
        let attempt_failed = matches!(command, TaskCommand::Fail { .. } | TaskCommand::ExpireLease { .. });
        let is_published = match handler.def.attempt_event_policy {
            AttemptEventPolicy::All => true,
            AttemptEventPolicy::Failures => attempt_failed,
            AttemptEventPolicy::None => false,
        };
        let attempt_ended =
            task_row.phase == TaskPhase::Locked && !matches!(lifecycle.state, TaskState::Locked(_));
        let task_closed = matches!(lifecycle.state, TaskState::Done | TaskState::Error { .. });
        if !is_published || !(attempt_ended || task_closed) {
            return Ok(());
        }
        let (handler_name, task) =
            (handler.def.name.clone(), self.build_public_task_id(task_row, subject, handler)?);
        if attempt_ended {
            let attempt_failed = attempt_failed || command == TaskCommand::Cancel;
            let return_code = if attempt_failed { output.return_code } else { 0 };
            let (handler, task) = (handler_name.clone(), task.clone());
            self.publish_engine_event_of_task(
                task_row,
                &EngineEvent::TaskEnded { handler, task, return_code },
                now,
            )?;
        }
        if task_closed {
            self.publish_engine_event_of_task(
                task_row,
                &EngineEvent::TaskClosed { handler: handler_name, task },
                now,
            )?;
        }
        Ok(())
    }

    fn publish_engine_event_of_task(
        &mut self,
        task_row: &ActiveTaskRow,
        event: &EngineEvent,
        now: Timestamp,
    ) -> TableResult<()> {
        let tenant = self.state.queue(task_row.queue)?.tenant.clone();
        self.publish_tenant_engine_event(&tenant, event, now).map(drop)
    }

    /// Returns the public id of a task that is unfinished or has just ended.
    fn build_public_task_id(
        &mut self,
        task_row: &ActiveTaskRow,
        subject: Option<&TaskSubject>,
        handler: &RegisteredHandler,
    ) -> TableResult<TaskId> {
        match (&self.state.queue(task_row.queue)?.subject, subject) {
            (QueueSubject::Events, Some(subject)) => {
                self.state.build_task_id(handler.id, subject.name(), task_row.seq)
            }
            (QueueSubject::Events, None) => {
                let subject = self.read_task_subject(task_row)?;
                self.state.build_task_id(handler.id, subject.name(), task_row.seq)
            }
            (QueueSubject::Collection(collection), _) => {
                self.state.build_task_id(handler.id, collection.as_str(), task_row.seq)
            }
            (QueueSubject::ChainNode { node, .. }, _) => {
                self.state.build_task_id(handler.id, node.as_str(), task_row.seq)
            }
        }
    }
}
