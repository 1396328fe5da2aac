//! Lists tasks newest first: active and archived ones, merged.

use std::collections::VecDeque;

use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{QueueSubject, Task, TaskIdNamespace, TaskSeq};
use pointsman_store::error::Result;
use pointsman_store::row::ActiveTaskRow;
use pointsman_store::views::{
    ActiveRowFilter, ActiveTaskDetails, ArchivedRowFilter, TaskPageBuilder, build_task_page,
    choose_row_filters, task_from_active_row, task_from_archived_row, task_matches_filter,
};

use super::journal::list_tasks_of_event;
use super::newest_first::{NewestFirstRows, TaskNumberSource, TaskTable};
use super::queue_names::{QueueName, QueueNameCache};
use super::tasks::{prefetch_names, read_tasks_without_attempts};
use crate::keys::Index;
use crate::overlay::{Bytes, TransactionOverlay};
use crate::rows;
use crate::store_state::StoreState;

/// Maximum number of events fetched together: they may be large.
const MAX_EVENTS_PER_FETCH: usize = 128;

pub(crate) fn list_tasks(
    overlay: &TransactionOverlay,
    store_state: &StoreState,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    if let Some(event) = filter.event {
        let tasks = read_tasks_without_attempts(overlay, &list_tasks_of_event(overlay, event)?)?;
        return Ok(build_task_page(tasks, filter, before, limit, store_state.extent()));
    }
    let mut list = TaskListing::new(overlay, store_state, filter, before, limit)?;
    let mut page = TaskPageBuilder::new(filter, limit, store_state.extent());
    while let Some(task) = list.next_task()? {
        if !page.scan_task(task) {
            return Ok(page.into_page(list.has_more()?));
        }
    }
    Ok(page.into_page(false))
}

/// A task of the listing. An active one has its type and key only after they were resolved.
struct ListedTask {
    task: Task,
    row_without_names: Option<ActiveTaskRow>,
}

struct TaskListing<'a> {
    overlay: &'a TransactionOverlay,
    /// The filter without type and key, which active rows do not contain.
    name_independent_filter: TaskFilter,
    name_batch: usize,
    task_id_namespace: TaskIdNamespace,
    names: QueueNameCache,
    rows: [NewestFirstRows; 2],
    found: [VecDeque<ListedTask>; 2],
}

impl<'a> TaskListing<'a> {
    fn new(
        overlay: &'a TransactionOverlay,
        store_state: &StoreState,
        filter: &TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> Result<Self> {
        let (unfinished, ended) = choose_row_filters(filter, is_source_handler(overlay, filter)?);
        let newest = store_state.counters.last_task + 1;
        let below = before.map_or(newest, |before| before.0.min(newest));
        let rows = [
            NewestFirstRows::new(TaskTable::Active, active_number_source(overlay, unfinished)?, below, limit),
            NewestFirstRows::new(TaskTable::Archived, archived_number_source(ended), below, limit),
        ];
        Ok(Self {
            overlay,
            name_independent_filter: TaskFilter { collection: None, key: None, ..filter.clone() },
            name_batch: limit.clamp(1, MAX_EVENTS_PER_FETCH),
            task_id_namespace: overlay.read_task_id_namespace()?,
            names: QueueNameCache::default(),
            rows,
            found: Default::default(),
        })
    }

    /// Returns the next task.
    fn next_task(&mut self) -> Result<Option<Task>> {
        self.fetch_next_rows()?;
        let [unfinished, ended] = &self.found;
        let newest = |found: &VecDeque<ListedTask>| found.front().map(|found| found.task.seq);
        if newest(ended) > newest(unfinished) {
            let [_, ended] = &mut self.found;
            return Ok(ended.pop_front().map(|found| found.task));
        }
        if unfinished.front().is_some_and(|found| found.row_without_names.is_some()) {
            self.resolve_names()?;
        }
        let [unfinished, _] = &mut self.found;
        Ok(unfinished.pop_front().map(|found| found.task))
    }

    fn has_more(&mut self) -> Result<bool> {
        self.fetch_next_rows()?;
        Ok(self.found.iter().any(|found| !found.is_empty()))
    }

    /// Fetches rows until the next task of each table is known.
    fn fetch_next_rows(&mut self) -> Result<()> {
        for (rows, found) in self.rows.iter_mut().zip(&mut self.found) {
            while found.is_empty() && !rows.is_exhausted() {
                let piece = rows.read_next(self.overlay)?;
                *found = match rows.table() {
                    TaskTable::Active => list_active(
                        self.overlay,
                        &mut self.names,
                        self.task_id_namespace,
                        &self.name_independent_filter,
                        &piece,
                    )?,
                    TaskTable::Archived => {
                        list_archived(self.overlay, &mut self.names, self.task_id_namespace, &piece)?
                    }
                };
                self.overlay.clear();
            }
        }
        Ok(())
    }

    /// Resolves type and key of the next matching tasks in one batch.
    fn resolve_names(&mut self) -> Result<()> {
        let [unfinished, _] = &mut self.found;
        let some =
            || unfinished.iter().filter_map(|found| found.row_without_names.as_ref()).take(self.name_batch);
        prefetch_names(self.overlay, some(), std::iter::empty())?;
        for found in
            unfinished.iter_mut().filter(|found| found.row_without_names.is_some()).take(self.name_batch)
        {
            if let Some(active) = found.row_without_names.take() {
                found.task = self.overlay.active_task_view(active)?;
            }
        }
        self.overlay.clear();
        Ok(())
    }
}

/// Unfinished tasks. Their types and keys are those of their events, which are fetched only for tasks that may be wanted; the
/// others are looked at without.
fn list_active(
    overlay: &TransactionOverlay,
    names: &mut QueueNameCache,
    task_id_namespace: TaskIdNamespace,
    name_independent_filter: &TaskFilter,
    piece: &[Bytes],
) -> Result<VecDeque<ListedTask>> {
    let piece = piece.iter().map(|row| rows::decode_active_task(row));
    let piece: Vec<ActiveTaskRow> = piece.collect::<Result<_>>()?;
    names.resolve(overlay, piece.iter().map(|active| active.queue))?;
    let found = piece.into_iter().map(|active| {
        let QueueName { handler, tenant, of } = names.get(active.queue)?;
        let bare = ActiveTaskDetails::new((handler.clone(), tenant.clone()), of, None, None);
        let task = task_from_active_row(active.clone(), bare, task_id_namespace)?;
        let row_without_names = task_matches_filter(name_independent_filter, &task).then_some(active);
        Ok(ListedTask { task, row_without_names })
    });
    found.collect()
}

fn list_archived(
    overlay: &TransactionOverlay,
    names: &mut QueueNameCache,
    task_id_namespace: TaskIdNamespace,
    piece: &[Bytes],
) -> Result<VecDeque<ListedTask>> {
    let piece = piece.iter().map(|row| rows::decode_archived_task(row)).collect::<Result<Vec<_>>>()?;
    names.resolve(overlay, piece.iter().map(|archived| archived.queue))?;
    let found = piece.into_iter().map(|archived| {
        let QueueName { handler, tenant, .. } = names.get(archived.queue)?;
        let task = task_from_archived_row(archived, handler.clone(), tenant.clone(), task_id_namespace)?;
        Ok(ListedTask { task, row_without_names: None })
    });
    found.collect()
}

/// Returns where the numbers of the requested active tasks are read from.
fn active_number_source(overlay: &TransactionOverlay, rows: ActiveRowFilter) -> Result<TaskNumberSource> {
    Ok(match rows {
        ActiveRowFilter::All => TaskNumberSource::AllBuckets,
        ActiveRowFilter::HaltedOrMissing => TaskNumberSource::Indexes(vec![Index::HaltedOrMissingTasks]),
        ActiveRowFilter::Running => TaskNumberSource::Indexes(
            overlay.list_lease_holders()?.into_iter().map(Index::LockedTasks).collect(),
        ),
    })
}

fn archived_number_source(rows: ArchivedRowFilter) -> TaskNumberSource {
    match rows {
        ArchivedRowFilter::All => TaskNumberSource::AllBuckets,
        ArchivedRowFilter::None => TaskNumberSource::Indexes(vec![]),
        ArchivedRowFilter::CollectionRuns => TaskNumberSource::Indexes(vec![Index::ArchivedSourceRuns]),
        ArchivedRowFilter::Failed => TaskNumberSource::Indexes(vec![Index::FailedTasks]),
    }
}

/// Returns whether the requested handler is only a source.
fn is_source_handler(overlay: &TransactionOverlay, filter: &TaskFilter) -> Result<bool> {
    let Some(wanted) = &filter.handler else { return Ok(false) };
    let handlers = overlay.read_handlers()?;
    let Some(handler) = handlers.iter().find(|handler| handler.def.name == *wanted) else { return Ok(false) };
    let mut queues = overlay.read_queues()?;
    queues.retain(|queue| queue.handler == handler.id);
    let of_source = |of: &QueueSubject| match of {
        QueueSubject::Collection(_) => true,
        QueueSubject::Events | QueueSubject::ChainNode { .. } => false,
    };
    Ok(!queues.is_empty() && queues.iter().all(|queue| of_source(&queue.subject)))
}
