//! Reading tasks and their logs; retrying and cancelling tasks; adopting missing tasks; replaying events.

use async_trait::async_trait;

use super::StoreResult;
use crate::journal::JournalRange;
use crate::task::gates::Gate;
use crate::task::{ErrorReason, LogLine, Task, TaskCommandError, TaskSeq};
use crate::{EventId, HandlerName, ObjectKey, TaskId, TaskStatus, Tenant, Timestamp};

/// Selects tasks; the default selects all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFilter {
    /// Only tasks in one of these statuses, if any are given.
    pub statuses: Vec<TaskStatus>,
    /// Tasks in `error` match only if they ended for one of these reasons, if any are given.
    pub error_reasons: Vec<ErrorReason>,
    /// The handler or the source.
    pub handler: Option<HandlerName>,
    /// The event's type, the source's collection, or the order's node.
    pub subject_name: Option<String>,
    /// Only tasks for this event.
    pub event_id: Option<EventId>,
    /// Only tasks of this tenant.
    pub tenant: Option<Tenant>,
    /// Only tasks for this object.
    pub key: Option<ObjectKey>,
    /// Only tasks created at or after this time.
    pub created_from: Option<Timestamp>,
    /// Only tasks created before this time.
    pub created_before: Option<Timestamp>,
}

/// A page of tasks, the newest first.
#[derive(Clone, Debug)]
pub struct TaskPage {
    /// The tasks, without their attempts.
    pub tasks: Vec<Task>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<TaskSeq>,
    /// The ids in the journal when the page was read.
    pub journal_range: JournalRange,
}

/// A log line and its number in the task's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogLine {
    /// The line's number; the first line has 0.
    pub number: u64,
    /// The line.
    pub line: LogLine,
}

/// Lines of a task's log, and the task's status when they were read.
#[derive(Clone, Debug)]
pub struct LogPage {
    /// The lines, in order.
    pub lines: Vec<StoredLogLine>,
    /// The task's status when the lines were read.
    pub task_status: TaskStatus,
}

/// The result of one call of [`Tasks::replay_events`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// The number of tasks that this call created.
    pub created_task_count: u64,
    /// There are more events to replay.
    pub has_more: bool,
}

/// The largest number of attempts that [`Tasks::read_task`] returns.
pub const MAX_LISTED_ATTEMPTS: usize = 100;

/// Reads, retries and cancels tasks.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Reads a task with its last attempts, at most [`MAX_LISTED_ATTEMPTS`].
    async fn read_task(&self, id: &TaskId) -> StoreResult<Option<(Task, JournalRange)>>;

    /// Lists tasks whose number is below `before`, if given. May return fewer than `limit` to bound the work.
    async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> StoreResult<TaskPage>;

    /// Reads log lines from number `from` on; fewer than `limit` if they are long. `None`: no such task.
    async fn read_logs(&self, id: &TaskId, from: u64, limit: usize) -> StoreResult<Option<LogPage>>;

    /// Evaluates the gates that a task has to pass before it runs, in order; empty for one that has ended or runs.
    /// `None`: no such task.
    async fn explain_waiting(&self, id: &TaskId, now: Timestamp) -> StoreResult<Option<Vec<Gate>>>;

    /// Runs tasks in `error` again, in this order; returns a result for each. A task with a lane joins it at its end.
    async fn retry_tasks(
        &self,
        tasks: Vec<TaskSeq>,
        now: Timestamp,
    ) -> StoreResult<Vec<Result<(), TaskCommandError>>>;

    /// Ends a task. If it runs, its attempt is fenced off.
    async fn cancel_task(&self, id: &TaskId, now: Timestamp) -> StoreResult<Result<(), TaskCommandError>>;

    /// Makes a handler's `missing` tasks `new` again; returns how many.
    async fn adopt_missing_tasks(&self, handler: &HandlerName, now: Timestamp) -> StoreResult<u64>;

    /// Creates tasks at the lowest priority for events from `from` on that the handler would have been sent if it had
    /// been registered, up to the first event that it was sent. Each call replays a part of the events, and the next
    /// call continues after it; no task is created twice.
    async fn replay_events(
        &self,
        handler: &HandlerName,
        from: EventId,
        now: Timestamp,
    ) -> StoreResult<ReplayReport>;
}
