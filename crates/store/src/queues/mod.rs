//! Queues: their counters, and which of them could run now.
//!
//! A queue that has something ready is in one of three places: in the turns of its pool; held by a rule, and then
//! nowhere; or parked with its handler, because a limit of the handler lets none of them run. A handler that
//! closes does not touch its queues: each is parked when its turn comes, and as many are fetched back as the
//! handler has room for. So a limit costs nothing that grows with the number of queues.

mod placement;

use foldhash::HashMap;
use std::cmp::Reverse;

use pointsman_core::task::QueueOf;
use pointsman_core::{CollectionName, TaskSeq, Tenant, Timestamp};

use crate::error::{Fault, Result};
use crate::fair_queue::{FairQueue, SourceRank, TenantIndex};
use crate::key_round_robin::KeyRoundRobin;
use crate::row::{HandlerId, QueueCounts, QueueId, QueueRow, TaskPhase};
use crate::tables::Tables;
use crate::writer_state::WriterState;

/// A queue: its counters, its place in the round robin, and the round robin of keys within it.
#[derive(Clone, Debug)]
pub(crate) struct QueueState {
    pub(crate) id: QueueId,
    pub(crate) handler: HandlerId,
    pub(crate) tenant: Tenant,
    tenant_index: TenantIndex,
    /// What its tasks are of.
    pub(crate) kind: QueueOf,
    pub(crate) counts: QueueCounts,
    pub(crate) is_paused: bool,
    /// Its handler is defined, and its collection, if it has one.
    pub(crate) is_defined: bool,
    virtual_time: i64,
    /// The round robin of keys among tasks of the same score. Not known after a start, until it is asked for.
    key_ranks: Option<KeyRoundRobin>,
    /// Where the one ready task of a source's queue stands.
    source_rank: Option<SourceRank>,
    placement: QueuePlacement,
    is_dirty: bool,
}

impl QueueState {
    /// The collection of a source's queue.
    pub(crate) fn collection(&self) -> Option<&CollectionName> {
        self.kind.collection()
    }

    /// All of a tenant's source queues are one line, in which priority decides.
    fn is_source_queue(&self) -> bool {
        self.collection().is_some()
    }
}

/// Where a queue is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueuePlacement {
    Absent,
    InRotation,
    Parked,
}

/// Who serves a handler's queues: the nodes all together, or workers that ask for it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkerPool {
    Nodes,
    PullHandler(HandlerId),
    PullSources,
}

/// All queues there are.
#[derive(Debug, Default)]
pub(crate) struct QueueStates {
    by_id: HashMap<QueueId, QueueState>,
    event_queues: HashMap<(HandlerId, Tenant), QueueId>,
    /// Those of collections and of nodes.
    other_queues: HashMap<(HandlerId, Tenant, QueueOf), QueueId>,
    fair_queues: HashMap<WorkerPool, FairQueue>,
    /// Whose turn it is among the pools of workers that ask for several.
    pool_virtual_times: HashMap<WorkerPool, i64>,
    /// The turn of the pool that was served last.
    last_served_pool_time: i64,
    tenant_indexes: HashMap<Tenant, TenantIndex>,
    /// Queues changed in this transaction, to be written before the commit.
    dirty_queues: Vec<QueueId>,
}

impl WriterState {
    pub(crate) fn load_queue_states(&mut self, tables: &dyn Tables) -> Result<()> {
        tables.list_queues()?.into_iter().try_for_each(|row| self.apply_queue_row(tables, row))
    }

    /// A queue is as the table says, whether it was known before or not.
    pub(crate) fn apply_queue_row(&mut self, tables: &dyn Tables, row: QueueRow) -> Result<()> {
        let QueueRow { id, handler, tenant, kind: of, counts } = row;
        if !self.queues.by_id.contains_key(&id) {
            let queue = self.build_queue_state(id, handler, tenant, of);
            self.insert_queue_state(queue)?;
        }
        let before = std::mem::replace(&mut self.queue_mut(id)?.counts, counts);
        self.scheduled_count += counts.scheduled - before.scheduled;
        let limiter = self.limiter_mut(handler)?;
        limiter.running += counts.running - before.running;
        limiter.scheduled += counts.scheduled - before.scheduled;
        if counts.ready == 0 {
            // The ranks that others give from here on are not known here.
            self.queue_mut(id)?.key_ranks = None;
        }
        self.reload_source_rank(tables, id)?;
        self.update_placement(id)
    }

    fn build_queue_state(
        &mut self,
        id: QueueId,
        handler: HandlerId,
        tenant: Tenant,
        of: QueueOf,
    ) -> QueueState {
        let next = self.queues.tenant_indexes.len() as TenantIndex;
        let tenant_id = *self.queues.tenant_indexes.entry(tenant.clone()).or_insert(next);
        QueueState {
            id,
            handler,
            tenant,
            tenant_index: tenant_id,
            kind: of,
            counts: QueueCounts::default(),
            is_paused: false,
            is_defined: false,
            virtual_time: 0,
            key_ranks: None,
            source_rank: None,
            placement: QueuePlacement::Absent,
            is_dirty: false,
        }
    }

    fn insert_queue_state(&mut self, mut queue: QueueState) -> Result<()> {
        queue.is_paused = self.is_queue_paused(queue.handler, &queue.kind, &queue.tenant);
        queue.is_defined = self.is_queue_defined(queue.handler, &queue.kind)?;
        let (id, handler, tenant) = (queue.id, queue.handler, queue.tenant.clone());
        match &queue.kind {
            QueueOf::Events => self.queues.event_queues.insert((handler, tenant), id),
            of @ (QueueOf::Collection(_) | QueueOf::Node { .. }) => {
                self.queues.other_queues.insert((handler, tenant, of.clone()), id)
            }
        };
        self.queues.by_id.insert(id, queue);
        self.update_placement(id)
    }

    pub(crate) fn queue(&self, id: QueueId) -> Result<&QueueState> {
        self.queues.by_id.get(&id).ok_or_else(|| Fault::damaged(format!("no queue {id}")))
    }

    fn queue_mut(&mut self, id: QueueId) -> Result<&mut QueueState> {
        self.queues.by_id.get_mut(&id).ok_or_else(|| Fault::damaged(format!("no queue {id}")))
    }

    pub(crate) fn iter_queues(&self) -> impl Iterator<Item = &QueueState> {
        self.queues.by_id.values()
    }

    /// The queue of a handler and a tenant, made if there is none yet.
    pub(crate) fn get_or_create_event_queue(
        &mut self,
        tables: &dyn Tables,
        handler: HandlerId,
        tenant: &Tenant,
    ) -> Result<QueueId> {
        match self.queues.event_queues.get(&(handler, tenant.clone())) {
            Some(id) => Ok(*id),
            None => self.create_queue(tables, handler, tenant, QueueOf::Events),
        }
    }

    /// The queue of a source's collection or of a chain's node, made if there is none yet.
    pub(crate) fn get_or_create_queue(
        &mut self,
        tables: &dyn Tables,
        handler: HandlerId,
        tenant: &Tenant,
        of: QueueOf,
    ) -> Result<QueueId> {
        let name = (handler, tenant.clone(), of);
        match self.queues.other_queues.get(&name) {
            Some(id) => Ok(*id),
            None => self.create_queue(tables, handler, tenant, name.2),
        }
    }

    fn create_queue(
        &mut self,
        tables: &dyn Tables,
        handler: HandlerId,
        tenant: &Tenant,
        of: QueueOf,
    ) -> Result<QueueId> {
        let id = tables.create_queue(handler, tenant, &of)?;
        let queue = self.build_queue_state(id, handler, tenant.clone(), of);
        self.insert_queue_state(queue)?;
        Ok(id)
    }

    /// Looks again at what holds the queues of a place; answers which are held.
    pub(crate) fn refresh_paused(
        &mut self,
        is_affected: impl Fn(&QueueState) -> bool,
    ) -> Result<Vec<QueueId>> {
        let ids: Vec<QueueId> = self.iter_queues().filter(|q| is_affected(q)).map(|q| q.id).collect();
        let mut paused = Vec::new();
        for id in ids {
            let queue = self.queue(id)?;
            let is_paused = self.is_queue_paused(queue.handler, &queue.kind, &queue.tenant);
            self.queue_mut(id)?.is_paused = is_paused;
            self.update_placement(id)?;
            paused.extend(is_paused.then_some(id));
        }
        Ok(paused)
    }

    fn is_queue_defined(&self, handler: HandlerId, of: &QueueOf) -> Result<bool> {
        let handler = self.handler(handler)?;
        let fits = match (&handler.def.source, of) {
            (Some(source), QueueOf::Collection(name)) => source.collections.contains_key(name),
            (Some(_), QueueOf::Events | QueueOf::Node { .. }) | (None, QueueOf::Collection(_)) => false,
            (None, QueueOf::Events | QueueOf::Node { .. }) => true,
        };
        Ok(handler.is_defined && fits)
    }

    /// Nobody is in turn until [`WriterState::resume_fair_queues`]: what decides about the queues is about to change.
    pub(crate) fn suspend_fair_queues(&mut self) -> Result<()> {
        let ids: Vec<QueueId> = self.queues.by_id.keys().copied().collect();
        for id in ids {
            self.place_queue(id, QueuePlacement::Absent)?;
            // A turn counts among those of the same pool, and the pool may become another.
            self.queue_mut(id)?.virtual_time = 0;
        }
        Ok(())
    }

    /// Looks again at where the ready task of a source's queue stands. It is out of the turns meanwhile, where it stood
    /// by what was known before.
    pub(crate) fn reload_source_rank(&mut self, tables: &dyn Tables, id: QueueId) -> Result<()> {
        let queue = self.queue(id)?;
        if !queue.is_source_queue() {
            return Ok(());
        }
        let ready = queue.counts.ready > 0;
        self.remove_exhausted_queue(id)?;
        self.queue_mut(id)?.source_rank = if ready { read_source_rank(tables, id)? } else { None };
        Ok(())
    }

    /// Takes up again by the definitions and limits as they are now.
    pub(crate) fn resume_fair_queues(&mut self, now: Timestamp) -> Result<()> {
        let ids: Vec<QueueId> = self.queues.by_id.keys().copied().collect();
        for id in ids {
            let queue = self.queue(id)?;
            let defined = self.is_queue_defined(queue.handler, &queue.kind)?;
            self.queue_mut(id)?.is_defined = defined;
            self.update_placement(id)?;
        }
        for handler in 1..=self.handlers.len() as HandlerId {
            self.apply_limits(handler, now)?;
        }
        Ok(())
    }

    /// A task went from one phase to another; `None` means it came or went.
    pub(crate) fn count_phase_change(
        &mut self,
        id: QueueId,
        from: Option<TaskPhase>,
        to: Option<TaskPhase>,
    ) -> Result<()> {
        if from == to {
            return Ok(());
        }
        self.has_new_ready |= to == Some(TaskPhase::Ready);
        self.scheduled_count +=
            i64::from(to == Some(TaskPhase::Scheduled)) - i64::from(from == Some(TaskPhase::Scheduled));
        let queue = self.queue_mut(id)?;
        if let Some(from) = from {
            *queue.counts.count_mut(from) -= 1;
        }
        if let Some(to) = to {
            *queue.counts.count_mut(to) += 1;
        }
        if queue.counts.ready == 0
            && let Some(key_ranks) = &mut queue.key_ranks
        {
            key_ranks.clear();
        }
        let handler = queue.handler;
        if !queue.is_dirty {
            queue.is_dirty = true;
            self.queues.dirty_queues.push(id);
        }
        let change = |phase| i64::from(to == Some(phase)) - i64::from(from == Some(phase));
        let limiter = self.limiter_mut(handler)?;
        limiter.running += change(TaskPhase::Locked);
        limiter.scheduled += change(TaskPhase::Scheduled);
        self.update_placement(id)
    }

    /// The rank of a task that becomes ready: behind what its key has waiting at the same score, before the second task
    /// of any other.
    pub(crate) fn assign_rank(
        &mut self,
        tables: &dyn Tables,
        id: QueueId,
        score: i64,
        bucket: Option<u16>,
    ) -> Result<i64> {
        // Where tasks age, hardly two have the same score: the oldest goes first.
        if self.handler(self.queue(id)?.handler)?.def.limits.ageing.is_some() {
            return Ok(0);
        }
        let queue = self.queue_mut(id)?;
        let key_ranks = match &mut queue.key_ranks {
            Some(key_ranks) => key_ranks,
            unknown if queue.counts.ready == 0 => unknown.insert(KeyRoundRobin::default()),
            unknown => unknown.insert(KeyRoundRobin::load(tables, id)?),
        };
        Ok(key_ranks.assign_rank(score, bucket))
    }

    /// A source's queue has a task that could run. Called before it is counted.
    pub(crate) fn set_source_rank(&mut self, id: QueueId, score: i64, seq: TaskSeq) -> Result<()> {
        let queue = self.queue_mut(id)?;
        if queue.is_source_queue() {
            queue.source_rank = Some((Reverse(score), seq.0));
        }
        Ok(())
    }

    /// A queue was served once, by a task of this score and rank.
    pub(crate) fn record_served(&mut self, id: QueueId, score: i64, rank: i64) -> Result<()> {
        if let Some(key_ranks) = &mut self.queue_mut(id)?.key_ranks {
            key_ranks.record_served(score, rank);
        }
        Ok(())
    }

    /// How many source tasks of its tenant come before that of a source's queue.
    pub(crate) fn count_source_queues_before(&self, id: QueueId) -> Result<u64> {
        let queue = self.queue(id)?;
        let before = |other: &&QueueState| {
            other.is_source_queue()
                && other.counts.ready > 0
                && other.tenant == queue.tenant
                && other.source_rank < queue.source_rank
        };
        Ok(self.iter_queues().filter(before).count() as u64)
    }

    /// Writes the counters that changed.
    pub(crate) fn flush_queue_counts(&mut self, tables: &dyn Tables) -> Result<()> {
        let mut changed = Vec::with_capacity(self.queues.dirty_queues.len());
        for id in std::mem::take(&mut self.queues.dirty_queues) {
            let Some(queue) = self.queues.by_id.get_mut(&id) else { continue };
            queue.is_dirty = false;
            changed.push((id, queue.counts));
        }
        if changed.is_empty() { Ok(()) } else { tables.write_queue_counts(&changed) }
    }
}

/// Where the ready task of a source's queue stands.
fn read_source_rank(tables: &dyn Tables, queue: QueueId) -> Result<Option<SourceRank>> {
    Ok(tables.read_queue_head(queue)?.map(|(score, seq)| (Reverse(score), seq.0)))
}
