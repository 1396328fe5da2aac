//! Events, and pages of the journal.

use std::sync::Arc;

use pointsman_core::journal::{Extent, Page};
use pointsman_core::store::Read;
use pointsman_core::{Cause, Context, Event, EventId, HandlingKey, Json, ObjectKey, TaskSeq, Tenant};

use crate::error::{Fault, Result};

/// So many rows at most are looked at for one page; the page says how far it came.
pub const MAX_SCANNED_ROWS: usize = 20_000;
/// So many bytes of payload at most come in one page.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// An event as it lies in the journal.
#[derive(Clone, Copy, Debug)]
pub struct EventColumns<'a> {
    pub id: i64,
    pub prev: Option<i64>,
    pub kind: &'a str,
    pub key: Option<&'a str>,
    pub sub: Option<&'a str>,
    /// Empty for what is nobody's.
    pub tenant: &'a str,
    pub value: &'a str,
    /// As [`encode_context`] made it.
    pub context: Option<&'a str>,
    pub cause_event: Option<i64>,
    pub cause_task: Option<i64>,
    pub depth: u16,
}

impl EventColumns<'_> {
    pub fn into_event(self) -> Result<Event> {
        let context = match self.context {
            Some(json) => serde_json::from_str(json).map_err(Fault::damaged)?,
            None => Context::new(),
        };
        let cause = self.cause_task.map(|task| Cause {
            event: self.cause_event.map(EventId::from_i64),
            task: TaskSeq(task),
            depth: self.depth,
        });
        Ok(Event {
            id: EventId::from_i64(self.id),
            prev: self.prev.map(EventId::from_i64),
            kind: HandlingKey::new(self.kind).map_err(Fault::damaged)?,
            key: self.key.map(ObjectKey::trusted),
            sub: self.sub.map(ObjectKey::trusted),
            tenant: match self.tenant {
                "" => Tenant::nobody(),
                name => Tenant::new(name).map_err(Fault::damaged)?,
            },
            value: Json::trusted(self.value),
            context,
            cause,
        })
    }
}

/// The context of an event as it is kept; none if it has none.
pub fn encode_context(event: &Event) -> Result<Option<String>> {
    match event.context.is_empty() {
        true => Ok(None),
        false => serde_json::to_string(&event.context).map(Some).map_err(Fault::damaged),
    }
}

/// About how many bytes an event takes.
pub fn event_size(event: &Event) -> usize {
    let context: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    event.value.as_str().len() + context
}

/// A page of the journal in the making.
#[derive(Debug)]
pub struct JournalPageBuilder<'r> {
    request: &'r Read,
    after: EventId,
    until: EventId,
    page: Page,
    scanned_rows: usize,
    bytes: usize,
}

impl<'r> JournalPageBuilder<'r> {
    pub fn new(read: &'r Read, extent: Extent) -> Self {
        let low = read.after.max(extent.forgotten);
        let high = read.until.unwrap_or(EventId::MAX).min(extent.head);
        let scanned = if read.backwards { low } else { high.max(low) };
        Self {
            request: read,
            after: low,
            until: high,
            page: Page { events: Vec::new(), scanned, extent },
            scanned_rows: 0,
            bytes: 0,
        }
    }

    /// Which events are to be looked at: those after the first id, up to and with the second; the newest first if it
    /// is read backwards.
    pub fn id_range(&self) -> (EventId, EventId) {
        (self.after, self.until)
    }

    /// Looks at the next event; answers whether another is wanted.
    pub fn push_event(&mut self, event: Event) -> bool {
        self.scanned_rows += 1;
        let id = event.id;
        if self.request.filter.matches(&event) {
            self.bytes += event_size(&event);
            self.page.events.push(Arc::new(event));
        }
        let full = self.page.events.len() >= self.request.limit
            || self.scanned_rows >= MAX_SCANNED_ROWS
            || self.bytes >= MAX_PAGE_BYTES;
        if full {
            self.page.scanned = id;
        }
        !full
    }

    pub fn into_page(self) -> Page {
        self.page
    }
}
