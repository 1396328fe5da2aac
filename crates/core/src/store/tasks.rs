//! Reading tasks and their logs, and steering single ones.

use async_trait::async_trait;

use super::Result;
use crate::journal::Extent;
use crate::task::{LogLine, Rejected, Task, TaskSeq};
use crate::{HandlerName, ObjectKey, Status, TaskId, Tenant, Timestamp};

/// Which tasks; the default means all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFilter {
    pub statuses: Vec<Status>,
    pub handler: Option<HandlerName>,
    pub tenant: Option<Tenant>,
    pub key: Option<ObjectKey>,
    /// Created at or after, and before.
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
}

/// Tasks, the newest first.
#[derive(Clone, Debug)]
pub struct TaskPage {
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

#[async_trait]
pub trait Tasks: Send + Sync {
    async fn task(&self, id: &TaskId) -> Result<Option<(Task, Extent)>>;

    /// Tasks below `before`, if given. May stop short of `limit` to bound the work.
    async fn tasks(&self, filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> Result<TaskPage>;

    /// Lines from number `from` on. `None`: no such task.
    async fn logs(&self, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>>;

    /// Runs a task in `error` again.
    async fn retry(&self, id: &TaskId, now: Timestamp) -> Result<std::result::Result<(), Rejected>>;

    /// Ends a task. If it runs, its attempt is fenced off.
    async fn cancel(&self, id: &TaskId, now: Timestamp) -> Result<std::result::Result<(), Rejected>>;

    /// Takes up a handler's `missing` tasks; answers how many.
    async fn adopt(&self, handler: &HandlerName, now: Timestamp) -> Result<u64>;
}
