//! Builds pages of the journal from events that a store has read.

use std::sync::Arc;

use pointsman_core::journal::{EventPage, JournalRange};
use pointsman_core::store::JournalQuery;
use pointsman_core::{Event, EventId};

/// Most rows scanned for one page. A page may therefore end before it has as many matches as requested; it names the
/// last row that was scanned.
pub const MAX_SCANNED_ROWS_PER_PAGE: usize = 20_000;
/// Most bytes of payload in one page.
pub const MAX_PAGE_PAYLOAD_BYTES: usize = 8 << 20;

/// Returns the size of an event's value and context, in bytes.
pub fn event_payload_size(event: &Event) -> usize {
    let context_size: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    event.value.as_str().len() + context_size
}

/// Builds a page of the journal from the events that a reader passes to it.
#[derive(Debug)]
pub struct JournalPageBuilder<'r> {
    query: &'r JournalQuery,
    after: EventId,
    until: EventId,
    page: EventPage,
    scanned_rows: usize,
    payload_bytes: usize,
}

impl<'r> JournalPageBuilder<'r> {
    pub fn new(query: &'r JournalQuery, journal_range: JournalRange) -> Self {
        let after = query.after_event_id.max(journal_range.last_expired_event_id);
        let until = query.up_to_event_id.unwrap_or(EventId::MAX).min(journal_range.newest_event_id);
        let scanned = if query.backwards { after } else { until.max(after) };
        Self {
            query,
            after,
            until,
            page: EventPage { events: Vec::new(), last_scanned_event_id: scanned, journal_range },
            scanned_rows: 0,
            payload_bytes: 0,
        }
    }

    /// Returns the ids to scan: after the first, up to and including the second. If the request reads backwards, scan
    /// from the newest.
    pub fn id_range_to_scan(&self) -> (EventId, EventId) {
        (self.after, self.until)
    }

    /// Adds the next event to the page if it matches the query; returns whether the reader is to pass further events.
    pub fn scan_event(&mut self, event: Event) -> bool {
        self.scanned_rows += 1;
        let id = event.id;
        if self.query.filter.matches(&event) {
            self.payload_bytes += event_payload_size(&event);
            self.page.events.push(Arc::new(event));
        }
        let is_full = self.page.events.len() >= self.query.limit
            || self.scanned_rows >= MAX_SCANNED_ROWS_PER_PAGE
            || self.payload_bytes >= MAX_PAGE_PAYLOAD_BYTES;
        if is_full {
            self.page.last_scanned_event_id = id;
        }
        !is_full
    }

    pub fn into_page(self) -> EventPage {
        self.page
    }
}
