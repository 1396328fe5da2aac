//! The events journaled last, in memory: most tasks run soon after they are made, and need not read theirs again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pointsman_core::{Event, EventId};

/// So many events at most, and so many bytes of payload.
const MOST: usize = 4096;
const MOST_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct Recent {
    events: HashMap<EventId, Arc<Event>>,
    order: VecDeque<EventId>,
    bytes: usize,
}

impl Recent {
    pub(crate) fn add(&mut self, event: &Arc<Event>) {
        self.bytes += event.value.as_str().len();
        self.order.push_back(event.id);
        self.events.insert(event.id, event.clone());
        while self.order.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(event) = self.events.remove(&oldest) {
                self.bytes -= event.value.as_str().len();
            }
        }
    }

    pub(crate) fn get(&self, id: EventId) -> Option<Arc<Event>> {
        self.events.get(&id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::{Context, HandlingKey, Json, Tenant};

    use super::*;

    fn event(id: u64, bytes: usize) -> Arc<Event> {
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
    fn it_is_bounded_in_number_and_in_bytes() {
        let mut recent = Recent::default();
        for id in 0..MOST as u64 + 10 {
            recent.add(&event(id, 1));
        }
        assert_eq!((recent.events.len(), recent.bytes), (MOST, MOST));
        assert!(recent.get(EventId::new(9).unwrap()).is_none());
        assert!(recent.get(EventId::new(10).unwrap()).is_some());
        recent.add(&event(1_000_000, MOST_BYTES + 1));
        assert_eq!((recent.events.len(), recent.bytes, recent.order.len()), (0, 0, 0));
    }
}
