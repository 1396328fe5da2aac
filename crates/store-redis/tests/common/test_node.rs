//! A test node: an open store, and reads of its journal.

use std::sync::Arc;

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{EmittedEventReceipt, Journal, JournalQuery, Store, StoreError};
use pointsman_core::{Event, EventId, NewEvent};
use pointsman_store_conformance::fixture::new_emit_batch;
use pointsman_store_redis::{Redis, RedisStore};

use super::redis_location::RedisLocation;
use super::{now, wait_until};

/// An open store, as a node uses it.
pub(crate) struct TestNode {
    pub(crate) store: RedisStore,
}

impl TestNode {
    pub(crate) async fn open(location: &RedisLocation) -> Self {
        Self::open_url(&location.url).await
    }

    pub(crate) async fn open_url(url: &str) -> Self {
        let store = Redis::open(url, now()).await;
        Self { store: store.unwrap_or_else(|fault| panic!("could not open the store: {fault}")) }
    }

    /// Closes the store.
    pub(crate) async fn close(self) {
        tokio::task::spawn_blocking(move || self.store.close()).await.unwrap();
    }

    /// Reads the whole journal.
    pub(crate) async fn read_journal(&self) -> Vec<Arc<Event>> {
        let (mut after, mut events) = (EventId::ZERO, vec![]);
        loop {
            let query = JournalQuery {
                after_event_id: after,
                up_to_event_id: None,
                filter: EventFilter::default(),
                limit: 1000,
                backwards: false,
            };
            let page = self.store.read_events(query).await.unwrap();
            events.extend(page.events);
            if page.last_scanned_event_id == after
                || page.last_scanned_event_id >= page.journal_range.newest_event_id
            {
                return events;
            }
            after = page.last_scanned_event_id;
        }
    }

    /// Waits until the journal has exactly this many events, and returns them.
    pub(crate) async fn wait_for_events(&self, count: usize) -> Vec<Arc<Event>> {
        let mut events = vec![];
        wait_until(&format!("the journal has {count} events"), async || {
            events = self.read_journal().await;
            events.len() >= count
        })
        .await;
        assert_eq!(events.len(), count, "the journal has more events");
        events
    }

    pub(crate) async fn try_emit(&self, event: NewEvent) -> Result<EmittedEventReceipt, StoreError> {
        let (mut receipts, _) = self.store.append(vec![new_emit_batch([event])], None, now()).await?;
        Ok(receipts.remove(0).unwrap().events.remove(0))
    }

    pub(crate) async fn emit(&self, event: NewEvent) -> EmittedEventReceipt {
        self.try_emit(event).await.unwrap()
    }
}

/// Returns the values of events.
pub(crate) fn event_values(events: &[Arc<Event>]) -> Vec<&str> {
    events.iter().map(|event| event.value.as_str()).collect()
}
