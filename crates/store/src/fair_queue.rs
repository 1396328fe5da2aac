//! Fair queue: a weighted round robin over tenants, and within a tenant over its entries.
//!
//! An entry is a queue of a handler, or all collection queues of the tenant together; among collection queues, priority
//! decides, then age. Tenants and entries have a virtual time, which advances by their stride whenever they are served
//! (a larger weight has a shorter stride), and the smallest virtual time is served next. An entry that returns from
//! idleness starts at the virtual time of those served last: idle time earns no credit.
//!
//! A fair queue contains runnable queues only, so its cost does not depend on the number of idle queues.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use foldhash::HashMap;

use crate::row::QueueId;

/// Index of a tenant, valid for the lifetime of the process.
pub(crate) type TenantIndex = u32;

/// An entry of a tenant's round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FairQueueEntry {
    Queue(QueueId),
    AllCollectionQueues,
}

/// Rank of a collection's task among those of its tenant: the higher score first, then the older task.
pub(crate) type CollectionTaskRank = (Reverse<i64>, i64);

/// Runnable queues of a worker pool, by tenant.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    rotations_by_tenant: HashMap<TenantIndex, TenantRotation>,
    tenants_by_virtual_time: BTreeSet<(i64, TenantIndex)>,
    /// Virtual time of the tenant that was served last.
    last_served_tenant_virtual_time: i64,
}

/// A tenant's virtual time, and the round robin of its entries.
#[derive(Debug, Default)]
struct TenantRotation {
    virtual_time: i64,
    entries_by_virtual_time: BTreeSet<(i64, FairQueueEntry)>,
    /// Virtual time of the entry that was served last.
    last_served_entry_virtual_time: i64,
    collection_queues_by_rank: BTreeSet<(CollectionTaskRank, QueueId)>,
    /// Virtual time of the one entry of all collection queues.
    collection_queues_virtual_time: i64,
}

impl FairQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.tenants_by_virtual_time.is_empty()
    }

    /// Adds a runnable queue; returns its virtual time, which is at least that of the entry served last.
    pub(crate) fn add_queue(&mut self, tenant: TenantIndex, queue: QueueId, virtual_time: i64) -> i64 {
        let rotation = self.activate_tenant(tenant);
        let virtual_time = virtual_time.max(rotation.last_served_entry_virtual_time);
        rotation.entries_by_virtual_time.insert((virtual_time, FairQueueEntry::Queue(queue)));
        virtual_time
    }

    pub(crate) fn remove_queue(&mut self, tenant: TenantIndex, queue: QueueId, virtual_time: i64) {
        if let Some(rotation) = self.rotations_by_tenant.get_mut(&tenant) {
            rotation.entries_by_virtual_time.remove(&(virtual_time, FairQueueEntry::Queue(queue)));
        }
        self.remove_tenant_if_idle(tenant);
    }

    /// Adds a runnable queue of a source.
    pub(crate) fn add_collection_queue(
        &mut self,
        tenant: TenantIndex,
        queue: QueueId,
        rank: CollectionTaskRank,
    ) {
        let rotation = self.activate_tenant(tenant);
        if rotation.collection_queues_by_rank.is_empty() {
            rotation.collection_queues_virtual_time =
                rotation.collection_queues_virtual_time.max(rotation.last_served_entry_virtual_time);
            rotation
                .entries_by_virtual_time
                .insert((rotation.collection_queues_virtual_time, FairQueueEntry::AllCollectionQueues));
        }
        rotation.collection_queues_by_rank.insert((rank, queue));
    }

    pub(crate) fn remove_collection_queue(
        &mut self,
        tenant: TenantIndex,
        queue: QueueId,
        rank: CollectionTaskRank,
    ) {
        if let Some(rotation) = self.rotations_by_tenant.get_mut(&tenant)
            && rotation.collection_queues_by_rank.remove(&(rank, queue))
            && rotation.collection_queues_by_rank.is_empty()
        {
            rotation
                .entries_by_virtual_time
                .remove(&(rotation.collection_queues_virtual_time, FairQueueEntry::AllCollectionQueues));
        }
        self.remove_tenant_if_idle(tenant);
    }

    /// Returns the round robin of a tenant that gets a runnable queue. A tenant without runnable queues so far is added
    /// to the order of tenants.
    fn activate_tenant(&mut self, tenant: TenantIndex) -> &mut TenantRotation {
        let rotation = self.rotations_by_tenant.entry(tenant).or_default();
        if rotation.entries_by_virtual_time.is_empty() {
            rotation.virtual_time = rotation.virtual_time.max(self.last_served_tenant_virtual_time);
            self.tenants_by_virtual_time.insert((rotation.virtual_time, tenant));
        }
        rotation
    }

    /// Removes a tenant from the order of tenants if it has no runnable queue.
    fn remove_tenant_if_idle(&mut self, tenant: TenantIndex) {
        if let Some(rotation) = self.rotations_by_tenant.get(&tenant)
            && rotation.entries_by_virtual_time.is_empty()
        {
            self.tenants_by_virtual_time.remove(&(rotation.virtual_time, tenant));
        }
    }

    /// Returns the queue to serve next, among those for which `is_allowed` returns true.
    pub(crate) fn find_next_queue(
        &self,
        is_allowed: impl Fn(QueueId) -> bool,
    ) -> Option<(TenantIndex, QueueId)> {
        self.tenants_by_virtual_time.iter().find_map(|(_, tenant)| {
            self.find_next_queue_of_tenant(*tenant, &is_allowed).map(|queue| (*tenant, queue))
        })
    }

    /// Returns the queue of one tenant to serve next, among those for which `is_allowed` returns true.
    pub(crate) fn find_next_queue_of_tenant(
        &self,
        tenant: TenantIndex,
        is_allowed: impl Fn(QueueId) -> bool,
    ) -> Option<QueueId> {
        self.rotations_by_tenant.get(&tenant)?.entries_by_virtual_time.iter().find_map(|(_, entry)| {
            match entry {
                FairQueueEntry::Queue(queue) => is_allowed(*queue).then_some(*queue),
                FairQueueEntry::AllCollectionQueues => {
                    let source_queues =
                        self.rotations_by_tenant.get(&tenant)?.collection_queues_by_rank.iter();
                    source_queues.map(|(_, queue)| *queue).find(|queue| is_allowed(*queue))
                }
            }
        })
    }

    /// Returns whether a queue that is added now would be served next.
    pub(crate) fn would_be_served_next(&self, tenant: TenantIndex, virtual_time: i64) -> bool {
        let Some((first_virtual_time, first_tenant)) = self.tenants_by_virtual_time.first() else {
            return true;
        };
        match self
            .rotations_by_tenant
            .get(&tenant)
            .filter(|rotation| !rotation.entries_by_virtual_time.is_empty())
        {
            Some(rotation) => {
                *first_tenant == tenant
                    && rotation.entries_by_virtual_time.first().is_none_or(|(entry, _)| {
                        virtual_time.max(rotation.last_served_entry_virtual_time) < *entry
                    })
            }
            None => {
                self.rotations_by_tenant
                    .get(&tenant)
                    .map_or(self.last_served_tenant_virtual_time, |rotation| {
                        rotation.virtual_time.max(self.last_served_tenant_virtual_time)
                    })
                    <= *first_virtual_time
            }
        }
    }

    /// Records that an entry was served once: advances the virtual times of the entry and its tenant. Returns the
    /// entry's new virtual time.
    pub(crate) fn record_entry_served(
        &mut self,
        tenant: TenantIndex,
        entry: FairQueueEntry,
        virtual_time: i64,
        strides: Strides,
    ) -> i64 {
        let rotation = self.rotations_by_tenant.entry(tenant).or_default();
        let is_tenant_active = !rotation.entries_by_virtual_time.is_empty();
        if is_tenant_active {
            self.tenants_by_virtual_time.remove(&(rotation.virtual_time, tenant));
        } else {
            rotation.virtual_time = rotation.virtual_time.max(self.last_served_tenant_virtual_time);
        }
        self.last_served_tenant_virtual_time =
            self.last_served_tenant_virtual_time.max(rotation.virtual_time);
        rotation.virtual_time += strides.tenant;
        if is_tenant_active {
            self.tenants_by_virtual_time.insert((rotation.virtual_time, tenant));
        }
        let virtual_time = match entry {
            FairQueueEntry::Queue(_) => virtual_time,
            FairQueueEntry::AllCollectionQueues => rotation.collection_queues_virtual_time,
        };
        let was_entry_active = rotation.entries_by_virtual_time.remove(&(virtual_time, entry));
        let virtual_time = if was_entry_active {
            virtual_time
        } else {
            virtual_time.max(rotation.last_served_entry_virtual_time)
        };
        rotation.last_served_entry_virtual_time = rotation.last_served_entry_virtual_time.max(virtual_time);
        let next_virtual_time = virtual_time + strides.entry;
        if was_entry_active {
            rotation.entries_by_virtual_time.insert((next_virtual_time, entry));
        }
        if entry == FairQueueEntry::AllCollectionQueues {
            rotation.collection_queues_virtual_time = next_virtual_time;
        }
        next_virtual_time
    }
}

/// By how much the virtual times of a tenant and of its entry advance each time they are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strides {
    pub(crate) tenant: i64,
    pub(crate) entry: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL_STRIDES: Strides = Strides { tenant: 100, entry: 100 };

    /// Serves `count` times; returns how often each queue was served.
    fn serve_repeatedly(
        fair_queue: &mut FairQueue,
        virtual_times: &mut HashMap<QueueId, i64>,
        strides: &dyn Fn(TenantIndex, QueueId) -> Strides,
        count: usize,
    ) -> HashMap<QueueId, usize> {
        let mut served = HashMap::default();
        for _ in 0..count {
            let Some((tenant, queue)) = fair_queue.find_next_queue(|_| true) else { break };
            let virtual_time = fair_queue.record_entry_served(
                tenant,
                FairQueueEntry::Queue(queue),
                virtual_times[&queue],
                strides(tenant, queue),
            );
            virtual_times.insert(queue, virtual_time);
            *served.entry(queue).or_default() += 1;
        }
        served
    }

    #[test]
    fn tenants_share_equally_and_so_do_queues_of_a_tenant() {
        let (mut fair_queue, mut virtual_times) = (FairQueue::default(), HashMap::default());
        for queue in 1..=10 {
            virtual_times.insert(queue, fair_queue.add_queue(1, queue, 0));
        }
        virtual_times.insert(99, fair_queue.add_queue(2, 99, 0));
        let served = serve_repeatedly(&mut fair_queue, &mut virtual_times, &|_, _| EQUAL_STRIDES, 200);
        assert_eq!(served[&99], 100, "a tenant gets half, whether it has one queue or ten");
        assert!((1..=10).all(|queue| served[&queue] == 10));
    }

    #[test]
    fn queues_are_served_in_proportion_to_weights() {
        let (mut fair_queue, mut virtual_times) = (FairQueue::default(), HashMap::default());
        for queue in [1, 2] {
            virtual_times.insert(queue, fair_queue.add_queue(1, queue, 0));
        }
        virtual_times.insert(3, fair_queue.add_queue(2, 3, 0));
        let strides = |tenant, queue| Strides {
            tenant: if tenant == 2 { 25 } else { 100 },
            entry: if queue == 1 { 50 } else { 100 },
        };
        let served = serve_repeatedly(&mut fair_queue, &mut virtual_times, &strides, 500);
        assert_eq!(served[&3], 400);
        assert!(served[&1].abs_diff(66) <= 1 && served[&2].abs_diff(33) <= 1, "{served:?}");
    }

    #[test]
    fn idle_time_earns_no_credit() {
        let (mut fair_queue, mut virtual_times) = (FairQueue::default(), HashMap::default());
        virtual_times.insert(1, fair_queue.add_queue(1, 1, 0));
        serve_repeatedly(&mut fair_queue, &mut virtual_times, &|_, _| EQUAL_STRIDES, 50);
        virtual_times.insert(2, fair_queue.add_queue(2, 2, 0));
        let served = serve_repeatedly(&mut fair_queue, &mut virtual_times, &|_, _| EQUAL_STRIDES, 20);
        assert!(served[&1].abs_diff(served[&2]) <= 1, "{served:?}");
    }

    #[test]
    fn collection_queues_of_a_tenant_share_one_entry_by_priority_and_age() {
        let mut fair_queue = FairQueue::default();
        for (queue, score, seq) in [(1, 100, 7), (2, 200, 9), (3, 200, 8)] {
            fair_queue.add_collection_queue(1, queue, (Reverse(score), seq));
        }
        let initial_virtual_time = fair_queue.add_queue(1, 9, 0);
        let mut served_queues = Vec::new();
        let mut virtual_time = initial_virtual_time;
        for _ in 0..6 {
            let Some((tenant, queue)) = fair_queue.find_next_queue(|_| true) else { break };
            served_queues.push(queue);
            if queue == 9 {
                virtual_time = fair_queue.record_entry_served(
                    tenant,
                    FairQueueEntry::Queue(9),
                    virtual_time,
                    EQUAL_STRIDES,
                );
            } else {
                fair_queue.record_entry_served(tenant, FairQueueEntry::AllCollectionQueues, 0, EQUAL_STRIDES);
                let rank = [(1, (Reverse(100), 7)), (2, (Reverse(200), 9)), (3, (Reverse(200), 8))];
                fair_queue.remove_collection_queue(
                    1,
                    queue,
                    rank.iter().find(|(q, _)| *q == queue).unwrap().1,
                );
            }
        }
        let served_collection_queues: Vec<_> =
            served_queues.iter().filter(|queue| **queue != 9).copied().collect();
        assert_eq!(served_collection_queues, [3, 2, 1]);
        assert_eq!(
            served_queues.iter().filter(|queue| **queue == 9).count(),
            3,
            "the collection queues together are served every other time: {served_queues:?}"
        );
    }

    #[test]
    fn least_served_queue_is_served_next() {
        let mut fair_queue = FairQueue::default();
        assert!(fair_queue.would_be_served_next(1, 0), "an empty fair queue serves any queue next");
        let mut virtual_times = HashMap::from_iter([(1, fair_queue.add_queue(1, 1, 0))]);
        serve_repeatedly(&mut fair_queue, &mut virtual_times, &|_, _| EQUAL_STRIDES, 3);
        assert!(fair_queue.would_be_served_next(2, 0), "a tenant that has not been served");
        assert!(fair_queue.would_be_served_next(1, 0), "another queue of the tenant that was served");
        assert!(
            !fair_queue.would_be_served_next(1, virtual_times[&1] + 100),
            "not a queue that was served more"
        );
        virtual_times.insert(2, fair_queue.add_queue(2, 2, 0));
        assert!(!fair_queue.would_be_served_next(1, 0), "not a queue whose tenant was served more");
    }

    #[test]
    fn removed_queue_is_not_selected() {
        let mut fair_queue = FairQueue::default();
        let virtual_time = fair_queue.add_queue(1, 1, 5);
        fair_queue.remove_queue(1, 1, virtual_time);
        assert!(fair_queue.is_empty() && fair_queue.find_next_queue(|_| true).is_none());
    }
}
