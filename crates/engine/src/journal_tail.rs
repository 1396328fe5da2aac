//! The newest events of the journal in memory, for its followers.

use std::collections::VecDeque;
use std::sync::Arc;

use pointsman_core::journal::{EventFilter, EventPage, JournalRange};
use pointsman_core::{Event, EventId};

/// The maximum number of events in the tail.
const MAX_CACHED_EVENTS: usize = 20_000;
/// The maximum total size of the events in the tail.
const MAX_CACHED_BYTES: usize = 32 << 20;

/// A cache of all events after `begins_after` and up to `journal_range.newest_event_id`, without a gap.
#[derive(Debug)]
pub(crate) struct JournalTail {
    begins_after: EventId,
    journal_range: JournalRange,
    events: VecDeque<Arc<Event>>,
    total_bytes: usize,
}

impl JournalTail {
    /// Creates an empty tail that begins after the head of the journal.
    pub(crate) fn new_empty(journal_range: JournalRange) -> Self {
        Self {
            begins_after: journal_range.newest_event_id,
            journal_range,
            events: VecDeque::new(),
            total_bytes: 0,
        }
    }

    /// The id up to which the tail has the events of the journal.
    pub(crate) fn head(&self) -> EventId {
        self.journal_range.newest_event_id
    }

    /// Appends a page that was read after the tail's head, and drops expired events and those over the limit.
    pub(crate) fn append_page(&mut self, page: EventPage) {
        self.journal_range.newest_event_id =
            page.last_scanned_event_id.max(self.journal_range.newest_event_id);
        for event in page.events {
            self.total_bytes += approximate_event_bytes(&event);
            self.events.push_back(event);
        }
        while self.events.len() > MAX_CACHED_EVENTS || self.total_bytes > MAX_CACHED_BYTES {
            self.drop_oldest_event();
        }
        self.drop_expired_events(page.journal_range.last_expired_event_id);
    }

    /// Drops events that have expired in the journal. A page that was read before they expired does
    /// not restore them.
    pub(crate) fn drop_expired_events(&mut self, expired_up_to: EventId) {
        self.journal_range.last_expired_event_id =
            self.journal_range.last_expired_event_id.max(expired_up_to);
        while self.events.front().is_some_and(|event| event.id <= self.journal_range.last_expired_event_id) {
            self.drop_oldest_event();
        }
        self.begins_after = self.begins_after.max(self.journal_range.last_expired_event_id);
    }

    fn drop_oldest_event(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.total_bytes = self.total_bytes.saturating_sub(approximate_event_bytes(&event));
            self.begins_after = event.id;
        }
    }

    /// Finds matching events after `after` and up to `until`, if the tail has that whole range. Otherwise the store
    /// must be read.
    pub(crate) fn find_cached_page(
        &self,
        filter: &EventFilter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Option<EventPage> {
        if after < self.begins_after || after > self.journal_range.newest_event_id {
            return None;
        }
        let last = until.map_or(self.journal_range.newest_event_id, |until| {
            until.min(self.journal_range.newest_event_id)
        });
        let first = self.events.partition_point(|event| event.id <= after);
        let mut page = EventPage {
            events: vec![],
            last_scanned_event_id: last.max(after),
            journal_range: self.journal_range,
        };
        for event in self.events.range(first..).take_while(|event| event.id <= last) {
            if page.events.len() == limit {
                break;
            }
            if filter.matches(event) {
                page.events.push(event.clone());
                // If the page is full, events after its last event were not examined.
                if page.events.len() == limit {
                    page.last_scanned_event_id = event.id;
                }
            }
        }
        if limit == 0 {
            page.last_scanned_event_id = after;
        }
        Some(page)
    }
}

fn approximate_event_bytes(event: &Event) -> usize {
    let context_bytes: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    size_of::<Event>() + event.value.as_str().len() + context_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointsman_core::{EventType, Json, Tenant};

    fn event_id(number: u64) -> EventId {
        EventId::new(number).unwrap()
    }

    fn build_event(number: u64, event_type: &str) -> Arc<Event> {
        Arc::new(Event {
            id: event_id(number),
            prev: None,
            event_type: EventType::new(event_type).unwrap(),
            key: None,
            sub_object: None,
            value: Json::null(),
            context: Default::default(),
            tenant: Tenant::default(),
            cause: None,
        })
    }

    fn build_page(events: Vec<Arc<Event>>, expired_up_to: u64) -> EventPage {
        let head = events.last().map_or(EventId::ZERO, |event| event.id);
        EventPage {
            last_scanned_event_id: head,
            journal_range: JournalRange {
                last_expired_event_id: event_id(expired_up_to),
                newest_event_id: head,
            },
            events,
        }
    }

    fn event_ids_of_page(page: &EventPage) -> Vec<u64> {
        page.events.iter().map(|event| event.id.get()).collect()
    }

    fn tail_with_three_events() -> JournalTail {
        let mut tail = JournalTail::new_empty(JournalRange {
            last_expired_event_id: EventId::ZERO,
            newest_event_id: event_id(10),
        });
        tail.append_page(build_page(
            vec![build_event(11, "a"), build_event(13, "b"), build_event(15, "a")],
            0,
        ));
        tail
    }

    #[test]
    fn pages_are_found_only_within_the_cached_range() {
        let tail = tail_with_three_events();
        let all = EventFilter::default();
        assert!(tail.find_cached_page(&all, event_id(9), None, 10).is_none());
        assert!(tail.find_cached_page(&all, event_id(16), None, 10).is_none());
        assert_eq!(
            event_ids_of_page(&tail.find_cached_page(&all, event_id(10), None, 10).unwrap()),
            [11, 13, 15]
        );
        assert_eq!(event_ids_of_page(&tail.find_cached_page(&all, event_id(13), None, 10).unwrap()), [15]);
        let empty = tail.find_cached_page(&all, event_id(15), None, 10).unwrap();
        assert!(empty.events.is_empty() && empty.last_scanned_event_id == event_id(15));
    }

    #[test]
    fn a_page_names_the_last_event_that_was_examined() {
        let tail = tail_with_three_events();
        let b_filter =
            EventFilter { event_types: vec![EventType::new("b").unwrap()], ..EventFilter::default() };
        let found = tail.find_cached_page(&b_filter, event_id(10), None, 10).unwrap();
        assert_eq!((event_ids_of_page(&found), found.last_scanned_event_id), (vec![13], event_id(15)));
        let limited = tail.find_cached_page(&EventFilter::default(), event_id(10), None, 1).unwrap();
        assert_eq!((event_ids_of_page(&limited), limited.last_scanned_event_id), (vec![11], event_id(11)));
        let bounded =
            tail.find_cached_page(&EventFilter::default(), event_id(10), Some(event_id(14)), 10).unwrap();
        assert_eq!(
            (event_ids_of_page(&bounded), bounded.last_scanned_event_id),
            (vec![11, 13], event_id(14))
        );
        let empty = tail.find_cached_page(&EventFilter::default(), event_id(10), None, 0).unwrap();
        assert_eq!(empty.last_scanned_event_id, event_id(10));
    }

    #[test]
    fn expired_events_are_dropped() {
        let mut tail = tail_with_three_events();
        tail.append_page(build_page(vec![build_event(17, "a")], 13));
        assert!(tail.find_cached_page(&EventFilter::default(), event_id(12), None, 10).is_none());
        let remaining = tail.find_cached_page(&EventFilter::default(), event_id(13), None, 10).unwrap();
        assert_eq!(event_ids_of_page(&remaining), [15, 17]);
        assert_eq!(remaining.journal_range.last_expired_event_id, event_id(13));
    }

    #[test]
    fn the_tail_caches_a_limited_number_of_events() {
        let mut tail = JournalTail::new_empty(JournalRange::default());
        for start in (0..MAX_CACHED_EVENTS as u64 * 2).step_by(1000) {
            tail.append_page(build_page(
                (start + 1..=start + 1000).map(|n| build_event(n, "a")).collect(),
                0,
            ));
        }
        assert_eq!(tail.events.len(), MAX_CACHED_EVENTS);
        assert_eq!(tail.begins_after.get(), MAX_CACHED_EVENTS as u64);
        assert!(tail.find_cached_page(&EventFilter::default(), tail.begins_after, None, 1).is_some());
    }
}
