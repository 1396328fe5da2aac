//! Cache of the latest events: most tasks run soon after they are created and need not read their event.

use std::collections::VecDeque;
use std::sync::Arc;

use pointsman_core::{Event, EventId};

/// Most cached events.
const MAX_CACHED_EVENTS: usize = 4096;
/// Most bytes in the values of all cached events.
const MAX_CACHED_BYTES: usize = 4 << 20;

/// The latest events of this node's transactions, up to a number and a total size.
#[derive(Debug, Default)]
pub(crate) struct RecentEventCache {
    /// Ordered by id.
    events: VecDeque<Arc<Event>>,
    payload_bytes: usize,
}

impl RecentEventCache {
    /// Adds an event, which must be newer than all others.
    pub(crate) fn push_event(&mut self, event: &Arc<Event>) {
        self.payload_bytes += event.value.as_str().len();
        self.events.push_back(event.clone());
        while self.events.len() > MAX_CACHED_EVENTS || self.payload_bytes > MAX_CACHED_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.payload_bytes -= oldest.value.as_str().len();
        }
    }

    pub(crate) fn find_event(&self, id: EventId) -> Option<Arc<Event>> {
        let index = self.events.binary_search_by_key(&id, |event| event.id).ok()?;
        self.events.get(index).cloned()
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::{Context, EventType, Json, Tenant};

    use super::*;

    fn event_with_value_size(id: u64, bytes: usize) -> Arc<Event> {
        Arc::new(Event {
            id: EventId::new(id).unwrap(),
            prev: None,
            event_type: EventType::new("a").unwrap(),
            key: None,
            sub_object: None,
            value: Json::from_trusted("x".repeat(bytes)),
            context: Context::new(),
            tenant: Tenant::default(),
            cause: None,
        })
    }

    #[test]
    fn cache_is_bounded_in_number_and_bytes() {
        let mut recent = RecentEventCache::default();
        for id in 0..MAX_CACHED_EVENTS as u64 + 10 {
            recent.push_event(&event_with_value_size(id, 1));
        }
        assert_eq!((recent.events.len(), recent.payload_bytes), (MAX_CACHED_EVENTS, MAX_CACHED_EVENTS));
        assert!(recent.find_event(EventId::new(9).unwrap()).is_none());
        assert!(recent.find_event(EventId::new(10).unwrap()).is_some());
        recent.push_event(&event_with_value_size(1_000_000, MAX_CACHED_BYTES + 1));
        assert_eq!((recent.events.len(), recent.payload_bytes), (0, 0));
    }
}
