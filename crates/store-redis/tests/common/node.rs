//! A node: a store that is open, and what it has journaled.

use std::sync::Arc;

use pointsman_core::journal::Filter;
use pointsman_core::store::{Journal, Read, Sequenced, Store, StoreError};
use pointsman_core::{Event, EventId, NewEvent};
use pointsman_store_conformance::world::emission;
use pointsman_store_redis::{Redis, RedisStore};

use super::place::Place;
use super::{now, until};

pub(crate) struct Node {
    pub(crate) store: RedisStore,
}

impl Node {
    pub(crate) async fn open(place: &Place) -> Self {
        Self::at(&place.url).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        let store = Redis::open(url, now()).await;
        Self { store: store.unwrap_or_else(|fault| panic!("the store opens: {fault}")) }
    }

    /// Ends it in good order.
    pub(crate) async fn close(self) {
        tokio::task::spawn_blocking(move || self.store.close()).await.unwrap();
    }

    /// All that is journaled.
    pub(crate) async fn journal(&self) -> Vec<Arc<Event>> {
        let (mut after, mut events) = (EventId::ZERO, vec![]);
        loop {
            let read = Read { after, until: None, filter: Filter::default(), limit: 1000, backwards: false };
            let page = self.store.read(read).await.unwrap();
            events.extend(page.events);
            if page.scanned == after || page.scanned >= page.extent.head {
                return events;
            }
            after = page.scanned;
        }
    }

    /// All that is journaled, as soon as it has so many events.
    pub(crate) async fn events(&self, count: usize) -> Vec<Arc<Event>> {
        let mut events = vec![];
        until(&format!("{count} events"), async || {
            events = self.journal().await;
            events.len() >= count
        })
        .await;
        assert_eq!(events.len(), count, "there are more");
        events
    }

    pub(crate) async fn try_emit(&self, event: NewEvent) -> Result<Sequenced, StoreError> {
        let (mut receipts, _) = self.store.append(vec![emission([event])], None, now()).await?;
        Ok(receipts.remove(0).unwrap().events.remove(0))
    }

    pub(crate) async fn emit(&self, event: NewEvent) -> Sequenced {
        self.try_emit(event).await.unwrap()
    }
}

/// What events hold, in a few words: their values, one after the other.
pub(crate) fn values(events: &[Arc<Event>]) -> Vec<&str> {
    events.iter().map(|event| event.value.as_str()).collect()
}
