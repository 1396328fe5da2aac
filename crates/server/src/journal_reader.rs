//! Walking the journal page by page, forwards or backwards.
//!
//! A walk goes to where the journal's end was when the walk began, so that it comes to an end however fast
//! the journal grows, and holds one page at a time, however long it is. [`JournalReader::go_on`] lets it begin again
//! where it stopped.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::Filter;
use pointsman_core::store::{Read, StoreError};
use pointsman_core::{Event, EventId};

use crate::app::App;
use crate::paging::PageSize;

/// A reader that has just been told something is told the next no sooner than this, and then all that has come
/// meanwhile: where much happens, many readers would otherwise cost a message each for every event.
pub(crate) const BATCH_DELAY: Duration = Duration::from_millis(10);

/// What the next step of a walk met.
#[derive(Debug)]
pub(crate) enum ReadStep {
    /// Events that match.
    Events(Vec<Arc<Event>>),
    /// A stretch without any match; there is more to look at.
    NoMatch,
    /// The end of the journal as it was when the walk began.
    End,
    /// Something that was still to come has been forgotten, or the cursor was never given out.
    Torn { head: EventId },
}

pub(crate) struct JournalReader {
    app: App,
    filter: Filter,
    is_backwards: bool,
    /// The cursor was the reader's own, so that it must be told of a gap.
    reports_gaps: bool,
    /// Looks only beyond this id. Forwards, it moves.
    after: EventId,
    /// Looks only up to this id. Backwards, it moves.
    until: Option<EventId>,
    /// The newest id when the walk began.
    head: EventId,
    ended: bool,
    page_size: PageSize,
}

impl JournalReader {
    /// A walk towards the newest event.
    pub(crate) fn forwards(app: App, filter: Filter, after: EventId) -> Self {
        Self {
            app,
            filter,
            is_backwards: false,
            reports_gaps: true,
            after,
            until: None,
            head: EventId::ZERO,
            ended: false,
            page_size: PageSize::default(),
        }
    }

    /// A walk from the newest event down to `after`, or to as far as is remembered.
    pub(crate) fn backwards(app: App, filter: Filter, after: Option<EventId>) -> Self {
        let reports_gaps = after.is_some();
        Self { is_backwards: true, reports_gaps, ..Self::forwards(app, filter, after.unwrap_or_default()) }
    }

    /// The newest id when the walk began, or that it has passed since.
    pub(crate) fn head(&self) -> EventId {
        self.head.max(self.after)
    }

    /// Whether there is nothing more to read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The last id that was looked at when nothing matched: where a reader that got nothing goes on. A walk
    /// backwards that did not come to its end has left out what lies below, so that all of it is still to come.
    pub(crate) fn resume_cursor(&self) -> EventId {
        if self.is_backwards && self.ended { self.head() } else { self.after }
    }

    /// The next matches, at most `wanted`.
    pub(crate) async fn read_page(&mut self, remaining: usize) -> Result<ReadStep, StoreError> {
        if self.ended || remaining == 0 {
            return Ok(ReadStep::End);
        }
        let limit = self.page_size.next_limit(remaining);
        let page = if self.is_backwards {
            let filter = self.filter.clone();
            let read = Read { after: self.after, until: self.until, filter, limit, backwards: true };
            self.app.store().read(read).await?
        } else {
            self.app.engine.observer().page(&self.filter, self.after, self.until, limit).await?
        };
        if self.reports_gaps && page.extent.is_torn(self.after) {
            // What this node has in memory may be behind the store.
            let extent = self.app.engine.observer().extent().await?;
            let torn = ReadStep::Torn { head: extent.head };
            return Ok(if extent.is_torn(self.after) { torn } else { ReadStep::NoMatch });
        }
        if self.until.is_none() {
            self.head = page.extent.head;
        }
        if self.is_backwards {
            self.advance_backwards(page.scanned, page.extent.forgotten);
        } else {
            self.advance_forwards(page.scanned, page.events.is_empty());
        }
        Ok(if page.events.is_empty() { ReadStep::NoMatch } else { ReadStep::Events(page.events) })
    }

    fn advance_forwards(&mut self, scanned: EventId, empty: bool) {
        self.until = Some(self.head);
        let has_advanced = scanned > self.after;
        self.after = self.after.max(scanned);
        // A page that neither found anything nor came any further has nothing before it.
        self.ended = self.after >= self.head || (empty && !has_advanced);
    }

    fn advance_backwards(&mut self, scanned: EventId, forgotten: EventId) {
        let below = scanned.get().checked_sub(1).and_then(EventId::new).unwrap_or_default();
        let has_advanced = self.until.is_none_or(|until| below < until);
        self.until = Some(below);
        self.after = self.after.max(forgotten);
        self.ended = !has_advanced || below <= self.after;
    }

    /// Learns how large the events are.
    pub(crate) fn adapt_page_size(&mut self, count: usize, bytes: usize) {
        self.page_size.adapt(count, bytes);
    }

    /// Waits until something that matches has come beyond what this walk has seen. What does not match is passed over,
    /// also when the wait is given up.
    pub(crate) async fn wait_for_match(&mut self) {
        self.after = self.resume_cursor();
        self.app.engine.observer().matched(&self.filter, &mut self.after).await;
    }

    /// Begins a new walk through what has come since.
    pub(crate) fn resume(&mut self) {
        self.after = self.resume_cursor().max(self.after);
        self.until = None;
        self.ended = false;
    }
}
