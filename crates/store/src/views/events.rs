//! Events, and pages of the journal.

use std::sync::Arc;

use pointsman_core::journal::{EventPage, JournalRange};
use pointsman_core::store::JournalQuery;
use pointsman_core::{Cause, Context, Event, EventId, EventType, Json, ObjectKey, TaskSeq, Tenant};

use crate::error::{Fault, TableResult};

/// Most rows scanned for one page. A page may therefore end before it has as many matches as requested; it names the
/// last row that was scanned.
pub const MAX_SCANNED_ROWS_PER_PAGE: usize = 20_000;
/// Most bytes of payload in one page.
pub const MAX_PAGE_PAYLOAD_BYTES: usize = 8 << 20;

/// Columns of an event in the journal.
#[derive(Clone, Copy, Debug)]
pub struct EventColumns<'a> {
    pub id: i64,
    pub prev: Option<i64>,
    pub event_type: &'a str,
    pub key: Option<&'a str>,
    pub sub: Option<&'a str>,
    /// Empty for an event that belongs to no tenant.
    pub tenant: &'a str,
    pub value: &'a str,
    /// Encoded by [`encode_context`].
    pub context: Option<&'a str>,
    pub cause_event: Option<i64>,
    pub cause_task: Option<i64>,
    pub cause_depth: u16,
}

impl EventColumns<'_> {
    pub fn into_event(self) -> TableResult<Event> {
        let context = match self.context {
            Some(json) => serde_json::from_str(json).map_err(Fault::damaged)?,
            None => Context::new(),
        };
        let cause = self.cause_task.map(|task| Cause {
            event: self.cause_event.map(EventId::from_i64),
            task: TaskSeq(task),
            depth: self.cause_depth,
        });
        Ok(Event {
            id: EventId::from_i64(self.id),
            prev: self.prev.map(EventId::from_i64),
            event_type: EventType::new(self.event_type).map_err(Fault::damaged)?,
            key: self.key.map(ObjectKey::from_trusted),
            sub_object: self.sub.map(ObjectKey::from_trusted),
            tenant: match self.tenant {
                "" => Tenant::no_tenant(),
                name => Tenant::new(name).map_err(Fault::damaged)?,
            },
            value: Json::from_trusted(self.value),
            context,
            cause,
        })
    }
}

/// Encodes the context of an event; `None` if it is empty.
pub fn encode_context(event: &Event) -> TableResult<Option<String>> {
    match event.context.is_empty() {
        true => Ok(None),
        false => serde_json::to_string(&event.context).map(Some).map_err(Fault::damaged),
    }
}

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
