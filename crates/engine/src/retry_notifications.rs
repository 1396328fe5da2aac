//! Notifies watchers of many tasks that were retried or adopted at once.
//!
//! Bulk retries know only the sequence numbers of their tasks, so the tasks are read for the notification, and only
//! while somebody watches. If there are very many, only the newest are reported; a watcher that needs them all lists
//! them.

use std::collections::BTreeSet;

use pointsman_core::store::{StoreError, TaskFilter};
use pointsman_core::{ErrorChain, HandlerName, TaskSeq, TaskStatus};

use crate::Engine;

/// The number of tasks that are read at a time.
const TASKS_PER_PAGE: usize = 500;
/// The maximum number of pages that are read for one notification.
const MAX_PAGES_PER_NOTIFICATION: usize = 4;

impl Engine {
    /// Notifies watchers of those of the given tasks that still wait to be run; a task that runs already was reported
    /// by the node that runs it. All given tasks match the filter, except that their status may have changed.
    pub(crate) async fn notify_watchers_of_retried_tasks(
        &self,
        filter: &TaskFilter,
        tasks: &BTreeSet<TaskSeq>,
    ) {
        if self.node().task_changes.has_subscribers()
            && let Err(error) = self.notify_watchers_of_waiting_tasks(filter, tasks).await
        {
            self.node().count_store_error();
            tracing::warn!(
                error = %ErrorChain(&error), task_count = tasks.len(),
                "watchers were not notified of tasks that were retried or adopted; the tasks run all the same"
            );
        }
    }

    async fn notify_watchers_of_waiting_tasks(
        &self,
        filter: &TaskFilter,
        tasks: &BTreeSet<TaskSeq>,
    ) -> Result<(), StoreError> {
        let (Some(oldest), Some(newest)) = (tasks.first(), tasks.last()) else { return Ok(()) };
        let waiting_filter = TaskFilter {
            statuses: vec![TaskStatus::New, TaskStatus::Scheduled],
            error_reasons: vec![],
            ..filter.clone()
        };
        let mut found = Vec::new();
        let mut before = Some(TaskSeq(newest.0.saturating_add(1)));
        for _ in 0..MAX_PAGES_PER_NOTIFICATION {
            let page = self.store().list_tasks(waiting_filter.clone(), before, TASKS_PER_PAGE).await?;
            found.extend(page.tasks.into_iter().filter(|task| tasks.contains(&task.seq)));
            before = page.next_cursor.filter(|next| next > oldest);
            if before.is_none() {
                break;
            }
        }
        let at = self.now();
        found.into_iter().rev().for_each(|task| self.node().task_changes.notify_task_state(task, at));
        Ok(())
    }

    /// Lists the newest missing tasks of a handler, so that watchers can be notified of them; none without watchers.
    pub(crate) async fn list_missing_tasks_for_watchers(
        &self,
        handler: &HandlerName,
    ) -> Result<BTreeSet<TaskSeq>, StoreError> {
        let (mut found, mut before) = (BTreeSet::new(), None);
        let filter = TaskFilter {
            handler: Some(handler.clone()),
            statuses: vec![TaskStatus::Missing],
            ..TaskFilter::default()
        };
        for _ in 0..MAX_PAGES_PER_NOTIFICATION {
            if !self.node().task_changes.has_subscribers() {
                break;
            }
            let page = self.store().list_tasks(filter.clone(), before, TASKS_PER_PAGE).await?;
            found.extend(page.tasks.into_iter().map(|task| task.seq));
            before = page.next_cursor;
            if before.is_none() {
                break;
            }
        }
        Ok(found)
    }
}
