//! Counting orders once for all who want to know.
//!
//! Counting goes through every order of a path, and whatever happens wakes everybody who waits for the numbers of that
//! path to change. So there is one count at a time for a path, and who comes meanwhile or shortly after shares it, as
//! long as it is true at an id that is new enough for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::journal::PathFilter;
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::StoreError;
use pointsman_core::{EventId, Tenant};
use tokio::time::Instant;

use crate::app::App;

/// For how long a count is shared with those who ask later: as time goes by, it changes by itself.
const SHARED: Duration = Duration::from_millis(900);
/// So many paths that nobody waits for are remembered at most.
const MOST_PATHS: usize = 256;

/// Which orders are counted: those of a path, and of one tenant if not of all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Which {
    pub(super) path: PathFilter,
    pub(super) tenant: Option<Tenant>,
}

/// The numbers and the id at which they are true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) numbers: OrderStatistics,
    pub(super) head: EventId,
    began: Instant,
    /// How long it took to count.
    pub(super) took: Duration,
}

/// The last counts, by what was counted.
#[derive(Default)]
pub(crate) struct Tallies(Mutex<HashMap<Which, Arc<Last>>>);

/// The last count. Locked while the next is made.
type Last = tokio::sync::Mutex<Option<Count>>;

impl Tallies {
    /// What all who count the same share.
    fn last(&self, which: &Which) -> Arc<Last> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_PATHS && !all.contains_key(which) {
            all.retain(|_, last| Arc::strong_count(last) > 1);
        }
        all.entry(which.clone()).or_default().clone()
    }
}

/// One who wants to know. While it is there, so is what it shares with others.
pub(super) struct Tally {
    app: App,
    which: Which,
    last: Arc<Last>,
}

impl Tally {
    pub(super) fn new(app: App, which: Which) -> Self {
        let last = app.tallies.last(&which);
        Self { app, which, last }
    }

    /// How many there are now.
    pub(super) async fn now(&self) -> Result<Count, StoreError> {
        self.count(None).await
    }

    /// How many there are at this id or a later one, and not long ago.
    pub(super) async fn at(&self, least: EventId) -> Result<Count, StoreError> {
        self.count(Some(least)).await
    }

    /// A count goes on although who asked for it no longer waits: the next one has it.
    async fn count(&self, least: Option<EventId>) -> Result<Count, StoreError> {
        let asked = Instant::now();
        let (app, which, last) = (self.app.clone(), self.which.clone(), self.last.clone());
        let counting = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some(count) = last.filter(|count| count.serves(least, asked)) {
                return Ok(count);
            }
            let began = Instant::now();
            let Which { path, tenant } = which;
            let (numbers, extent) = app.store().order_statistics(&path, tenant.as_ref(), app.now()).await?;
            let count = Count { numbers, head: extent.head, began, took: began.elapsed() };
            Ok(*last.insert(count))
        });
        counting.await.unwrap_or_else(|error| Err(StoreError::Damaged(error.to_string())))
    }
}

impl Count {
    /// Whether it does for one who asked then, and what is at least to be in it.
    fn serves(&self, least: Option<EventId>, asked: Instant) -> bool {
        self.began >= asked || least.is_some_and(|least| self.head >= least && asked < self.began + SHARED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_shared_by_those_for_whom_it_is_new_enough() {
        let id = |number| EventId::new(number).unwrap();
        let began = Instant::now();
        let count = Count { numbers: OrderStatistics::default(), head: id(10), began, took: Duration::ZERO };
        let later = began + SHARED / 2;
        // Who asked before it began was waiting for it, whatever it wants to see.
        assert!(count.serves(None, began) && count.serves(Some(id(11)), began));
        assert!(count.serves(Some(id(10)), later) && !count.serves(Some(id(11)), later));
        assert!(!count.serves(None, later), "who asks how many there are now");
        assert!(!count.serves(Some(id(10)), began + SHARED), "time has passed");
    }
}
