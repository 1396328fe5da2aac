//! Lists tasks newest first: active and archived ones, merged.

use std::collections::VecDeque;

use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{QueueSubject, Task, TaskIdNamespace, TaskSeq};
use pointsman_store::error::TableResult;
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow};
use pointsman_store::views::{
    ActiveRowFilter, ActiveTaskDetails, ArchivedRowFilter, TaskPageBuilder, build_page_of_unsorted_tasks,
    choose_row_filters, task_from_active_row, task_from_archived_row, task_matches_filter,
};

use super::journal::list_task_seqs_of_event;
use super::newest_first_tasks::{NewestFirstTaskReader, TaskNumberSource, TaskTable};
use super::queue_names::{QueueName, QueueNameCache};
use super::tasks::{prefetch_rows_for_task_names, read_tasks_without_attempts};
use crate::keys::Index;
use crate::overlay::{Bytes, TransactionOverlay};
use crate::rows;
use crate::store_state::StoreState;

/// Maximum number of events fetched together: events may be large.
const MAX_EVENTS_PER_FETCH: usize = 128;

pub(crate) fn list_tasks(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> TableResult<TaskPage> {
    if let Some(event) = filter.event_id {
        let seqs = list_task_seqs_of_event(overlay, event)?;
        let tasks = read_tasks_without_attempts(overlay, &seqs)?;
        return Ok(build_page_of_unsorted_tasks(tasks, filter, before, limit, store_state.journal_range()));
    }
    let mut listing = TaskListing::new(overlay, store_state, filter, before, limit)?;
    let mut page = TaskPageBuilder::new(filter, limit, store_state.journal_range());
    while let Some(task) = listing.next_task()? {
        if !page.scan_task(task) {
            return Ok(page.into_page(listing.has_more()?));
        }
    }
    Ok(page.into_page(false))
}

/// A task of the listing. An active one has names (event type and key) only after they were resolved from its event.
struct ListedTask {
    task: Task,
    /// The row of an active task that matches the rest of the filter, until its names are resolved.
    unresolved_row: Option<ActiveTaskRow>,
}

/// Merges active and archived tasks, newest first.
struct TaskListing<'a> {
    overlay: &'a mut TransactionOverlay,
    /// The filter without `collection` and `key`: active rows do not contain the names that these are compared with.
    name_independent_filter: TaskFilter,
    name_batch_size: usize,
    task_id_namespace: TaskIdNamespace,
    queue_names: QueueNameCache,
    row_readers: [NewestFirstTaskReader; 2],
    /// The next tasks of each table.
    next_tasks: [VecDeque<ListedTask>; 2],
}

impl<'a> TaskListing<'a> {
    fn new(
        overlay: &'a mut TransactionOverlay,
        store_state: &StoreState,
        filter: &TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> TableResult<Self> {
        let (active, archived) = choose_row_filters(filter, has_only_collection_queues(overlay, filter)?);
        let newest = store_state.counters.last_task + 1;
        let below = before.map_or(newest, |before| before.0.min(newest));
        let rows = [
            NewestFirstTaskReader::new(
                TaskTable::Active,
                active_task_number_source(overlay, active)?,
                below,
                limit,
            ),
            NewestFirstTaskReader::new(
                TaskTable::Archived,
                archived_task_number_source(archived),
                below,
                limit,
            ),
        ];
        let task_id_namespace = overlay.read_task_id_namespace()?;
        Ok(Self {
            overlay,
            name_independent_filter: TaskFilter { subject_name: None, key: None, ..filter.clone() },
            name_batch_size: limit.clamp(1, MAX_EVENTS_PER_FETCH),
            task_id_namespace,
            queue_names: QueueNameCache::default(),
            row_readers: rows,
            next_tasks: Default::default(),
        })
    }

    /// Returns the next task.
    fn next_task(&mut self) -> TableResult<Option<Task>> {
        self.fetch_next_rows()?;
        let [active, archived] = &self.next_tasks;
        let newest = |tasks: &VecDeque<ListedTask>| tasks.front().map(|listed| listed.task.seq);
        if newest(archived) > newest(active) {
            let [_, archived] = &mut self.next_tasks;
            return Ok(archived.pop_front().map(|listed| listed.task));
        }
        if active.front().is_some_and(|listed| listed.unresolved_row.is_some()) {
            self.resolve_names()?;
        }
        let [active, _] = &mut self.next_tasks;
        Ok(active.pop_front().map(|listed| listed.task))
    }

    fn has_more(&mut self) -> TableResult<bool> {
        self.fetch_next_rows()?;
        Ok(self.next_tasks.iter().any(|tasks| !tasks.is_empty()))
    }

    /// Fetches rows until the next task of each table is known.
    fn fetch_next_rows(&mut self) -> TableResult<()> {
        for (rows, tasks) in self.row_readers.iter_mut().zip(&mut self.next_tasks) {
            while tasks.is_empty() && !rows.is_exhausted() {
                let chunk = rows.read_next_chunk(self.overlay)?;
                *tasks = match rows.table() {
                    TaskTable::Active => decode_active_tasks(
                        self.overlay,
                        &mut self.queue_names,
                        self.task_id_namespace,
                        &self.name_independent_filter,
                        &chunk,
                    )?,
                    TaskTable::Archived => decode_archived_tasks(
                        self.overlay,
                        &mut self.queue_names,
                        self.task_id_namespace,
                        &chunk,
                    )?,
                };
                self.overlay.clear();
            }
        }
        Ok(())
    }

    /// Resolves the names of the next active tasks that need it, in one batch.
    fn resolve_names(&mut self) -> TableResult<()> {
        let [active, _] = &mut self.next_tasks;
        let unresolved =
            || active.iter().filter_map(|listed| listed.unresolved_row.as_ref()).take(self.name_batch_size);
        prefetch_rows_for_task_names(self.overlay, unresolved(), std::iter::empty())?;
        for listed in
            active.iter_mut().filter(|listed| listed.unresolved_row.is_some()).take(self.name_batch_size)
        {
            if let Some(active) = listed.unresolved_row.take() {
                listed.task = self.overlay.active_task_view(active)?;
            }
        }
        self.overlay.clear();
        Ok(())
    }
}

/// Decodes active rows into tasks without names. These come from their events, which may be large and are fetched only for
/// tasks that match the rest of the filter.
fn decode_active_tasks(
    overlay: &mut TransactionOverlay,
    queue_names: &mut QueueNameCache,
    task_id_namespace: TaskIdNamespace,
    name_independent_filter: &TaskFilter,
    chunk: &[(TaskSeq, Bytes)],
) -> TableResult<VecDeque<ListedTask>> {
    let rows = chunk.iter().map(|(seq, row)| rows::decode_active_task(*seq, row)?.into_row());
    let rows: Vec<ActiveTaskRow> = rows.collect::<TableResult<_>>()?;
    queue_names.cache_missing_names(overlay, rows.iter().map(|active| active.queue))?;
    let tasks = rows.into_iter().map(|active| {
        let QueueName { handler, tenant, subject } = queue_names.get(active.queue)?;
        let details = ActiveTaskDetails::new((handler.clone(), tenant.clone()), subject, None, None);
        let task = task_from_active_row(active.clone(), details, task_id_namespace)?;
        let unresolved_row = task_matches_filter(name_independent_filter, &task).then_some(active);
        Ok(ListedTask { task, unresolved_row })
    });
    tasks.collect()
}

fn decode_archived_tasks(
    overlay: &mut TransactionOverlay,
    queue_names: &mut QueueNameCache,
    task_id_namespace: TaskIdNamespace,
    chunk: &[(TaskSeq, Bytes)],
) -> TableResult<VecDeque<ListedTask>> {
    let rows = chunk.iter().map(|(seq, row)| rows::decode_archived_task(*seq, row)?.into_row());
    let rows: Vec<ArchivedTaskRow> = rows.collect::<TableResult<_>>()?;
    queue_names.cache_missing_names(overlay, rows.iter().map(|archived| archived.queue))?;
    let tasks = rows.into_iter().map(|archived| {
        let QueueName { handler, tenant, .. } = queue_names.get(archived.queue)?;
        let task = task_from_archived_row(archived, handler.clone(), tenant.clone(), task_id_namespace)?;
        Ok(ListedTask { task, unresolved_row: None })
    });
    tasks.collect()
}

/// Returns where the numbers of the requested active tasks are read from.
fn active_task_number_source(
    overlay: &mut TransactionOverlay,
    rows: ActiveRowFilter,
) -> TableResult<TaskNumberSource> {
    Ok(match rows {
        ActiveRowFilter::All => TaskNumberSource::AllBuckets,
        ActiveRowFilter::HaltedOrMissing => TaskNumberSource::Indexes(vec![Index::HaltedOrMissingTasks]),
        ActiveRowFilter::Running => TaskNumberSource::Indexes(
            overlay.list_possible_lock_owner_ids()?.into_iter().map(Index::LockedTasks).collect(),
        ),
    })
}

fn archived_task_number_source(rows: ArchivedRowFilter) -> TaskNumberSource {
    match rows {
        ArchivedRowFilter::All => TaskNumberSource::AllBuckets,
        ArchivedRowFilter::None => TaskNumberSource::Indexes(vec![]),
        ArchivedRowFilter::CollectionRuns => TaskNumberSource::Indexes(vec![Index::ArchivedCollectionRuns]),
        ArchivedRowFilter::Failed => TaskNumberSource::Indexes(vec![Index::FailedTasks]),
    }
}

/// Returns whether the handler of the filter has queues, and all of them are for collections of a source.
fn has_only_collection_queues(overlay: &mut TransactionOverlay, filter: &TaskFilter) -> TableResult<bool> {
    let Some(handler_name) = &filter.handler else { return Ok(false) };
    let handlers = overlay.read_handlers()?;
    let Some(handler) = handlers.iter().find(|handler| handler.def.name == *handler_name) else {
        return Ok(false);
    };
    let mut queues = overlay.read_queues()?;
    queues.retain(|queue| queue.handler == handler.id);
    let is_collection = |subject: &QueueSubject| match subject {
        QueueSubject::Collection(_) => true,
        QueueSubject::Events | QueueSubject::ChainNode { .. } => false,
    };
    Ok(!queues.is_empty() && queues.iter().all(|queue| is_collection(&queue.subject)))
}
