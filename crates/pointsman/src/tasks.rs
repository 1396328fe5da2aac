//! Operations of the bus on tasks.

use std::collections::HashSet;
use std::time::Duration;

use pointsman_core::store::{StoreError, TaskFilter, TaskPage};
use pointsman_core::task::gates::Gate;
use pointsman_core::task::{LogLine, Task, TaskCommandError};
use pointsman_core::{TaskId, TaskSeq, TaskStatus};
use tokio::time::timeout;

use crate::{Bus, EmittedEvent};

/// The interval at which [`Bus::wait_for_tasks`] reads the tasks again, in case it missed a notification.
const TASK_RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The number of log lines that are read at a time.
const LOG_LINES_PER_PAGE: usize = 1000;

/// Why an operation on a task failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskOperationError {
    /// The operation is not possible, and nothing was changed.
    #[error(transparent)]
    Refused(#[from] TaskCommandError),
    /// The store failed, and the operation may or may not have taken effect.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Bus {
    /// Waits until all tasks of an event have finished, and returns them. Retries and snoozes are waited for too.
    pub async fn wait_for_tasks(&self, emitted: &EmittedEvent) -> Result<Vec<Task>, StoreError> {
        // Subscribe first, so that no change is missed between the read and the wait.
        let mut changes = self.engine.subscribe_task_changes();
        let ids: HashSet<&TaskId> = emitted.tasks.iter().collect();
        loop {
            let mut tasks = Vec::new();
            for id in &emitted.tasks {
                tasks.extend(self.read_task(id).await?);
            }
            if tasks.iter().all(|task| has_task_finished(task.lifecycle.state.status())) {
                return Ok(tasks);
            }
            let wait_for_a_finished_task = async {
                while let Ok(change) = changes.recv().await {
                    if ids.contains(&change.id) && has_task_finished(change.status) {
                        break;
                    }
                }
            };
            // A receiver that lagged, or whose engine has stopped, reads the tasks again after the interval.
            let _ = timeout(TASK_RECHECK_INTERVAL, wait_for_a_finished_task).await;
        }
    }

    /// Reads a task with its attempts.
    pub async fn read_task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.engine.store().read_task(id).await?.map(|(task, _)| task))
    }

    /// Reads a task's log so far; empty if there is no such task.
    pub async fn read_task_logs(&self, id: &TaskId) -> Result<Vec<LogLine>, StoreError> {
        let mut lines = Vec::new();
        let mut from = 0;
        while let Some(page) = self.engine.store().read_logs(id, from, LOG_LINES_PER_PAGE).await? {
            let Some(last) = page.lines.last() else { break };
            from = last.number + 1;
            lines.extend(page.lines.into_iter().map(|stored| stored.line));
        }
        Ok(lines)
    }

    /// Lists the tasks that match, newest first, without their attempts. `before` is the cursor of the preceding page.
    pub async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> Result<TaskPage, StoreError> {
        self.engine.store().list_tasks(filter, before, limit).await
    }

    /// Explains why a task waits: the gates that it has to pass, in order, each open or closed. Empty for a task that
    /// runs or has ended; `None` if there is no such task.
    pub async fn explain_waiting(&self, id: &TaskId) -> Result<Option<Vec<Gate>>, StoreError> {
        self.engine.store().explain_waiting(id, self.now()).await
    }

    /// Runs a failed task again.
    pub async fn retry_task(&self, id: &TaskId) -> Result<(), TaskOperationError> {
        Ok(self.engine.retry_task(id).await??)
    }

    /// Cancels an unfinished task, or one that halts its lane. A running attempt is stopped.
    pub async fn cancel_task(&self, id: &TaskId) -> Result<(), TaskOperationError> {
        Ok(self.engine.cancel_task(id).await??)
    }
}

fn has_task_finished(status: TaskStatus) -> bool {
    match status {
        TaskStatus::Done | TaskStatus::Error | TaskStatus::Missing => true,
        TaskStatus::New | TaskStatus::Scheduled | TaskStatus::Locked => false,
    }
}
