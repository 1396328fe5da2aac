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
const MAX_SHARED_AGE: Duration = Duration::from_millis(900);
/// So many paths that nobody waits for are remembered at most.
const MAX_CACHED_SCOPES: usize = 256;

/// OrderScope orders are counted: those of a path, and of one tenant if not of all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OrderScope {
    pub(super) path: PathFilter,
    pub(super) tenant: Option<Tenant>,
}

/// The numbers and the id at which they are true.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedStatistics {
    pub(super) statistics: OrderStatistics,
    pub(super) head: EventId,
    started_at: Instant,
    /// How long it took to count.
    pub(super) duration: Duration,
}

/// The last counts, by what was counted.
#[derive(Default)]
pub(crate) struct StatisticsCache(Mutex<HashMap<OrderScope, Arc<CacheSlot>>>);

/// The last count. Locked while the next is made.
type CacheSlot = tokio::sync::Mutex<Option<CountedStatistics>>;

impl StatisticsCache {
    /// What all who count the same share.
    fn slot(&self, scope: &OrderScope) -> Arc<CacheSlot> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_CACHED_SCOPES && !all.contains_key(scope) {
            all.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        all.entry(scope.clone()).or_default().clone()
    }
}

/// One who wants to know. While it is there, so is what it shares with others.
pub(super) struct StatisticsReader {
    app: App,
    scope: OrderScope,
    slot: Arc<CacheSlot>,
}

impl StatisticsReader {
    pub(super) fn new(app: App, scope: OrderScope) -> Self {
        let slot = app.statistics_cache.slot(&scope);
        Self { app, scope, slot }
    }

    /// How many there are now.
    pub(super) async fn count_now(&self) -> Result<CountedStatistics, StoreError> {
        self.count(None).await
    }

    /// How many there are at this id or a later one, and not long ago.
    pub(super) async fn count_at_least(
        &self,
        min_event_id: EventId,
    ) -> Result<CountedStatistics, StoreError> {
        self.count(Some(min_event_id)).await
    }

    /// A count goes on although who asked for it no longer waits: the next one has it.
    async fn count(&self, min_event_id: Option<EventId>) -> Result<CountedStatistics, StoreError> {
        let requested_at = Instant::now();
        let (app, scope, slot) = (self.app.clone(), self.scope.clone(), self.slot.clone());
        let counting = tokio::spawn(async move {
            let mut slot = slot.lock().await;
            if let Some(count) = slot.filter(|count| count.is_fresh_for(min_event_id, requested_at)) {
                return Ok(count);
            }
            let started_at = Instant::now();
            let OrderScope { path, tenant } = scope;
            let (statistics, extent) =
                app.store().order_statistics(&path, tenant.as_ref(), app.now()).await?;
            let count = CountedStatistics {
                statistics,
                head: extent.head,
                started_at,
                duration: started_at.elapsed(),
            };
            Ok(*slot.insert(count))
        });
        counting.await.unwrap_or_else(|error| Err(StoreError::Damaged(error.to_string())))
    }
}

impl CountedStatistics {
    /// Whether it does for one who asked then, and what is at least to be in it.
    fn is_fresh_for(&self, min_event_id: Option<EventId>, requested_at: Instant) -> bool {
        self.started_at >= requested_at
            || min_event_id.is_some_and(|min_event_id| {
                self.head >= min_event_id && requested_at < self.started_at + MAX_SHARED_AGE
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_shared_while_it_is_recent_enough() {
        let id = |number| EventId::new(number).unwrap();
        let started_at = Instant::now();
        let count = CountedStatistics {
            statistics: OrderStatistics::default(),
            head: id(10),
            started_at,
            duration: Duration::ZERO,
        };
        let later = started_at + MAX_SHARED_AGE / 2;
        // Who asked before it began was waiting for it, whatever it wants to see.
        assert!(count.is_fresh_for(None, started_at) && count.is_fresh_for(Some(id(11)), started_at));
        assert!(count.is_fresh_for(Some(id(10)), later) && !count.is_fresh_for(Some(id(11)), later));
        assert!(!count.is_fresh_for(None, later), "who asks how many there are now");
        assert!(!count.is_fresh_for(Some(id(10)), started_at + MAX_SHARED_AGE), "time has passed");
    }
}
