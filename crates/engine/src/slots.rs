//! The slots of a node: how many attempts may run at a time.
//!
//! Slots are reserved before the store is asked for tasks, so that a claim never returns more than the node can run.
//! The sequencer and the worker share the slots; those that a claim did not fill are returned.
//!
//! While a backlog occupies every slot, tasks of newly emitted events would wait for a free slot and for the commit
//! that fills it. So when the sequencer finds no slot for tasks that are ready, the worker leaves a few slots free for
//! a while: the reserve for new tasks.
//!
//! A bounded run also has a budget: the total number of attempts that it starts. It is reserved along with the slots,
//! and the part that an attempt has used is never returned.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

/// One slot that a running attempt occupies. Dropping this frees the slot.
pub(crate) type Slot = OwnedSemaphorePermit;

#[derive(Debug)]
pub(crate) struct Slots {
    total: usize,
    free_slots: Arc<Semaphore>,
    is_closed: AtomicBool,
    is_store_failing: AtomicBool,
    slots_returned: Notify,
    attempt_budget: Option<AttemptBudget>,
    new_task_reserve: Mutex<NewTaskReserve>,
}

/// The number of slots that the worker leaves free for new tasks. It grows by the number of new tasks that found no
/// slot: to at least a quarter of all slots and at most half of them. While no task misses a slot, it shrinks by an
/// eighth in every [`NEW_TASK_RESERVE_SHRINK_INTERVAL`].
#[derive(Debug)]
struct NewTaskReserve {
    /// The number of slots when the reserve last grew.
    slots_when_last_grown: usize,
    /// When the reserve last grew.
    grown_at: Instant,
}

/// The reserve is at least this fraction of all slots when it grows. Measured under a flood of tasks: with one in eight
/// slots free, 10 % of a thousand new tasks per second found none; with one in four, 2 %. After a slow commit more
/// tasks arrive at once.
const INITIAL_NEW_TASK_RESERVE_DIVISOR: usize = 4;
/// The reserve is at most this fraction of all slots.
const MAX_NEW_TASK_RESERVE_DIVISOR: usize = 2;
/// How often the reserve shrinks while no new task misses a slot.
const NEW_TASK_RESERVE_SHRINK_INTERVAL: Duration = Duration::from_secs(2);
/// The number of shrink intervals after which the reserve is empty, however large it was.
const NEW_TASK_RESERVE_SHRINK_STEPS: usize = 8;

impl NewTaskReserve {
    fn grow_for_tasks_without_slot(&mut self, tasks: usize, total_slots: usize) {
        let slots = (self.current_slots_and_duration().0 + tasks)
            .max(total_slots / INITIAL_NEW_TASK_RESERVE_DIVISOR)
            .min(total_slots / MAX_NEW_TASK_RESERVE_DIVISOR);
        *self = Self { slots_when_last_grown: slots, grown_at: Instant::now() };
    }

    /// The number of slots that the reserve has now, and how long the reserve stays at that size.
    fn current_slots_and_duration(&self) -> (usize, Duration) {
        let passed = self.grown_at.elapsed();
        let steps = (passed.as_millis() / NEW_TASK_RESERVE_SHRINK_INTERVAL.as_millis()) as usize;
        let left = NEW_TASK_RESERVE_SHRINK_INTERVAL.saturating_mul(steps as u32 + 1).saturating_sub(passed);
        let step = self.slots_when_last_grown.div_ceil(NEW_TASK_RESERVE_SHRINK_STEPS);
        (self.slots_when_last_grown.saturating_sub(steps.saturating_mul(step)), left)
    }
}

/// The attempts that a bounded run may still start.
#[derive(Debug)]
struct AttemptBudget {
    /// Has a permit for each attempt that no slot is reserved for yet.
    permits: Arc<Semaphore>,
    /// The number of attempts that may still start.
    remaining_attempts: watch::Sender<usize>,
}

impl AttemptBudget {
    fn new(attempts: u64) -> Self {
        let attempts = usize::try_from(attempts).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(attempts)), remaining_attempts: watch::Sender::new(attempts) }
    }
}

impl Slots {
    /// Creates `total` slots; `max_attempts` is the budget of a bounded run.
    pub(crate) fn new(total: usize, max_attempts: Option<u64>) -> Self {
        Self {
            attempt_budget: max_attempts.map(AttemptBudget::new),
            total,
            free_slots: Arc::new(Semaphore::new(total)),
            is_closed: AtomicBool::new(false),
            is_store_failing: AtomicBool::new(false),
            slots_returned: Notify::new(),
            new_task_reserve: Mutex::new(NewTaskReserve {
                slots_when_last_grown: 0,
                grown_at: Instant::now(),
            }),
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn busy_count(&self) -> usize {
        self.total.saturating_sub(self.free_slots.available_permits())
    }

    /// The number of slots that could be reserved now.
    pub(crate) fn available_count(&self) -> usize {
        let budget_left =
            self.attempt_budget.as_ref().map_or(usize::MAX, |budget| budget.permits.available_permits());
        if self.is_closed.load(Ordering::Acquire) {
            0
        } else {
            self.free_slots.available_permits().min(budget_left)
        }
    }

    /// Records that `count` new tasks found no slot. A node with few slots never has a reserve.
    pub(crate) fn record_tasks_without_slot(&self, count: usize) {
        if self.total >= INITIAL_NEW_TASK_RESERVE_DIVISOR {
            self.lock_new_task_reserve().grow_for_tasks_without_slot(count, self.total);
        }
    }

    /// How long the reserve for new tasks stays at its current size; `None` if it is empty.
    pub(crate) fn time_until_new_task_reserve_shrinks(&self) -> Option<Duration> {
        let (slots, left) = self.lock_new_task_reserve().current_slots_and_duration();
        (slots > 0).then_some(left)
    }

    /// The number of free slots that the worker may use for the backlog.
    pub(crate) fn available_count_for_backlog(&self) -> usize {
        self.available_count().saturating_sub(self.lock_new_task_reserve().current_slots_and_duration().0)
    }

    fn lock_new_task_reserve(&self) -> MutexGuard<'_, NewTaskReserve> {
        self.new_task_reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves up to `max` free slots, without waiting for more.
    pub(crate) fn reserve_up_to(&self, max: usize) -> ReservedSlots {
        loop {
            let count = self.available_count().min(max).min(u32::MAX as usize) as u32;
            if count == 0 {
                return ReservedSlots::empty();
            }
            let take = |from: &Arc<Semaphore>| from.clone().try_acquire_many_owned(count);
            let budget = self.attempt_budget.as_ref().map(|budget| take(&budget.permits)).transpose();
            // Another service may have reserved some of the free slots meanwhile; then try again with fewer.
            if let (Ok(slots), Ok(budget)) = (take(&self.free_slots), budget) {
                return ReservedSlots { slot_permits: Some(slots), budget_permits: budget };
            }
        }
    }

    /// Returns the slots that a claim of the sequencer did not fill, and wakes the worker, which may have found none
    /// free meanwhile.
    pub(crate) fn return_unused(&self, reserved: ReservedSlots) {
        if reserved.count() > 0 {
            drop(reserved);
            self.slots_returned.notify_one();
        }
    }

    /// Waits until the sequencer returns slots.
    pub(crate) async fn wait_for_returned_slots(&self) {
        self.slots_returned.notified().await;
    }

    /// Counts an attempt that has started against the budget.
    pub(crate) fn record_attempt_started(&self) {
        if let Some(budget) = &self.attempt_budget {
            budget.remaining_attempts.send_modify(|left| *left = left.saturating_sub(1));
        }
    }

    /// Whether the budget is used up.
    pub(crate) fn is_budget_spent(&self) -> bool {
        self.attempt_budget.as_ref().is_some_and(|budget| *budget.remaining_attempts.borrow() == 0)
    }

    /// Waits until the budget is used up; for ever if there is none.
    pub(crate) async fn wait_until_budget_spent(&self) {
        match &self.attempt_budget {
            // The budget owns the sender, so it is not dropped while this waits.
            Some(budget) => drop(budget.remaining_attempts.subscribe().wait_for(|left| *left == 0).await),
            None => std::future::pending().await,
        }
    }

    /// Refuses all further reservations.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Waits until every slot is free and keeps them all. Call after [`Slots::close`].
    pub(crate) async fn wait_until_all_free(&self) {
        let all = u32::try_from(self.total).unwrap_or(u32::MAX);
        if let Ok(permits) = self.free_slots.acquire_many(all).await {
            permits.forget();
        }
    }

    /// Whether the worker cannot store attempt ends. Then the sequencer claims no tasks, or the number of ends that
    /// wait in memory would be unbounded.
    pub(crate) fn is_store_failing(&self) -> bool {
        self.is_store_failing.load(Ordering::Acquire)
    }

    pub(crate) fn set_store_failing(&self, is_failing: bool) {
        self.is_store_failing.store(is_failing, Ordering::Release);
    }
}

/// Slots reserved for a claim. Those that are not taken are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ReservedSlots {
    slot_permits: Option<OwnedSemaphorePermit>,
    budget_permits: Option<OwnedSemaphorePermit>,
}

impl ReservedSlots {
    pub(crate) fn empty() -> Self {
        Self { slot_permits: None, budget_permits: None }
    }

    pub(crate) fn count(&self) -> usize {
        self.slot_permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Takes one slot for an attempt.
    pub(crate) fn take_slot(&mut self) -> Option<Slot> {
        let slot = self.slot_permits.as_mut().and_then(|permits| permits.split(1))?;
        if let Some(permit) = self.budget_permits.as_mut().and_then(|permits| permits.split(1)) {
            permit.forget();
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
        let mut first = slots.reserve_up_to(2);
        let second = slots.reserve_up_to(5);
        assert_eq!((first.count(), second.count(), slots.available_count()), (2, 1, 0));
        let one = first.take_slot();
        drop((first, second));
        assert_eq!((slots.available_count(), slots.busy_count()), (2, 1));
        drop(one);
        assert_eq!(slots.available_count(), 3);
    }

    #[test]
    fn some_slots_stay_reserved_after_a_new_task_found_none() {
        let slots = Slots::new(16, None);
        assert_eq!(slots.available_count_for_backlog(), 16);
        slots.record_tasks_without_slot(1);
        assert_eq!((slots.available_count_for_backlog(), slots.available_count()), (12, 16));
        let backlog = slots.reserve_up_to(slots.available_count_for_backlog());
        assert_eq!(
            (backlog.count(), slots.available_count_for_backlog(), slots.reserve_up_to(9).count()),
            (12, 0, 4)
        );
        drop(backlog);
        slots.record_tasks_without_slot(2);
        assert_eq!(
            slots.available_count_for_backlog(),
            10,
            "the reserve grows by the number of missed tasks"
        );
        slots.record_tasks_without_slot(100);
        assert_eq!(slots.available_count_for_backlog(), 8, "the reserve is at most half of the slots");
        let few = Slots::new(3, None);
        few.record_tasks_without_slot(1);
        assert_eq!(few.available_count_for_backlog(), 3);
    }

    #[test]
    fn the_new_task_reserve_shrinks_over_time() {
        let reserve = |half_intervals: u32| {
            let grown_at =
                Instant::now().checked_sub(NEW_TASK_RESERVE_SHRINK_INTERVAL / 2 * half_intervals).unwrap();
            NewTaskReserve { slots_when_last_grown: 3, grown_at }.current_slots_and_duration()
        };
        assert_eq!([0, 3, 5, 7, 1_001].map(|half_intervals| reserve(half_intervals).0), [3, 2, 1, 0, 0]);
        assert!(reserve(3).1 <= NEW_TASK_RESERVE_SHRINK_INTERVAL / 2 && reserve(3).1 > Duration::ZERO);
        let grown_at = Instant::now().checked_sub(NEW_TASK_RESERVE_SHRINK_INTERVAL * 4).unwrap();
        assert_eq!(
            NewTaskReserve { slots_when_last_grown: 1_024, grown_at }.current_slots_and_duration().0,
            512,
            "a large reserve shrinks as fast as a small one"
        );
    }

    #[test]
    fn closed_slots_cannot_be_reserved() {
        let slots = Slots::new(3, None);
        slots.close();
        assert_eq!(slots.reserve_up_to(1).count(), 0);
    }

    #[tokio::test]
    async fn an_attempt_budget_is_reserved_with_the_slots_and_spent_only_by_started_attempts() {
        let slots = Slots::new(3, Some(4));
        let mut first = slots.reserve_up_to(9);
        assert_eq!((first.count(), slots.available_count()), (3, 0));
        drop((first.take_slot(), first.take_slot()));
        drop(first);
        assert_eq!(slots.available_count(), 2, "unused slots and budget were returned");
        let mut second = slots.reserve_up_to(9);
        drop((second.take_slot(), second.take_slot(), second.take_slot()));
        assert_eq!((slots.available_count(), slots.is_budget_spent()), (0, false));
        (0..4).for_each(|_| slots.record_attempt_started());
        slots.wait_until_budget_spent().await;
        assert!(slots.is_budget_spent());
    }
}
