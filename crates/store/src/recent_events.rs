//! Cache of the latest events: most tasks run soon after they are created and need not read their event.

use std::collections::VecDeque;
use std::sync::Arc;

use pointsman_core::{Event, EventId};

/// Most cached events, and most bytes of payload.
const MAX_EVENTS: usize = 4096;
const MAX_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    /// Ordered by id.
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl RecentEvents {
    /// Adds an event, which must be newer than all others.
    pub(crate) fn add(&mut self, event: &Arc<Event>) {
        self.bytes += event.value.as_str().len();
        self.events.push_back(event.clone());
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.value.as_str().len();
        }
    }

    pub(crate) fn find(&self, id: EventId) -> Option<Arc<Event>> {
        let index = self.events.binary_search_by_key(&id, |event| event.id).ok()?;
        self.events.get(index).cloned()
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::{Context, HandlingKey, Json, Tenant};

    use super::*;

    fn event_of_size(id: u64, bytes: usize) -> Arc<Event> {
        Arc::new(Event {
            id: EventId::new(id).unwrap(),
            prev: None,
            kind: HandlingKey::new("a").unwrap(),
            key: None,
            sub: None,
            value: Json::trusted("x".repeat(bytes)),
            context: Context::new(),
            tenant: Tenant::default(),
            cause: None,
        })
    }

    #[test]
    fn cache_is_bounded_in_number_and_bytes() {
        let mut recent = RecentEvents::default();
        for id in 0..MAX_EVENTS as u64 + 10 {
            recent.add(&event_of_size(id, 1));
        }
        assert_eq!((recent.events.len(), recent.bytes), (MAX_EVENTS, MAX_EVENTS));
        assert!(recent.find(EventId::new(9).unwrap()).is_none());
        assert!(recent.find(EventId::new(10).unwrap()).is_some());
        recent.add(&event_of_size(1_000_000, MAX_BYTES + 1));
        assert_eq!((recent.events.len(), recent.bytes), (0, 0));
    }
}
