//! A harness that copies the store to a new location at every restart.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;

use super::StoreLocation;
use crate::Harness;

/// Opens a store of the first kind, and copies it at every restart to a new store of the next kind.
pub struct CopyOnReopenHarness<L: StoreLocation> {
    location_kinds: Vec<L::Kind>,
    state: Mutex<CopyOnReopenState<L>>,
}

struct CopyOnReopenState<L> {
    /// Number of copies so far.
    copy_count: usize,
    /// Target of the next copy, if it was set explicitly.
    next_location_override: Option<L>,
    /// Location and store that were opened last.
    current_store: Option<(L, Arc<dyn Store>)>,
}

impl<L: StoreLocation> CopyOnReopenHarness<L> {
    pub fn with_location_kinds(kinds: &[L::Kind]) -> Self {
        Self {
            location_kinds: kinds.to_vec(),
            state: Mutex::new(CopyOnReopenState {
                copy_count: 0,
                next_location_override: None,
                current_store: None,
            }),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, CopyOnReopenState<L>> {
        self.state.lock().expect("no lock holder has panicked")
    }

    /// Sets the target of the next copy.
    pub fn override_next_location(&self, location: &L) {
        self.lock_state().next_location_override.replace(location.clone());
    }

    /// Closes the store that was opened last and returns its location.
    pub fn close_current_store(&self) -> L {
        let (location, store) = self.lock_state().current_store.take().expect("one was opened");
        store.close();
        location
    }

    pub async fn open_store_at(&self, location: L, now: Timestamp) -> Arc<dyn Store> {
        let store = location.open(now).await;
        self.lock_state().current_store.replace((location, store.clone()));
        store
    }

    /// Returns the target of the next copy.
    async fn take_next_location(&self) -> L {
        let (chosen, kind) = {
            let mut state = self.lock_state();
            state.copy_count += 1;
            (
                state.next_location_override.take(),
                self.location_kinds[state.copy_count % self.location_kinds.len()],
            )
        };
        match chosen {
            Some(location) => location,
            None => L::create_empty(kind).await,
        }
    }
}

#[async_trait]
impl<L: StoreLocation> Harness for CopyOnReopenHarness<L> {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        self.lock_state().copy_count = 0;
        self.open_store_at(L::create_empty(self.location_kinds[0]).await, now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let (from, to) = (self.close_current_store(), self.take_next_location().await);
        let report = from.copy_to(&to).await.unwrap_or_else(|error| panic!("{from:?} to {to:?}: {error:?}"));
        assert_eq!(
            (report.differing_tables(), report.uncopied_tables()),
            (vec![], vec![]),
            "{from:?} to {to:?}"
        );
        self.open_store_at(to, now).await
    }
}

/// Closes the store, so that nothing writes to a location that is released.
impl<L: StoreLocation> Drop for CopyOnReopenHarness<L> {
    fn drop(&mut self) {
        if let Some((_, store)) = self.lock_state().current_store.take() {
            store.close();
        }
    }
}

impl<L: StoreLocation> std::fmt::Debug for CopyOnReopenHarness<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyOnReopenHarness").field("kinds", &self.location_kinds).finish_non_exhaustive()
    }
}
