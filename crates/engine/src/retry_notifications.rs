//! Telling those who watch of many tasks at once that wait to be run again.
//!
//! Who runs many again knows their numbers only, so they are read for the telling, and only while somebody watches. Of
//! very many the newest are told: whoever watches that closely lists them.

use std::collections::BTreeSet;

use pointsman_core::store::{StoreError, TaskFilter};
use pointsman_core::{HandlerName, Status, TaskSeq};

use crate::Engine;

/// How many tasks are read at a time, and how often at most.
const PAGE_SIZE: usize = 500;
const MAX_PAGES: usize = 4;

impl Engine {
    /// Tells of those of these tasks that wait now; what runs already has been told of by whoever runs it. The filter
    /// is one that they all match, whatever their status.
    pub(crate) async fn notify_retried_tasks(&self, filter: &TaskFilter, tasks: &BTreeSet<TaskSeq>) {
        if self.node().task_changes.has_subscribers()
            && let Err(error) = self.read_and_notify_tasks(filter, tasks).await
        {
            self.node().count_store_error();
            tracing::warn!(%error, tasks = tasks.len(), "those who watch are not told of tasks that run again");
        }
    }

    async fn read_and_notify_tasks(
        &self,
        filter: &TaskFilter,
        tasks: &BTreeSet<TaskSeq>,
    ) -> Result<(), StoreError> {
        let (Some(oldest), Some(newest)) = (tasks.first(), tasks.last()) else { return Ok(()) };
        let waiting =
            TaskFilter { statuses: vec![Status::New, Status::Scheduled], reasons: vec![], ..filter.clone() };
        let mut found = Vec::new();
        let mut before = Some(TaskSeq(newest.0.saturating_add(1)));
        for _ in 0..MAX_PAGES {
            let page = self.store().tasks(waiting.clone(), before, PAGE_SIZE).await?;
            found.extend(page.tasks.into_iter().filter(|task| tasks.contains(&task.seq)));
            before = page.next.filter(|next| next > oldest);
            if before.is_none() {
                break;
            }
        }
        let at = self.now();
        found.into_iter().rev().for_each(|task| self.node().task_changes.notify_task_state(task, at));
        Ok(())
    }

    /// The newest of a handler's missing tasks; none while nobody watches.
    pub(crate) async fn list_missing_tasks(
        &self,
        handler: &HandlerName,
    ) -> Result<BTreeSet<TaskSeq>, StoreError> {
        let (mut found, mut before) = (BTreeSet::new(), None);
        let filter = TaskFilter {
            handler: Some(handler.clone()),
            statuses: vec![Status::Missing],
            ..TaskFilter::default()
        };
        for _ in 0..MAX_PAGES {
            if !self.node().task_changes.has_subscribers() {
                break;
            }
            let page = self.store().tasks(filter.clone(), before, PAGE_SIZE).await?;
            found.extend(page.tasks.into_iter().map(|task| task.seq));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok(found)
    }
}
