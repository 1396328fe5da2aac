//! Listing tasks, the newest first: unfinished ones and history, merged.

use std::collections::VecDeque;

use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{QueueOf, Realm, Task, TaskSeq};
use pointsman_store::error::Result;
use pointsman_store::row::Live;
use pointsman_store::views::{
    LiveNames, LiveRows, PastRows, TaskPaging, few_tasks, matches, rows_wanted, task_of_live, task_of_past,
};

use super::descending::{Descending, Kind, Place};
use super::journal::tasks_of;
use super::names::{Name, Names};
use super::tasks::{bare_tasks, foresee_names};
use crate::keys::Index;
use crate::overlay::{Bytes, TransactionOverlay};
use crate::rows;
use crate::store_state::StoreState;

/// So many events of tasks are fetched together at most: they may be big.
const BATCH: usize = 128;

pub(crate) fn tasks(
    overlay: &TransactionOverlay,
    store_state: &StoreState,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    if let Some(event) = filter.event {
        let tasks = bare_tasks(overlay, &tasks_of(overlay, event)?)?;
        return Ok(few_tasks(tasks, filter, before, limit, store_state.extent()));
    }
    let mut list = List::new(overlay, store_state, filter, before, limit)?;
    let mut page = TaskPaging::new(filter, limit, store_state.extent());
    while let Some(task) = list.next()? {
        if !page.take(task) {
            return Ok(page.page(list.has_more()?));
        }
    }
    Ok(page.page(false))
}

/// A task that was found. It has the right names only once it is named.
struct Found {
    task: Task,
    unnamed: Option<Live>,
}

struct List<'a> {
    overlay: &'a TransactionOverlay,
    /// The filter without what an unfinished task is named by.
    loose: TaskFilter,
    batch: usize,
    realm: Realm,
    names: Names,
    rows: [Descending; 2],
    found: [VecDeque<Found>; 2],
}

impl<'a> List<'a> {
    fn new(
        overlay: &'a TransactionOverlay,
        store_state: &StoreState,
        filter: &TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> Result<Self> {
        let (unfinished, ended) = rows_wanted(filter, is_source(overlay, filter)?);
        let newest = store_state.counters.tasks + 1;
        let below = before.map_or(newest, |before| before.0.min(newest));
        let rows = [
            Descending::new(Kind::Unfinished, unfinished_place(overlay, unfinished)?, below, limit),
            Descending::new(Kind::Ended, ended_place(ended), below, limit),
        ];
        Ok(Self {
            overlay,
            loose: TaskFilter { collection: None, key: None, ..filter.clone() },
            batch: limit.clamp(1, BATCH),
            realm: overlay.read_task_id_namespace()?,
            names: Names::default(),
            rows,
            found: Default::default(),
        })
    }

    /// The next one, if there is another.
    fn next(&mut self) -> Result<Option<Task>> {
        self.fill()?;
        let [unfinished, ended] = &self.found;
        let newest = |found: &VecDeque<Found>| found.front().map(|found| found.task.seq);
        if newest(ended) > newest(unfinished) {
            let [_, ended] = &mut self.found;
            return Ok(ended.pop_front().map(|found| found.task));
        }
        if unfinished.front().is_some_and(|found| found.unnamed.is_some()) {
            self.name_some()?;
        }
        let [unfinished, _] = &mut self.found;
        Ok(unfinished.pop_front().map(|found| found.task))
    }

    fn has_more(&mut self) -> Result<bool> {
        self.fill()?;
        Ok(self.found.iter().any(|found| !found.is_empty()))
    }

    /// Sees to it that the next of each kind is at hand, if there is one.
    fn fill(&mut self) -> Result<()> {
        for (rows, found) in self.rows.iter_mut().zip(&mut self.found) {
            while found.is_empty() && !rows.is_done() {
                let piece = rows.next(self.overlay)?;
                *found = match rows.kind() {
                    Kind::Unfinished => {
                        unfinished(self.overlay, &mut self.names, self.realm, &self.loose, &piece)?
                    }
                    Kind::Ended => ended(self.overlay, &mut self.names, self.realm, &piece)?,
                };
                self.overlay.clear();
            }
        }
        Ok(())
    }

    /// Finds the names of the next ones that may be wanted, of some together.
    fn name_some(&mut self) -> Result<()> {
        let [unfinished, _] = &mut self.found;
        let some = || unfinished.iter().filter_map(|found| found.unnamed.as_ref()).take(self.batch);
        foresee_names(self.overlay, some(), std::iter::empty())?;
        for found in unfinished.iter_mut().filter(|found| found.unnamed.is_some()).take(self.batch) {
            if let Some(live) = found.unnamed.take() {
                found.task = self.overlay.active_task_view(live)?;
            }
        }
        self.overlay.clear();
        Ok(())
    }
}

/// Unfinished tasks. Their types and keys are those of their events, which are fetched only for tasks that may be wanted; the
/// others are looked at without.
fn unfinished(
    overlay: &TransactionOverlay,
    names: &mut Names,
    realm: Realm,
    loose: &TaskFilter,
    piece: &[Bytes],
) -> Result<VecDeque<Found>> {
    let piece = piece.iter().map(|row| rows::decode_active_task(row));
    let piece: Vec<Live> = piece.collect::<Result<_>>()?;
    names.learn(overlay, piece.iter().map(|live| live.queue))?;
    let found = piece.into_iter().map(|live| {
        let Name { handler, tenant, of } = names.get(live.queue)?;
        let bare = LiveNames::new((handler.clone(), tenant.clone()), of, None, None);
        let task = task_of_live(live.clone(), bare, realm)?;
        let unnamed = matches(loose, &task).then_some(live);
        Ok(Found { task, unnamed })
    });
    found.collect()
}

fn ended(
    overlay: &TransactionOverlay,
    names: &mut Names,
    realm: Realm,
    piece: &[Bytes],
) -> Result<VecDeque<Found>> {
    let piece = piece.iter().map(|row| rows::decode_archived_task(row)).collect::<Result<Vec<_>>>()?;
    names.learn(overlay, piece.iter().map(|past| past.queue))?;
    let found = piece.into_iter().map(|past| {
        let Name { handler, tenant, .. } = names.get(past.queue)?;
        let task = task_of_past(past, handler.clone(), tenant.clone(), realm)?;
        Ok(Found { task, unnamed: None })
    });
    found.collect()
}

/// Where the wanted unfinished tasks are found.
fn unfinished_place(overlay: &TransactionOverlay, rows: LiveRows) -> Result<Place> {
    Ok(match rows {
        LiveRows::All => Place::Everywhere,
        LiveRows::Stranded => Place::Indexes(vec![Index::HaltedOrMissingTasks]),
        LiveRows::Running => {
            Place::Indexes(overlay.list_lease_holders()?.into_iter().map(Index::LockedTasks).collect())
        }
    })
}

fn ended_place(rows: PastRows) -> Place {
    match rows {
        PastRows::All => Place::Everywhere,
        PastRows::None => Place::Indexes(vec![]),
        PastRows::OfSources => Place::Indexes(vec![Index::ArchivedSourceRuns]),
        PastRows::Failed => Place::Indexes(vec![Index::FailedTasks]),
    }
}

/// Whether the handler that is asked for is a source, and nothing else.
fn is_source(overlay: &TransactionOverlay, filter: &TaskFilter) -> Result<bool> {
    let Some(wanted) = &filter.handler else { return Ok(false) };
    let handlers = overlay.read_handlers()?;
    let Some(handler) = handlers.iter().find(|handler| handler.def.name == *wanted) else { return Ok(false) };
    let mut queues = overlay.read_queues()?;
    queues.retain(|queue| queue.handler == handler.id);
    let of_source = |of: &QueueOf| match of {
        QueueOf::Collection(_) => true,
        QueueOf::Events | QueueOf::Node { .. } => false,
    };
    Ok(!queues.is_empty() && queues.iter().all(|queue| of_source(&queue.of)))
}
