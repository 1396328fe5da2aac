//! A harness that moves the store at every restart.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;

use super::StoreLocation;
use crate::Harness;

/// A store begins at a place of the first kind, and goes to one of the next at every restart.
pub struct CopyingHarness<L: StoreLocation> {
    way: Vec<L::Kind>,
    state: Mutex<HarnessState<L>>,
}

struct HarnessState<L> {
    /// How often the store was moved.
    moves: usize,
    /// Where to go next, if not along the way.
    next: Option<L>,
    /// Where the store lies that was opened last.
    now: Option<(L, Arc<dyn Store>)>,
}

impl<L: StoreLocation> CopyingHarness<L> {
    pub fn along(way: &[L::Kind]) -> Self {
        Self { way: way.to_vec(), state: Mutex::new(HarnessState { moves: 0, next: None, now: None }) }
    }

    fn state(&self) -> MutexGuard<'_, HarnessState<L>> {
        self.state.lock().expect("nobody has panicked")
    }

    /// The next move goes there.
    pub fn go_next_to(&self, lair: &L) {
        self.state().next.replace(lair.clone());
    }

    /// Ends the store that was opened last, and answers where it lies.
    pub fn leave(&self) -> L {
        let (lair, store) = self.state().now.take().expect("one was opened");
        store.close();
        lair
    }

    pub async fn settle(&self, lair: L, now: Timestamp) -> Arc<dyn Store> {
        let store = lair.open(now).await;
        self.state().now.replace((lair, store.clone()));
        store
    }

    /// Where the next move goes.
    async fn next(&self) -> L {
        let (chosen, kind) = {
            let mut state = self.state();
            state.moves += 1;
            (state.next.take(), self.way[state.moves % self.way.len()])
        };
        match chosen {
            Some(lair) => lair,
            None => L::empty(kind).await,
        }
    }
}

#[async_trait]
impl<L: StoreLocation> Harness for CopyingHarness<L> {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        self.state().moves = 0;
        self.settle(L::empty(self.way[0]).await, now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let (from, to) = (self.leave(), self.next().await);
        let report = from.move_to(&to).await.unwrap_or_else(|error| panic!("{from:?} to {to:?}: {error:?}"));
        assert_eq!((report.differences(), report.left_behind()), (vec![], vec![]), "{from:?} to {to:?}");
        self.settle(to, now).await
    }
}

/// Nobody writes any more to a place that is given back.
impl<L: StoreLocation> Drop for CopyingHarness<L> {
    fn drop(&mut self) {
        if let Some((_, store)) = self.state().now.take() {
            store.close();
        }
    }
}

impl<L: StoreLocation> std::fmt::Debug for CopyingHarness<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyingHarness").field("way", &self.way).finish_non_exhaustive()
    }
}
