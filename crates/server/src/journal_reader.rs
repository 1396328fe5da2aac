//! Reads the journal page by page, forwards or backwards.
//!
//! A read ends at the head that the journal had when the read began, so that it ends however fast the journal grows. It
//! has one page in memory at a time. The next read starts where the last one ended.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{JournalQuery, StoreError};
use pointsman_core::{Event, EventId};

use crate::app_state::App;
use crate::journal_paging::AdaptivePageSize;

/// Minimum time between two messages to a reader; events that arrive meanwhile are sent together. Without it a busy
/// journal would cost one message per event and reader.
pub(crate) const BATCH_DELAY: Duration = Duration::from_millis(10);

/// The result of reading a page.
#[derive(Debug)]
pub(crate) enum PageReadOutcome {
    /// Events that match.
    Events(Vec<Arc<Event>>),
    /// The page has no match; there is more to read.
    NoMatchInPage,
    /// The read has ended, at the head that the journal had when it began or at the requested number of events.
    End,
    /// Events after the cursor have expired, or the cursor was never given out.
    GapAfterCursor { head: EventId },
}

pub(crate) struct JournalReader {
    app: App,
    filter: EventFilter,
    is_backwards: bool,
    /// Whether the cursor was given by the client, so that a gap must be reported to it.
    reports_gaps: bool,
    /// Only events with ids above this cursor are read. The cursor moves up when reading forwards, and past events that
    /// have expired.
    after: EventId,
    /// Only events with ids up to this one are read. The first page sets it, and it moves down when reading backwards.
    until: Option<EventId>,
    /// The newest id when the read began.
    head: EventId,
    has_ended: bool,
    page_size: AdaptivePageSize,
}

impl JournalReader {
    /// Reads towards the newest event.
    pub(crate) fn new_forwards(app: App, filter: EventFilter, after: EventId) -> Self {
        Self {
            app,
            filter,
            is_backwards: false,
            reports_gaps: true,
            after,
            until: None,
            head: EventId::ZERO,
            has_ended: false,
            page_size: AdaptivePageSize::default(),
        }
    }

    /// Reads from the newest event down to `after`, or to the oldest that is retained.
    pub(crate) fn new_backwards(app: App, filter: EventFilter, after: Option<EventId>) -> Self {
        let reports_gaps = after.is_some();
        Self {
            is_backwards: true,
            reports_gaps,
            ..Self::new_forwards(app, filter, after.unwrap_or_default())
        }
    }

    /// The newest id when the read began, or the last id read if that is newer.
    pub(crate) fn head(&self) -> EventId {
        self.head.max(self.after)
    }

    /// Whether there is nothing more to read.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The cursor after which a client that got no events continues. A backward read that did not finish has skipped
    /// the older events, so its cursor stays at the beginning.
    pub(crate) fn resume_cursor(&self) -> EventId {
        if self.is_backwards && self.has_ended { self.head() } else { self.after }
    }

    /// Reads the next matches, at most `remaining`.
    pub(crate) async fn read_page(&mut self, remaining: usize) -> Result<PageReadOutcome, StoreError> {
        if self.has_ended || remaining == 0 {
            return Ok(PageReadOutcome::End);
        }
        let limit = self.page_size.next_limit(remaining);
        let page = if self.is_backwards {
            let filter = self.filter.clone();
            let query = JournalQuery {
                after_event_id: self.after,
                up_to_event_id: self.until,
                filter,
                limit,
                backwards: true,
            };
            self.app.store().read_events(query).await?
        } else {
            self.app.engine.observer().read_page(&self.filter, self.after, self.until, limit).await?
        };
        if self.reports_gaps && page.journal_range.has_gap_after(self.after) {
            // The cache of this node may be behind the store.
            let journal_range = self.app.engine.observer().read_journal_range().await?;
            let torn = PageReadOutcome::GapAfterCursor { head: journal_range.newest_event_id };
            return Ok(if journal_range.has_gap_after(self.after) {
                torn
            } else {
                PageReadOutcome::NoMatchInPage
            });
        }
        if self.until.is_none() {
            self.head = page.journal_range.newest_event_id;
        }
        if self.is_backwards {
            self.advance_backwards(page.last_scanned_event_id, page.journal_range.last_expired_event_id);
        } else {
            self.advance_forwards(page.last_scanned_event_id, page.events.is_empty());
        }
        Ok(if page.events.is_empty() {
            PageReadOutcome::NoMatchInPage
        } else {
            PageReadOutcome::Events(page.events)
        })
    }

    fn advance_forwards(&mut self, scanned_up_to: EventId, is_page_empty: bool) {
        self.until = Some(self.head);
        let has_advanced = scanned_up_to > self.after;
        self.after = self.after.max(scanned_up_to);
        // An empty page that did not advance has nothing after it.
        self.has_ended = self.after >= self.head || (is_page_empty && !has_advanced);
    }

    fn advance_backwards(&mut self, scanned_up_to: EventId, expired_up_to: EventId) {
        let below = scanned_up_to.get().checked_sub(1).and_then(EventId::new).unwrap_or_default();
        let has_advanced = self.until.is_none_or(|until| below < until);
        self.until = Some(below);
        self.after = self.after.max(expired_up_to);
        self.has_ended = !has_advanced || below <= self.after;
    }

    /// Adapts the page size to the size of the events.
    pub(crate) fn adapt_page_size(&mut self, count: usize, bytes: usize) {
        self.page_size.adapt_to_page(count, bytes);
    }

    /// Waits for a matching event after those already read. Events that do not match are skipped, also when the wait is
    /// cancelled.
    pub(crate) async fn wait_for_match(&mut self) {
        self.after = self.resume_cursor();
        self.app.engine.observer().wait_for_matching_event(&self.filter, &mut self.after).await;
    }

    /// Starts the next read, of the events that have arrived since the last read began.
    pub(crate) fn start_next_read(&mut self) {
        self.after = self.resume_cursor().max(self.after);
        self.until = None;
        self.has_ended = false;
    }
}
