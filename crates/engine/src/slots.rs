//! The slots of a node: how many attempts may run at a time.
//!
//! Whoever asks the store for work first reserves the slots for it, so that a claim never brings more than the
//! node can run. The sequencer and the worker reserve from the same lot; what a claim did not fill goes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// One slot, held by a running attempt. Dropping it frees it.
pub(crate) type Slot = OwnedSemaphorePermit;

#[derive(Debug)]
pub(crate) struct Slots {
    all: usize,
    free: Arc<Semaphore>,
    closed: AtomicBool,
    troubled: AtomicBool,
    returned: Notify,
}

impl Slots {
    pub(crate) fn new(all: usize) -> Self {
        Self {
            all,
            free: Arc::new(Semaphore::new(all)),
            closed: AtomicBool::new(false),
            troubled: AtomicBool::new(false),
            returned: Notify::new(),
        }
    }

    pub(crate) fn all(&self) -> usize {
        self.all
    }

    pub(crate) fn busy(&self) -> usize {
        self.all.saturating_sub(self.free.available_permits())
    }

    /// How many could be reserved now.
    pub(crate) fn available(&self) -> usize {
        if self.closed.load(Ordering::Acquire) { 0 } else { self.free.available_permits() }
    }

    /// Takes up to `most` free slots, without waiting for more.
    pub(crate) fn reserve(&self, most: usize) -> Reserved {
        loop {
            let wanted = self.available().min(most).min(u32::MAX as usize) as u32;
            if wanted == 0 {
                return Reserved(None);
            }
            // Somebody else may have been quicker; then there are fewer to ask for.
            if let Ok(permits) = self.free.clone().try_acquire_many_owned(wanted) {
                return Reserved(Some(permits));
            }
        }
    }

    /// Gives back what a claim of the sequencer did not fill, and tells the worker, who may have found none
    /// free in the meantime.
    pub(crate) fn give_back(&self, reserved: Reserved) {
        if reserved.count() > 0 {
            drop(reserved);
            self.returned.notify_one();
        }
    }

    /// Waits until the sequencer gives slots back.
    pub(crate) async fn returned(&self) {
        self.returned.notified().await;
    }

    /// From now on nothing is reserved.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Waits until every slot is free and keeps them all. Call after [`Slots::close`].
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.all).unwrap_or(u32::MAX);
        if let Ok(permits) = self.free.acquire_many(all).await {
            permits.forget();
        }
    }

    /// Whether the worker cannot get its ends into the store. No new work is taken on beside it then, or ends
    /// that wait in memory would have no bound.
    pub(crate) fn troubled(&self) -> bool {
        self.troubled.load(Ordering::Acquire)
    }

    pub(crate) fn set_troubled(&self, troubled: bool) {
        self.troubled.store(troubled, Ordering::Release);
    }
}

/// Slots set aside for a claim. What is not taken is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved(Option<OwnedSemaphorePermit>);

impl Reserved {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// One of them, for an attempt.
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.0.as_mut().and_then(|permits| permits.split(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slot_is_given_twice_and_none_is_lost() {
        let slots = Slots::new(3);
        let mut first = slots.reserve(2);
        let second = slots.reserve(5);
        assert_eq!((first.count(), second.count(), slots.available()), (2, 1, 0));
        let one = first.take();
        drop((first, second));
        assert_eq!((slots.available(), slots.busy()), (2, 1));
        drop(one);
        assert_eq!(slots.available(), 3);
    }

    #[test]
    fn closed_slots_are_not_reserved() {
        let slots = Slots::new(3);
        slots.close();
        assert_eq!(slots.reserve(1).count(), 0);
    }
}
