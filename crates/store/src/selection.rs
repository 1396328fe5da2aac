//! Selects what runs next: fairly among tenants, then queues, then keys; by priority and age within a queue.
//!
//! Slots are assigned to queues one at a time, by virtual time. A queue whose handler has no free slot moves to the
//! handler's limiter when it is selected. Then each queue contributes as many of its first tasks as it was assigned
//! slots.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pointsman_core::limit::Admission;
use pointsman_core::store::{ClaimRequest, Claimant};
use pointsman_core::{HandlerName, Timestamp};

use crate::error::TableResult;
use crate::fair_queue::TenantIndex;
use crate::queues::WorkerPool;
use crate::row::{ActiveTaskRow, HandlerId, QueueId};
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::RegisteredHandler;

/// Queues from which a selection may take tasks.
struct SelectionScope {
    pools: Vec<WorkerPool>,
    /// Only queues of these handlers; `None` for all of the pools.
    only_handlers: Option<BTreeSet<HandlerId>>,
    only_tenant: Option<TenantIndex>,
    /// Whether tasks are selected to be scheduled ahead, not claimed. Then tasks that are already scheduled use up
    /// slots of their handler, too.
    is_look_ahead: bool,
}

/// A selection in progress: how many tasks to take from each queue.
#[derive(Default)]
struct Selection {
    /// The number of tasks to take from each queue, in the order in which the queues were first selected.
    queue_shares: Vec<(QueueId, i64)>,
    /// The index of each queue in `queue_shares`.
    share_indexes: HashMap<QueueId, usize>,
    /// The slots that each limited handler has left.
    free_slots_by_handler: HashMap<HandlerId, u32>,
}

impl Selection {
    fn increment_queue_share(&mut self, queue: QueueId) -> i64 {
        let index = *self.share_indexes.entry(queue).or_insert_with(|| {
            self.queue_shares.push((queue, 0));
            self.queue_shares.len() - 1
        });
        let share = &mut self.queue_shares[index].1;
        *share += 1;
        *share
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Selects up to `max` tasks for a claim.
    pub(crate) fn select_for_claim(
        &mut self,
        claim: &ClaimRequest,
        max: usize,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let Some(scope) = self.selection_scope_of_claim(claim) else { return Ok(vec![]) };
        if let Some(tenant) = scope.only_tenant {
            for handler in scope.only_handlers.iter().flatten() {
                self.state.admit_waiting_queues_of_tenant(*handler, tenant, now)?;
            }
        }
        self.select_tasks(&scope, max, now)
    }

    /// Selects up to `max` tasks to schedule ahead.
    pub(crate) fn select_for_look_ahead(
        &mut self,
        max: usize,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let scope = SelectionScope {
            pools: vec![WorkerPool::Nodes],
            only_handlers: None,
            only_tenant: None,
            is_look_ahead: true,
        };
        self.select_tasks(&scope, max, now)
    }

    /// Returns whether a claim would find more tasks.
    pub(crate) fn has_more_for_claim(&mut self, claim: &ClaimRequest, now: Timestamp) -> TableResult<bool> {
        let Some(scope) = self.selection_scope_of_claim(claim) else { return Ok(false) };
        Ok(self.find_next_queue_with_free_slot(&scope, &mut Selection::default(), now)?.is_some())
    }

    /// Returns the queues that a claim may take tasks from; `None` if there are none.
    fn selection_scope_of_claim(&self, claim: &ClaimRequest) -> Option<SelectionScope> {
        let mut scope =
            SelectionScope { pools: vec![], only_handlers: None, only_tenant: None, is_look_ahead: false };
        let find_defined =
            |name: &HandlerName| self.state.find_handler(name).filter(|handler| handler.is_defined);
        match &claim.claimant {
            Claimant::Node(_) => {
                scope.pools.push(WorkerPool::Nodes);
                // Most nodes can run all handlers; then the handler of each queue need not be checked.
                let runs_on_nodes =
                    |handler: &&Arc<RegisteredHandler>| handler.is_defined && !handler.def.pull;
                let mut node_handlers = self.state.handlers.iter().filter(runs_on_nodes);
                if !node_handlers.all(|handler| claim.handlers.contains(&handler.def.name)) {
                    let ids = claim.handlers.iter().filter_map(find_defined).map(|handler| handler.id);
                    scope.only_handlers = Some(ids.collect());
                }
            }
            Claimant::PullWorker { tenant, .. } => {
                scope.only_tenant = match tenant {
                    Some(tenant) => Some(self.state.find_tenant_index(tenant)?),
                    None => None,
                };
                let pulled_handlers =
                    claim.handlers.iter().filter_map(find_defined).filter(|handler| handler.def.pull);
                let pulled_handlers: Vec<_> =
                    pulled_handlers.map(|handler| (handler.id, handler.def.source.is_some())).collect();
                scope.pools.extend(
                    pulled_handlers
                        .iter()
                        .filter(|(_, source)| !source)
                        .map(|(id, _)| WorkerPool::PullHandler(*id)),
                );
                if pulled_handlers.iter().any(|(_, source)| *source) {
                    scope.pools.push(WorkerPool::PullSources);
                }
                scope.only_handlers = Some(pulled_handlers.into_iter().map(|(id, _)| id).collect());
            }
        }
        Some(scope)
    }

    fn select_tasks(
        &mut self,
        scope: &SelectionScope,
        max: usize,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let mut selection = Selection::default();
        for _ in 0..max {
            let Some(queue) = self.find_next_queue_with_free_slot(scope, &mut selection, now)? else { break };
            self.state.record_queue_served(queue)?;
            let share = selection.increment_queue_share(queue);
            let (handler, ready) = {
                let queue = self.state.queue(queue)?;
                (queue.handler, queue.counts.ready)
            };
            if share >= ready {
                self.state.remove_queue_from_fair_queue(queue)?;
            }
            if let Some(free_slots) = selection.free_slots_by_handler.get_mut(&handler) {
                *free_slots -= 1;
                let free_slots = *free_slots;
                self.state.admit_waiting_queues(handler, free_slots)?;
            }
        }
        if scope.is_look_ahead {
            // Queues that moved to a limiter only because of scheduled tasks can still be claimed from.
            for handler in selection.free_slots_by_handler.keys() {
                self.state.refresh_handler_free_slots(*handler, now)?;
            }
        }
        self.tables.list_first_ready_tasks_of_queues(&selection.queue_shares)
    }

    /// Returns the queue to serve next. Moves queues whose handler has no free slot to the handler's limiter.
    fn find_next_queue_with_free_slot(
        &mut self,
        scope: &SelectionScope,
        selection: &mut Selection,
        now: Timestamp,
    ) -> TableResult<Option<QueueId>> {
        for pool in self.state.sort_pools_by_virtual_time(&scope.pools) {
            while let Some(queue) = self.find_next_queue_in_pool(scope, pool) {
                let handler = self.state.queue(queue)?.handler;
                if !self.state.must_check_handler_limits(handler)? {
                    return Ok(Some(queue));
                }
                let free_slots = match selection.free_slots_by_handler.get(&handler) {
                    Some(free_slots) => *free_slots,
                    None => match self.state.check_handler_limits(handler, now)? {
                        Admission::Admitted(free_slots) if scope.is_look_ahead => {
                            let scheduled = self.state.limiter(handler)?.scheduled_count;
                            free_slots.saturating_sub(u32::try_from(scheduled).unwrap_or(0))
                        }
                        Admission::Admitted(free_slots) => free_slots,
                        Admission::ConcurrencyFull
                        | Admission::RateLimited(_)
                        | Admission::BreakerOpen(_) => {
                            self.state.refresh_handler_free_slots(handler, now)?;
                            0
                        }
                    },
                };
                selection.free_slots_by_handler.insert(handler, free_slots);
                if free_slots > 0 {
                    return Ok(Some(queue));
                }
                self.state.move_queue_to_limiter(queue)?;
            }
        }
        Ok(None)
    }

    fn find_next_queue_in_pool(&self, scope: &SelectionScope, pool: WorkerPool) -> Option<QueueId> {
        let is_allowed = |queue: QueueId| {
            let Ok(queue) = self.state.queue(queue) else { return false };
            scope.only_handlers.as_ref().is_none_or(|allowed| allowed.contains(&queue.handler))
        };
        let fair_queue = self.state.fair_queue(pool)?;
        match scope.only_tenant {
            Some(tenant) => fair_queue.find_next_queue_of_tenant(tenant, is_allowed),
            None => fair_queue.find_next_queue(is_allowed).map(|(_, queue)| queue),
        }
    }
}
