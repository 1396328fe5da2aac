//! Placement of queues: in the fair queue, at their handler's limiter, or in neither.

use pointsman_core::limit::Admission;
use pointsman_core::{Tenant, Timestamp, Weight};

use super::{QueuePlacement, WorkerPool};
use crate::error::TableResult;
use crate::fair_queue::{FairQueue, FairQueueEntry, Strides, TenantIndex};
use crate::row::{HandlerId, QueueId};
use crate::writer_state::WriterState;

impl WriterState {
    /// Records that a queue was served once: advances its virtual time and those of its tenant and pool.
    pub(crate) fn record_queue_served(&mut self, id: QueueId) -> TableResult<()> {
        let queue = self.queue(id)?;
        let stride_of = |weight: Option<&Weight>| weight.copied().unwrap_or_default().virtual_time_stride();
        let strides = Strides {
            tenant: stride_of(self.tenant_weights.get(&queue.tenant)),
            entry: self.handler(queue.handler)?.def.limits.weight.virtual_time_stride(),
        };
        let entry = if queue.is_collection_queue() {
            FairQueueEntry::AllCollectionQueues
        } else {
            FairQueueEntry::Queue(id)
        };
        let (pool, tenant, virtual_time) =
            (self.worker_pool_of_handler(queue.handler)?, queue.tenant_index, queue.virtual_time);
        let virtual_time = self.queues.fair_queues.entry(pool).or_default().record_entry_served(
            tenant,
            entry,
            virtual_time,
            strides,
        );
        self.queue_mut(id)?.virtual_time = virtual_time;
        if pool != WorkerPool::Nodes {
            let last_served = self.queues.last_served_pool_virtual_time;
            let pool_virtual_time = self.queues.pool_virtual_times.entry(pool).or_default();
            let served = (*pool_virtual_time).max(last_served);
            *pool_virtual_time = served + strides.entry;
            self.queues.last_served_pool_virtual_time = served;
        }
        Ok(())
    }

    /// Returns the pools in the order in which to serve them.
    pub(crate) fn sort_pools_by_virtual_time(&self, pools: &[WorkerPool]) -> Vec<WorkerPool> {
        let mut pools = pools.to_vec();
        if pools.len() > 1 {
            pools.sort_by_key(|pool| self.queues.pool_virtual_times.get(pool).copied().unwrap_or(0));
        }
        pools
    }

    /// Returns whether a new task of this queue would be selected next. Tasks that are already scheduled have been
    /// served and delay no other task.
    pub(crate) fn would_queue_be_served_next(&self, id: QueueId) -> TableResult<bool> {
        let queue = self.queue(id)?;
        let is_idle = queue.counts.ready == 0 && queue.counts.scheduled == 0;
        let fair_queue = self.fair_queue(self.worker_pool_of_handler(queue.handler)?);
        Ok(is_idle
            && fair_queue.is_none_or(|fair_queue| {
                fair_queue.would_be_served_next(queue.tenant_index, queue.virtual_time)
            }))
    }

    pub(crate) fn worker_pool_of_handler(&self, handler: HandlerId) -> TableResult<WorkerPool> {
        let def = &self.handler(handler)?.def;
        Ok(match (def.pull, def.source.is_some()) {
            (false, _) => WorkerPool::Nodes,
            (true, false) => WorkerPool::PullHandler(handler),
            (true, true) => WorkerPool::PullSources,
        })
    }

    pub(crate) fn fair_queue(&self, pool: WorkerPool) -> Option<&FairQueue> {
        self.queues.fair_queues.get(&pool)
    }

    /// Returns whether any queue of any pool can run.
    pub(crate) fn has_runnable_queue(&self) -> bool {
        self.queues.fair_queues.values().any(|fair_queue| !fair_queue.is_empty())
    }

    pub(crate) fn find_tenant_index(&self, tenant: &Tenant) -> Option<TenantIndex> {
        self.queues.tenant_indexes.get(tenant).copied()
    }

    /// Places a queue according to its counts, rules and limits.
    pub(super) fn update_queue_placement(&mut self, id: QueueId) -> TableResult<()> {
        let queue = self.queue(id)?;
        let is_runnable = queue.counts.ready > 0 && !queue.is_paused && queue.is_defined;
        let placement = match is_runnable {
            false => QueuePlacement::Absent,
            true if self.limiter(queue.handler)?.is_exhausted => QueuePlacement::AtLimiter,
            true => QueuePlacement::InFairQueue,
        };
        // A queue in the fair queue stays there when its handler reaches a limit, until it is selected.
        let is_unchanged = placement == queue.placement
            || (placement == QueuePlacement::AtLimiter && queue.placement == QueuePlacement::InFairQueue);
        if is_unchanged {
            return Ok(());
        }
        let (was_in_fair_queue, handler) = (queue.placement == QueuePlacement::InFairQueue, queue.handler);
        self.set_queue_placement(id, placement)?;
        let limiter = self.limiter(handler)?;
        match was_in_fair_queue && !limiter.is_exhausted && !limiter.waiting_queues.is_empty() {
            // The queue leaves the fair queue without being served, so a queue that waits at the limiter gets its slot.
            true => self.admit_waiting_queues(handler, limiter.free_slots),
            false => Ok(()),
        }
    }

    pub(super) fn set_queue_placement(&mut self, id: QueueId, to: QueuePlacement) -> TableResult<()> {
        let queue = self.queue(id)?;
        let (from, handler, tenant, virtual_time, source_rank) = (
            queue.placement,
            queue.handler,
            queue.tenant_index,
            queue.virtual_time,
            queue.collection_task_rank,
        );
        let is_collection_queue = queue.is_collection_queue();
        let pool = self.worker_pool_of_handler(handler)?;
        let fair_queue = self.queues.fair_queues.entry(pool).or_default();
        match (from, source_rank.filter(|_| is_collection_queue)) {
            (QueuePlacement::InFairQueue, Some(rank)) => fair_queue.remove_collection_queue(tenant, id, rank),
            (QueuePlacement::InFairQueue, None) => fair_queue.remove_queue(tenant, id, virtual_time),
            (QueuePlacement::AtLimiter | QueuePlacement::Absent, _) => {}
        }
        let mut new_virtual_time = virtual_time;
        match (to, source_rank.filter(|_| is_collection_queue)) {
            (QueuePlacement::InFairQueue, Some(rank)) => fair_queue.add_collection_queue(tenant, id, rank),
            (QueuePlacement::InFairQueue, None) => {
                new_virtual_time = fair_queue.add_queue(tenant, id, virtual_time)
            }
            (QueuePlacement::AtLimiter | QueuePlacement::Absent, _) => {}
        }
        let limiter = self.limiter_mut(handler)?;
        match from {
            QueuePlacement::AtLimiter => {
                limiter.waiting_queues.remove(&(virtual_time, id));
            }
            QueuePlacement::InFairQueue | QueuePlacement::Absent => {}
        }
        if to == QueuePlacement::AtLimiter {
            limiter.waiting_queues.insert((new_virtual_time, id));
        }
        limiter.queues_in_fair_queue_count += u32::from(to == QueuePlacement::InFairQueue);
        limiter.queues_in_fair_queue_count -= u32::from(from == QueuePlacement::InFairQueue);
        let queue = self.queue_mut(id)?;
        queue.placement = to;
        queue.virtual_time = new_virtual_time;
        Ok(())
    }

    /// Removes a queue from the fair queue until its counts change: all its ready tasks have been selected.
    pub(crate) fn remove_queue_from_fair_queue(&mut self, id: QueueId) -> TableResult<()> {
        match self.queue(id)?.placement {
            QueuePlacement::InFairQueue => self.set_queue_placement(id, QueuePlacement::Absent),
            QueuePlacement::Absent | QueuePlacement::AtLimiter => Ok(()),
        }
    }

    /// Moves a queue out of the fair queue, because its handler has no free slot.
    pub(crate) fn move_queue_to_limiter(&mut self, id: QueueId) -> TableResult<()> {
        self.set_queue_placement(id, QueuePlacement::AtLimiter)
    }

    /// Returns a tenant's queues that wait at a handler's limiter to the fair queue, if the handler has free slots.
    /// Called for a worker that pulls for this tenant only.
    pub(crate) fn admit_waiting_queues_of_tenant(
        &mut self,
        handler: HandlerId,
        tenant: TenantIndex,
        now: Timestamp,
    ) -> TableResult<()> {
        let limiter = self.limiter(handler)?;
        if limiter.waiting_queues.is_empty()
            || !matches!(self.check_handler_limits(handler, now)?, Admission::Admitted(_))
        {
            return Ok(());
        }
        let is_of_tenant = |id: &QueueId| self.queue(*id).is_ok_and(|queue| queue.tenant_index == tenant);
        let ids: Vec<QueueId> =
            self.limiter(handler)?.waiting_queues.iter().map(|(_, id)| *id).filter(is_of_tenant).collect();
        ids.into_iter().try_for_each(|id| self.admit_waiting_queue(id))
    }

    /// Returns a queue from its handler's limiter to the fair queue; the handler has a free slot.
    pub(crate) fn admit_waiting_queue(&mut self, id: QueueId) -> TableResult<()> {
        self.set_queue_placement(id, QueuePlacement::InFairQueue)
    }
}
