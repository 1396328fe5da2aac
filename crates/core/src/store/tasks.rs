//! Reading tasks and their logs, and steering single ones.

use async_trait::async_trait;

use super::Result;
use crate::journal::Extent;
use crate::task::why::Gate;
use crate::task::{EndReason, LogLine, Rejected, Task, TaskSeq};
use crate::{EventId, HandlerName, ObjectKey, Status, TaskId, Tenant, Timestamp};

/// Which tasks; the default means all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFilter {
    pub statuses: Vec<Status>,
    /// Of those in `error`, only the ones that ended for one of these reasons.
    pub reasons: Vec<EndReason>,
    /// The handler or the source.
    pub handler: Option<HandlerName>,
    /// The event's type or the source's collection.
    pub collection: Option<String>,
    pub event: Option<EventId>,
    pub tenant: Option<Tenant>,
    pub key: Option<ObjectKey>,
    /// Created at or after, and before.
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
}

/// Tasks, the newest first.
#[derive(Clone, Debug)]
pub struct TaskPage {
    /// Without their attempts.
    pub tasks: Vec<Task>,
    /// Where to go on, if there is more.
    pub next: Option<TaskSeq>,
    pub extent: Extent,
}

/// A log line and its place in the task's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLine {
    pub number: u64,
    pub line: LogLine,
}

#[derive(Clone, Debug)]
pub struct LogPage {
    pub lines: Vec<StoredLine>,
    pub status: Status,
}

/// What a stretch of a replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How many tasks were made.
    pub tasks: u64,
    /// There is more.
    pub more: bool,
}

/// So many attempts of one task are told of.
pub const MOST_ATTEMPTS: usize = 100;

#[async_trait]
pub trait Tasks: Send + Sync {
    /// A task with its attempts, of very many the last [`MOST_ATTEMPTS`].
    async fn task(&self, id: &TaskId) -> Result<Option<(Task, Extent)>>;

    /// Tasks below `before`, if given. May stop short of `limit` to bound the work.
    async fn tasks(&self, filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> Result<TaskPage>;

    /// Lines from number `from` on; fewer than `limit` where they are long. `None`: no such task.
    async fn logs(&self, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>>;

    /// The gates that a task has to pass before it runs, in order; empty for one that has ended or runs. `None`:
    /// no such task.
    async fn why(&self, id: &TaskId, now: Timestamp) -> Result<Option<Vec<Gate>>>;

    /// Runs tasks in `error` again, in this order; answers each. What belongs in a lane goes to its end.
    async fn retry(
        &self,
        tasks: Vec<TaskSeq>,
        now: Timestamp,
    ) -> Result<Vec<std::result::Result<(), Rejected>>>;

    /// Ends a task. If it runs, its attempt is fenced off.
    async fn cancel(&self, id: &TaskId, now: Timestamp) -> Result<std::result::Result<(), Rejected>>;

    /// Takes up a handler's `missing` tasks; answers how many.
    async fn adopt(&self, handler: &HandlerName, now: Timestamp) -> Result<u64>;

    /// Makes tasks at the lowest priority for events from `from` on that a handler would have been sent had it
    /// been there, up to those that it was sent. Does a stretch of it; asked again, it goes on where it stopped,
    /// and makes none twice.
    async fn replay(&self, handler: &HandlerName, from: EventId, now: Timestamp) -> Result<Replayed>;
}
