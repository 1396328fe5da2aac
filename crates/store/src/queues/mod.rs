//! Queues: their task counts, and which of them can run now.
//!
//! A queue with ready tasks is in one of three places: in the fair queue of its worker pool; nowhere, if a rule pauses
//! it; or at its handler's limiter, if a limit of the handler allows no more tasks. A handler that reaches a limit does
//! not touch its queues: each queue moves to the limiter when it is selected, and when the handler has free slots
//! again, as many queues return to the fair queue. So the cost of a limit does not grow with the number of queues.

mod placement;

use foldhash::HashMap;
use std::cmp::Reverse;

use pointsman_core::task::QueueSubject;
use pointsman_core::{CollectionName, TaskSeq, Tenant, Timestamp};

use crate::error::{Fault, TableResult};
use crate::fair_queue::{CollectionTaskRank, FairQueue, TenantIndex};
use crate::key_round_robin::KeyRoundRobin;
use crate::row::{HandlerId, QueueCounts, QueueId, QueueRow, TaskPhase};
use crate::tables::QueueTable;
use crate::writer_state::WriterState;

/// State of a queue in memory: its task counts, its place in the fair queue, and the round robin of its keys.
#[derive(Clone, Debug)]
pub(crate) struct QueueState {
    pub(crate) id: QueueId,
    pub(crate) handler: HandlerId,
    pub(crate) tenant: Tenant,
    tenant_index: TenantIndex,
    /// Whether its tasks run for events, for a collection or for a chain node.
    pub(crate) subject: QueueSubject,
    pub(crate) counts: QueueCounts,
    /// Whether a rule, or the stop of its chain or chain node, keeps its tasks from running.
    pub(crate) is_paused: bool,
    /// Whether its handler, and its collection if it has one, are defined.
    pub(crate) is_defined: bool,
    /// Advances whenever the queue is served; the fair queue serves the smallest first.
    virtual_time: i64,
    /// Round robin of keys among tasks of the same score. `None` until it is needed: it is not loaded at the start.
    key_round_robin: Option<KeyRoundRobin>,
    /// Rank of the one ready task of a collection's queue.
    collection_task_rank: Option<CollectionTaskRank>,
    placement: QueuePlacement,
    /// Whether the counts have changed since they were last written.
    is_dirty: bool,
}

impl QueueState {
    /// Returns the collection whose tasks the queue contains; `None` for queues of events and of chain nodes.
    pub(crate) fn collection(&self) -> Option<&CollectionName> {
        self.subject.collection()
    }

    /// Returns whether this is the queue of a source's collection. All collection queues of a tenant are one entry of
    /// the fair queue, in which priority decides.
    fn is_collection_queue(&self) -> bool {
        self.collection().is_some()
    }
}

/// Where a queue is: its tasks are selected only while it is in the fair queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueuePlacement {
    /// The queue is in neither: it has no ready task that is not selected yet, is paused, or is not defined.
    Absent,
    InFairQueue,
    /// The queue waits for a free slot of its handler.
    AtLimiter,
}

/// Who runs the tasks of a handler's queues: the nodes together, or workers that pull from the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkerPool {
    Nodes,
    /// Workers that pull from this handler.
    PullHandler(HandlerId),
    /// Workers that pull from sources.
    PullSources,
}

/// States of all queues.
#[derive(Debug, Default)]
pub(crate) struct QueueStates {
    by_id: HashMap<QueueId, QueueState>,
    event_queue_ids: HashMap<(HandlerId, Tenant), QueueId>,
    /// Queues of collections and of chain nodes.
    collection_and_chain_node_queue_ids: HashMap<(HandlerId, Tenant, QueueSubject), QueueId>,
    fair_queues: HashMap<WorkerPool, FairQueue>,
    /// Virtual times of the pools, for workers that pull from several of them.
    pool_virtual_times: HashMap<WorkerPool, i64>,
    /// Virtual time of the pool that was served last.
    last_served_pool_virtual_time: i64,
    tenant_indexes: HashMap<Tenant, TenantIndex>,
    /// Queues whose counts have changed in this transaction; written before the commit.
    dirty_queues: Vec<QueueId>,
}

impl WriterState {
    pub(crate) fn load_queue_states(&mut self, tables: &mut dyn QueueTable) -> TableResult<()> {
        tables.list_queues()?.into_iter().try_for_each(|row| self.apply_queue_row(tables, row))
    }

    /// Applies a queue's row from the table, whether the queue is cached or new.
    pub(crate) fn apply_queue_row(&mut self, tables: &mut dyn QueueTable, row: QueueRow) -> TableResult<()> {
        let QueueRow { id, handler, tenant, subject, counts } = row;
        if !self.queues.by_id.contains_key(&id) {
            let queue = self.build_queue_state(id, handler, tenant, subject);
            self.insert_queue_state(queue)?;
        }
        let before = std::mem::replace(&mut self.queue_mut(id)?.counts, counts);
        self.scheduled_count += counts.scheduled - before.scheduled;
        let limiter = self.limiter_mut(handler)?;
        limiter.running_count += counts.running - before.running;
        limiter.scheduled_count += counts.scheduled - before.scheduled;
        if counts.ready == 0 {
            // Peers may assign ranks from now on, which this cache would miss.
            self.queue_mut(id)?.key_round_robin = None;
        }
        self.reload_collection_task_rank(tables, id)?;
        self.update_queue_placement(id)
    }

    fn build_queue_state(
        &mut self,
        id: QueueId,
        handler: HandlerId,
        tenant: Tenant,
        subject: QueueSubject,
    ) -> QueueState {
        let next_index = self.queues.tenant_indexes.len() as TenantIndex;
        let tenant_index = *self.queues.tenant_indexes.entry(tenant.clone()).or_insert(next_index);
        QueueState {
            id,
            handler,
            tenant,
            tenant_index,
            subject,
            counts: QueueCounts::default(),
            is_paused: false,
            is_defined: false,
            virtual_time: 0,
            key_round_robin: None,
            collection_task_rank: None,
            placement: QueuePlacement::Absent,
            is_dirty: false,
        }
    }

    fn insert_queue_state(&mut self, mut queue: QueueState) -> TableResult<()> {
        queue.is_paused = self.is_queue_paused(queue.handler, &queue.subject, &queue.tenant);
        queue.is_defined = self.is_queue_defined(queue.handler, &queue.subject)?;
        let (id, handler, tenant) = (queue.id, queue.handler, queue.tenant.clone());
        match &queue.subject {
            QueueSubject::Events => self.queues.event_queue_ids.insert((handler, tenant), id),
            subject @ (QueueSubject::Collection(_) | QueueSubject::ChainNode { .. }) => {
                self.queues.collection_and_chain_node_queue_ids.insert((handler, tenant, subject.clone()), id)
            }
        };
        self.queues.by_id.insert(id, queue);
        self.update_queue_placement(id)
    }

    pub(crate) fn queue(&self, id: QueueId) -> TableResult<&QueueState> {
        self.queues.by_id.get(&id).ok_or_else(|| Fault::damaged(format!("queue {id} does not exist")))
    }

    fn queue_mut(&mut self, id: QueueId) -> TableResult<&mut QueueState> {
        self.queues.by_id.get_mut(&id).ok_or_else(|| Fault::damaged(format!("queue {id} does not exist")))
    }

    pub(crate) fn iter_queues(&self) -> impl Iterator<Item = &QueueState> {
        self.queues.by_id.values()
    }

    /// Returns the event queue of a handler and a tenant; creates it if necessary.
    pub(crate) fn get_or_create_event_queue(
        &mut self,
        tables: &mut dyn QueueTable,
        handler: HandlerId,
        tenant: &Tenant,
    ) -> TableResult<QueueId> {
        match self.queues.event_queue_ids.get(&(handler, tenant.clone())) {
            Some(id) => Ok(*id),
            None => self.create_queue(tables, handler, tenant, QueueSubject::Events),
        }
    }

    /// Returns the queue of a source's collection or of a chain node; creates it if necessary.
    pub(crate) fn get_or_create_collection_or_chain_node_queue(
        &mut self,
        tables: &mut dyn QueueTable,
        handler: HandlerId,
        tenant: &Tenant,
        subject: QueueSubject,
    ) -> TableResult<QueueId> {
        let queue_key = (handler, tenant.clone(), subject);
        match self.queues.collection_and_chain_node_queue_ids.get(&queue_key) {
            Some(id) => Ok(*id),
            None => self.create_queue(tables, handler, tenant, queue_key.2),
        }
    }

    fn create_queue(
        &mut self,
        tables: &mut dyn QueueTable,
        handler: HandlerId,
        tenant: &Tenant,
        subject: QueueSubject,
    ) -> TableResult<QueueId> {
        let id = tables.create_queue(handler, tenant, &subject)?;
        let queue = self.build_queue_state(id, handler, tenant.clone(), subject);
        self.insert_queue_state(queue)?;
        Ok(id)
    }

    /// Updates which of the affected queues are paused; returns those that are paused now.
    pub(crate) fn refresh_paused_flags(
        &mut self,
        is_affected: impl Fn(&QueueState) -> bool,
    ) -> TableResult<Vec<QueueId>> {
        let ids: Vec<QueueId> = self.iter_queues().filter(|q| is_affected(q)).map(|q| q.id).collect();
        let mut paused_queues = Vec::new();
        for id in ids {
            let queue = self.queue(id)?;
            let is_paused = self.is_queue_paused(queue.handler, &queue.subject, &queue.tenant);
            self.queue_mut(id)?.is_paused = is_paused;
            self.update_queue_placement(id)?;
            paused_queues.extend(is_paused.then_some(id));
        }
        Ok(paused_queues)
    }

    fn is_queue_defined(&self, handler: HandlerId, subject: &QueueSubject) -> TableResult<bool> {
        let handler = self.handler(handler)?;
        let matches_definition = match (&handler.def.source, subject) {
            (Some(source), QueueSubject::Collection(name)) => source.collections.contains_key(name),
            (Some(_), QueueSubject::Events | QueueSubject::ChainNode { .. })
            | (None, QueueSubject::Collection(_)) => false,
            (None, QueueSubject::Events | QueueSubject::ChainNode { .. }) => true,
        };
        Ok(handler.is_defined && matches_definition)
    }

    /// Removes all queues from the fair queues until [`WriterState::refill_fair_queues`], because definitions or limits
    /// are about to change.
    pub(crate) fn clear_fair_queues(&mut self) -> TableResult<()> {
        let ids: Vec<QueueId> = self.queues.by_id.keys().copied().collect();
        for id in ids {
            self.set_queue_placement(id, QueuePlacement::Absent)?;
            // A virtual time is only comparable within a pool, and the pool may change.
            self.queue_mut(id)?.virtual_time = 0;
        }
        Ok(())
    }

    /// Reads the rank of the ready task of a collection's queue again, and removes the queue from the fair queue, which
    /// orders it by its old rank. The caller updates its placement.
    pub(crate) fn reload_collection_task_rank(
        &mut self,
        tables: &mut dyn QueueTable,
        id: QueueId,
    ) -> TableResult<()> {
        let queue = self.queue(id)?;
        if !queue.is_collection_queue() {
            return Ok(());
        }
        let ready = queue.counts.ready > 0;
        self.remove_queue_from_fair_queue(id)?;
        self.queue_mut(id)?.collection_task_rank =
            if ready { read_collection_task_rank(tables, id)? } else { None };
        Ok(())
    }

    /// Puts queues back into the fair queues, by the current definitions and limits.
    pub(crate) fn refill_fair_queues(&mut self, now: Timestamp) -> TableResult<()> {
        let ids: Vec<QueueId> = self.queues.by_id.keys().copied().collect();
        for id in ids {
            let queue = self.queue(id)?;
            let defined = self.is_queue_defined(queue.handler, &queue.subject)?;
            self.queue_mut(id)?.is_defined = defined;
            self.update_queue_placement(id)?;
        }
        for handler in 1..=self.handlers.len() as HandlerId {
            self.refresh_handler_free_slots(handler, now)?;
        }
        Ok(())
    }

    /// Updates the counts for a task that changed its phase. `None` means that the task was created or removed.
    pub(crate) fn update_counts_for_phase_change(
        &mut self,
        id: QueueId,
        from: Option<TaskPhase>,
        to: Option<TaskPhase>,
    ) -> TableResult<()> {
        if from == to {
            return Ok(());
        }
        self.has_new_ready_tasks |= to == Some(TaskPhase::Ready);
        self.scheduled_count +=
            i64::from(to == Some(TaskPhase::Scheduled)) - i64::from(from == Some(TaskPhase::Scheduled));
        let queue = self.queue_mut(id)?;
        if let Some(from) = from {
            *queue.counts.count_of_phase_mut(from) -= 1;
        }
        if let Some(to) = to {
            *queue.counts.count_of_phase_mut(to) += 1;
        }
        if queue.counts.ready == 0
            && let Some(key_ranks) = &mut queue.key_round_robin
        {
            key_ranks.clear();
        }
        let handler = queue.handler;
        if !queue.is_dirty {
            queue.is_dirty = true;
            self.queues.dirty_queues.push(id);
        }
        let count_delta = |phase| i64::from(to == Some(phase)) - i64::from(from == Some(phase));
        let limiter = self.limiter_mut(handler)?;
        limiter.running_count += count_delta(TaskPhase::Locked);
        limiter.scheduled_count += count_delta(TaskPhase::Scheduled);
        self.update_queue_placement(id)
    }

    /// Assigns the rank of a task that becomes ready: after the tasks of its key that wait with the same score, and
    /// before the second task of any other key.
    pub(crate) fn assign_task_rank(
        &mut self,
        tables: &mut dyn QueueTable,
        id: QueueId,
        score: i64,
        key_bucket: Option<u16>,
    ) -> TableResult<i64> {
        // With ageing, two tasks hardly ever have the same score, and the oldest runs first.
        if self.handler(self.queue(id)?.handler)?.def.limits.ageing_interval.is_some() {
            return Ok(0);
        }
        let queue = self.queue_mut(id)?;
        let key_ranks = match &mut queue.key_round_robin {
            Some(key_ranks) => key_ranks,
            not_loaded if queue.counts.ready == 0 => not_loaded.insert(KeyRoundRobin::default()),
            not_loaded => not_loaded.insert(KeyRoundRobin::load(tables, id)?),
        };
        Ok(key_ranks.assign_rank(score, key_bucket))
    }

    /// Sets the rank of a collection's queue whose task becomes ready. Called before the task is counted.
    pub(crate) fn set_collection_task_rank(
        &mut self,
        id: QueueId,
        score: i64,
        seq: TaskSeq,
    ) -> TableResult<()> {
        let queue = self.queue_mut(id)?;
        if queue.is_collection_queue() {
            queue.collection_task_rank = Some((Reverse(score), seq.0));
        }
        Ok(())
    }

    /// Records that a task of a queue, of this score and rank, was claimed.
    pub(crate) fn record_served_rank(&mut self, id: QueueId, score: i64, rank: i64) -> TableResult<()> {
        if let Some(key_ranks) = &mut self.queue_mut(id)?.key_round_robin {
            key_ranks.record_served_rank(score, rank);
        }
        Ok(())
    }

    /// Counts the tasks of collections of the tenant that come before that of a collection's queue.
    pub(crate) fn count_collection_tasks_before(&self, id: QueueId) -> TableResult<u64> {
        let queue = self.queue(id)?;
        let before = |other: &&QueueState| {
            other.is_collection_queue()
                && other.counts.ready > 0
                && other.tenant == queue.tenant
                && other.collection_task_rank < queue.collection_task_rank
        };
        Ok(self.iter_queues().filter(before).count() as u64)
    }

    /// Writes the queue counts that changed.
    pub(crate) fn flush_queue_counts(&mut self, tables: &mut dyn QueueTable) -> TableResult<()> {
        let mut changed = Vec::with_capacity(self.queues.dirty_queues.len());
        for id in std::mem::take(&mut self.queues.dirty_queues) {
            let Some(queue) = self.queues.by_id.get_mut(&id) else { continue };
            queue.is_dirty = false;
            changed.push((id, queue.counts));
        }
        if changed.is_empty() { Ok(()) } else { tables.write_queue_counts(&changed) }
    }
}

/// Reads the rank of the ready task of a collection's queue.
fn read_collection_task_rank(
    tables: &mut dyn QueueTable,
    queue: QueueId,
) -> TableResult<Option<CollectionTaskRank>> {
    Ok(tables.read_queue_head(queue)?.map(|(score, seq)| (Reverse(score), seq.0)))
}
