//! A harness that copy_count the store at every restart.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;

use super::StoreLocation;
use crate::Harness;

/// A store begins at a place of the first kind, and goes to one of the next at every restart.
pub struct CopyingHarness<L: StoreLocation> {
    kinds: Vec<L::Kind>,
    state: Mutex<HarnessState<L>>,
}

struct HarnessState<L> {
    /// How often the store was moved.
    copy_count: usize,
    /// Where to go next, if not along the kinds.
    chosen_location: Option<L>,
    /// Where the store lies that was opened last.
    current: Option<(L, Arc<dyn Store>)>,
}

impl<L: StoreLocation> CopyingHarness<L> {
    pub fn through_kinds(kinds: &[L::Kind]) -> Self {
        Self {
            kinds: kinds.to_vec(),
            state: Mutex::new(HarnessState { copy_count: 0, chosen_location: None, current: None }),
        }
    }

    fn state(&self) -> MutexGuard<'_, HarnessState<L>> {
        self.state.lock().expect("nobody has panicked")
    }

    /// The next move goes there.
    pub fn set_next_location(&self, location: &L) {
        self.state().chosen_location.replace(location.clone());
    }

    /// Ends the store that was opened last, and answers where it lies.
    pub fn close_current(&self) -> L {
        let (location, store) = self.state().current.take().expect("one was opened");
        store.close();
        location
    }

    pub async fn open_at(&self, location: L, now: Timestamp) -> Arc<dyn Store> {
        let store = location.open(now).await;
        self.state().current.replace((location, store.clone()));
        store
    }

    /// Where the next move goes.
    async fn next_location(&self) -> L {
        let (chosen, kind) = {
            let mut state = self.state();
            state.copy_count += 1;
            (state.chosen_location.take(), self.kinds[state.copy_count % self.kinds.len()])
        };
        match chosen {
            Some(location) => location,
            None => L::create_empty(kind).await,
        }
    }
}

#[async_trait]
impl<L: StoreLocation> Harness for CopyingHarness<L> {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        self.state().copy_count = 0;
        self.open_at(L::create_empty(self.kinds[0]).await, now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let (from, to) = (self.close_current(), self.next_location().await);
        let report = from.copy_to(&to).await.unwrap_or_else(|error| panic!("{from:?} to {to:?}: {error:?}"));
        assert_eq!((report.differences(), report.left_behind()), (vec![], vec![]), "{from:?} to {to:?}");
        self.open_at(to, now).await
    }
}

/// Nobody writes any more to a place that is given back.
impl<L: StoreLocation> Drop for CopyingHarness<L> {
    fn drop(&mut self) {
        if let Some((_, store)) = self.state().current.take() {
            store.close();
        }
    }
}

impl<L: StoreLocation> std::fmt::Debug for CopyingHarness<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyingHarness").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}
