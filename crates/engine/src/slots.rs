//! The slots of a node: how many attempts may run at a time.
//!
//! Whoever asks the store for work first reserves the slots for it, so that a claim never brings more than the
//! node can run. The sequencer and the worker reserve from the same lot; what a claim did not fill goes back.
//!
//! While a backlog takes every slot, what is emitted meanwhile by others would wait for one to become free and for the
//! commit that fills it. So when the sequencer finds no slot for tasks whose turn it is, the worker leaves a few free
//! for a while.
//!
//! A bounded run also has a budget: how many attempts it begins altogether. It is reserved along with the slots,
//! and what an attempt has taken of it never comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

/// One slot, held by a running attempt. Dropping it frees it.
pub(crate) type Slot = OwnedSemaphorePermit;

#[derive(Debug)]
pub(crate) struct Slots {
    total: usize,
    free: Arc<Semaphore>,
    is_closed: AtomicBool,
    is_store_failing: AtomicBool,
    returned: Notify,
    budget: Option<AttemptBudget>,
    fresh_reserve: Mutex<FreshReserve>,
}

/// How many slots the worker leaves free: as many more as were missed, at first a quarter of all and never more than
/// half, and an eighth fewer whenever none was missed for a while.
#[derive(Debug)]
struct FreshReserve {
    slots: usize,
    since: Instant,
}

/// Beside a flood, 10 % of a thousand tasks a second found no slot where one in eight was left free, 2 % with one in
/// four; after a slow commit more come at once than that.
const FIRST_RESERVE_DIVISOR: usize = 4;
const MAX_RESERVE_DIVISOR: usize = 2;
const RESERVE_STEP_INTERVAL: Duration = Duration::from_secs(2);
/// After so many times that none is kept any more, however many there were.
const RESERVE_STEPS: usize = 8;

impl FreshReserve {
    fn add_missed(&mut self, count: usize, all: usize) {
        let slots =
            (self.current().0 + count).max(all / FIRST_RESERVE_DIVISOR).min(all / MAX_RESERVE_DIVISOR);
        *self = Self { slots, since: Instant::now() };
    }

    /// How many are kept now, and for how long it will be so many.
    fn current(&self) -> (usize, Duration) {
        let passed = self.since.elapsed();
        let steps = (passed.as_millis() / RESERVE_STEP_INTERVAL.as_millis()) as usize;
        let left = RESERVE_STEP_INTERVAL.saturating_mul(steps as u32 + 1).saturating_sub(passed);
        let step = self.slots.div_ceil(RESERVE_STEPS);
        (self.slots.saturating_sub(steps.saturating_mul(step)), left)
    }
}

#[derive(Debug)]
struct AttemptBudget {
    permits: Arc<Semaphore>,
    /// How many attempts have yet to begin.
    unstarted: watch::Sender<usize>,
}

impl AttemptBudget {
    fn new(attempts: u64) -> Self {
        let attempts = usize::try_from(attempts).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(attempts)), unstarted: watch::Sender::new(attempts) }
    }
}

impl Slots {
    /// So many slots, for so many attempts altogether, if that is bounded.
    pub(crate) fn new(all: usize, attempts: Option<u64>) -> Self {
        Self {
            budget: attempts.map(AttemptBudget::new),
            total: all,
            free: Arc::new(Semaphore::new(all)),
            is_closed: AtomicBool::new(false),
            is_store_failing: AtomicBool::new(false),
            returned: Notify::new(),
            fresh_reserve: Mutex::new(FreshReserve { slots: 0, since: Instant::now() }),
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn busy_count(&self) -> usize {
        self.total.saturating_sub(self.free.available_permits())
    }

    /// How many could be reserved now.
    pub(crate) fn available_count(&self) -> usize {
        let affordable = self.budget.as_ref().map_or(usize::MAX, |budget| budget.permits.available_permits());
        if self.is_closed.load(Ordering::Acquire) { 0 } else { self.free.available_permits().min(affordable) }
    }

    /// So many tasks whose turn it was found no slot. A node with few slots keeps none back all the same.
    pub(crate) fn record_missed(&self, count: usize) {
        if self.total >= FIRST_RESERVE_DIVISOR {
            self.lock_fresh_reserve().add_missed(count, self.total);
        }
    }

    /// For how long as many slots as now are left free for what comes fresh; `None` if none are.
    pub(crate) fn fresh_reserve_duration(&self) -> Option<Duration> {
        let (slots, left) = self.lock_fresh_reserve().current();
        (slots > 0).then_some(left)
    }

    /// How many of the free ones the worker may take for what has waited.
    pub(crate) fn available_for_backlog(&self) -> usize {
        self.available_count().saturating_sub(self.lock_fresh_reserve().current().0)
    }

    fn lock_fresh_reserve(&self) -> MutexGuard<'_, FreshReserve> {
        self.fresh_reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `most` free slots, without waiting for more.
    pub(crate) fn reserve(&self, most: usize) -> ReservedSlots {
        loop {
            let wanted = self.available_count().min(most).min(u32::MAX as usize) as u32;
            if wanted == 0 {
                return ReservedSlots::empty();
            }
            let take = |from: &Arc<Semaphore>| from.clone().try_acquire_many_owned(wanted);
            let budget = self.budget.as_ref().map(|budget| take(&budget.permits)).transpose();
            // Somebody else may have been quicker; then there are fewer to ask for.
            if let (Ok(slots), Ok(budget)) = (take(&self.free), budget) {
                return ReservedSlots { slots: Some(slots), budget };
            }
        }
    }

    /// Gives back what a claim of the sequencer did not fill, and tells the worker, who may have found none
    /// free in the meantime.
    pub(crate) fn return_unused(&self, reserved: ReservedSlots) {
        if reserved.count() > 0 {
            drop(reserved);
            self.returned.notify_one();
        }
    }

    /// Waits until the sequencer gives slots back.
    pub(crate) async fn wait_for_returned(&self) {
        self.returned.notified().await;
    }

    /// An attempt has begun, and is among those that run.
    pub(crate) fn record_started(&self) {
        if let Some(budget) = &self.budget {
            budget.unstarted.send_modify(|left| *left = left.saturating_sub(1));
        }
    }

    /// Whether the budget is used up.
    pub(crate) fn is_budget_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| *budget.unstarted.borrow() == 0)
    }

    /// Waits until the budget is used up; for ever if there is none.
    pub(crate) async fn wait_until_budget_spent(&self) {
        match &self.budget {
            // The sender is our own, and lives as long as we do.
            Some(budget) => drop(budget.unstarted.subscribe().wait_for(|left| *left == 0).await),
            None => std::future::pending().await,
        }
    }

    /// From now on nothing is reserved.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Waits until every slot is free and keeps them all. Call after [`Slots::close`].
    pub(crate) async fn wait_until_all_free(&self) {
        let all = u32::try_from(self.total).unwrap_or(u32::MAX);
        if let Ok(permits) = self.free.acquire_many(all).await {
            permits.forget();
        }
    }

    /// Whether the worker cannot get its ends into the store. No new work is taken on beside it then, or ends
    /// that wait in memory would have no bound.
    pub(crate) fn is_store_failing(&self) -> bool {
        self.is_store_failing.load(Ordering::Acquire)
    }

    pub(crate) fn set_store_failing(&self, troubled: bool) {
        self.is_store_failing.store(troubled, Ordering::Release);
    }
}

/// Slots set aside for a claim. What is not taken is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ReservedSlots {
    slots: Option<OwnedSemaphorePermit>,
    budget: Option<OwnedSemaphorePermit>,
}

impl ReservedSlots {
    pub(crate) fn empty() -> Self {
        Self { slots: None, budget: None }
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// One of them, for an attempt.
    pub(crate) fn take_slot(&mut self) -> Option<Slot> {
        let slot = self.slots.as_mut().and_then(|permits| permits.split(1))?;
        if let Some(paid) = self.budget.as_mut().and_then(|permits| permits.split(1)) {
            paid.forget();
        }
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slot_is_given_twice_and_none_is_lost() {
        let slots = Slots::new(3, None);
        let mut first = slots.reserve(2);
        let second = slots.reserve(5);
        assert_eq!((first.count(), second.count(), slots.available_count()), (2, 1, 0));
        let one = first.take_slot();
        drop((first, second));
        assert_eq!((slots.available_count(), slots.busy_count()), (2, 1));
        drop(one);
        assert_eq!(slots.available_count(), 3);
    }

    #[test]
    fn some_slots_stay_reserved_after_a_fresh_task_found_none() {
        let slots = Slots::new(16, None);
        assert_eq!(slots.available_for_backlog(), 16);
        slots.record_missed(1);
        assert_eq!((slots.available_for_backlog(), slots.available_count()), (12, 16));
        let backlog = slots.reserve(slots.available_for_backlog());
        assert_eq!((backlog.count(), slots.available_for_backlog(), slots.reserve(9).count()), (12, 0, 4));
        drop(backlog);
        slots.record_missed(2);
        assert_eq!(slots.available_for_backlog(), 10, "as many more as were missed");
        slots.record_missed(100);
        assert_eq!(slots.available_for_backlog(), 8, "never more than half");
        let few = Slots::new(3, None);
        few.record_missed(1);
        assert_eq!(few.available_for_backlog(), 3);
    }

    #[test]
    fn the_fresh_reserve_shrinks_over_time() {
        let kept = |halves: u32| {
            let since = Instant::now().checked_sub(RESERVE_STEP_INTERVAL / 2 * halves).unwrap();
            FreshReserve { slots: 3, since }.current()
        };
        assert_eq!([0, 3, 5, 7, 1_001].map(|halves| kept(halves).0), [3, 2, 1, 0, 0]);
        assert!(kept(3).1 <= RESERVE_STEP_INTERVAL / 2 && kept(3).1 > Duration::ZERO);
        let since = Instant::now().checked_sub(RESERVE_STEP_INTERVAL * 4).unwrap();
        assert_eq!(FreshReserve { slots: 1_024, since }.current().0, 512, "many fade as fast as few");
    }

    #[test]
    fn closed_slots_cannot_be_reserved() {
        let slots = Slots::new(3, None);
        slots.close();
        assert_eq!(slots.reserve(1).count(), 0);
    }

    #[tokio::test]
    async fn a_budget_is_reserved_with_the_slots_and_spent_by_attempts_alone() {
        let slots = Slots::new(3, Some(4));
        let mut first = slots.reserve(9);
        assert_eq!((first.count(), slots.available_count()), (3, 0));
        drop((first.take_slot(), first.take_slot()));
        drop(first);
        assert_eq!(slots.available_count(), 2, "what was not taken came back, slots and budget");
        let mut second = slots.reserve(9);
        drop((second.take_slot(), second.take_slot(), second.take_slot()));
        assert_eq!((slots.available_count(), slots.is_budget_spent()), (0, false));
        (0..4).for_each(|_| slots.record_started());
        slots.wait_until_budget_spent().await;
        assert!(slots.is_budget_spent());
    }
}
