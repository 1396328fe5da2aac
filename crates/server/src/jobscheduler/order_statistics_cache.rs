//! Shares one count of orders among concurrent requests.
//!
//! A count reads every order of a path, and every event wakes all requests that wait for the statistics of that path to
//! change. So only one count per path runs at a time, and requests that arrive during it or shortly after share it, if
//! it is consistent at an event id that is new enough for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::journal::PathFilter;
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::StoreError;
use pointsman_core::{EventId, Tenant};
use tokio::time::Instant;

use crate::app_state::App;

/// Maximum age of a shared count. Without it, statistics that change with time alone would not be noticed.
const MAX_SHARED_AGE: Duration = Duration::from_millis(900);
/// Number of scopes above which the cache drops the scopes that no request uses.
const MAX_CACHED_SCOPES: usize = 256;

/// The orders that are counted: those of a path, of one tenant or of all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OrderScope {
    pub(super) path_filter: PathFilter,
    pub(super) tenant: Option<Tenant>,
}

/// Statistics with the event id at which they are consistent.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedStatistics {
    pub(super) statistics: OrderStatistics,
    pub(super) journal_head: EventId,
    count_started_at: Instant,
    /// Duration of the count.
    pub(super) count_duration: Duration,
}

/// The latest counts by scope.
#[derive(Default)]
pub(crate) struct OrderStatisticsCache(Mutex<HashMap<OrderScope, Arc<CacheSlot>>>);

/// The latest count of a scope. Locked during the next count.
type CacheSlot = tokio::sync::Mutex<Option<CountedStatistics>>;

impl OrderStatisticsCache {
    /// The slot that all requests with this scope share.
    fn get_or_create_slot(&self, scope: &OrderScope) -> Arc<CacheSlot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_CACHED_SCOPES && !slots.contains_key(scope) {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        slots.entry(scope.clone()).or_default().clone()
    }
}

/// Counts the orders of a scope, or shares a recent count. The cache keeps the scope's slot as long as a reader exists.
pub(super) struct OrderStatisticsReader {
    app: App,
    scope: OrderScope,
    slot: Arc<CacheSlot>,
}

impl OrderStatisticsReader {
    pub(super) fn new(app: App, scope: OrderScope) -> Self {
        let slot = app.order_statistics_cache.get_or_create_slot(&scope);
        Self { app, scope, slot }
    }

    /// Counts the orders, or shares a count that started after this call.
    pub(super) async fn count_now(&self) -> Result<CountedStatistics, StoreError> {
        self.count_or_share(None).await
    }

    /// Counts the orders, or shares a recent count that is consistent at this event id or a later one.
    pub(super) async fn count_at_or_after(
        &self,
        min_event_id: EventId,
    ) -> Result<CountedStatistics, StoreError> {
        self.count_or_share(Some(min_event_id)).await
    }

    /// Returns the latest count if it is usable, else counts the orders. A count that has started finishes even if its
    /// request is cancelled, because the next request can use it.
    async fn count_or_share(&self, min_event_id: Option<EventId>) -> Result<CountedStatistics, StoreError> {
        let requested_at = Instant::now();
        let (app, scope, slot) = (self.app.clone(), self.scope.clone(), self.slot.clone());
        let counting = tokio::spawn(async move {
            let mut slot = slot.lock().await;
            if let Some(count) = slot.filter(|count| count.is_usable_for(min_event_id, requested_at)) {
                return Ok(count);
            }
            let started_at = Instant::now();
            let OrderScope { path_filter: path, tenant } = scope;
            let (statistics, journal_range) =
                app.store().read_order_statistics(&path, tenant.as_ref(), app.now()).await?;
            let count = CountedStatistics {
                statistics,
                journal_head: journal_range.newest_event_id,
                count_started_at: started_at,
                count_duration: started_at.elapsed(),
            };
            Ok(*slot.insert(count))
        });
        counting.await.unwrap_or_else(|error| Err(StoreError::damaged(error)))
    }
}

impl CountedStatistics {
    /// Whether the count can be used for a request made at `requested_at` that needs at least `min_event_id`.
    fn is_usable_for(&self, min_event_id: Option<EventId>, requested_at: Instant) -> bool {
        self.count_started_at >= requested_at
            || min_event_id.is_some_and(|min_event_id| {
                self.journal_head >= min_event_id && requested_at < self.count_started_at + MAX_SHARED_AGE
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
            journal_head: id(10),
            count_started_at: started_at,
            count_duration: Duration::ZERO,
        };
        let later = started_at + MAX_SHARED_AGE / 2;
        // A request made before the count started can use it, whatever id it needs.
        assert!(count.is_usable_for(None, started_at) && count.is_usable_for(Some(id(11)), started_at));
        assert!(count.is_usable_for(Some(id(10)), later) && !count.is_usable_for(Some(id(11)), later));
        assert!(!count.is_usable_for(None, later), "a request for the current count");
        assert!(!count.is_usable_for(Some(id(10)), started_at + MAX_SHARED_AGE), "time has passed");
    }
}
