//! Walking the journal page by page, forwards or backwards.
//!
//! A walk goes to where the journal's end was when the walk began, so that it comes to an end however fast
//! the journal grows, and holds one page at a time, however long it is. [`Walk::go_on`] lets it begin again
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
pub(crate) const GATHER: Duration = Duration::from_millis(10);

/// What the next step of a walk met.
#[derive(Debug)]
pub(crate) enum Step {
    /// Events that match.
    Events(Vec<Arc<Event>>),
    /// A stretch without any match; there is more to look at.
    Nothing,
    /// The end of the journal as it was when the walk began.
    End,
    /// Something that was still to come has been forgotten, or the cursor was never given out.
    Torn { head: EventId },
}

pub(crate) struct Walk {
    app: App,
    filter: Filter,
    backwards: bool,
    /// The cursor was the reader's own, so that it must be told of a gap.
    strict: bool,
    /// Looks only beyond this id. Forwards, it moves.
    after: EventId,
    /// Looks only up to this id. Backwards, it moves.
    until: Option<EventId>,
    /// The newest id when the walk began.
    head: EventId,
    ended: bool,
    size: PageSize,
}

impl Walk {
    /// A walk towards the newest event.
    pub(crate) fn forwards(app: App, filter: Filter, after: EventId) -> Self {
        Self {
            app,
            filter,
            backwards: false,
            strict: true,
            after,
            until: None,
            head: EventId::ZERO,
            ended: false,
            size: PageSize::default(),
        }
    }

    /// A walk from the newest event down to `after`, or to as far as is remembered.
    pub(crate) fn backwards(app: App, filter: Filter, after: Option<EventId>) -> Self {
        let strict = after.is_some();
        Self { backwards: true, strict, ..Self::forwards(app, filter, after.unwrap_or_default()) }
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
    pub(crate) fn reached(&self) -> EventId {
        if self.backwards && self.ended { self.head() } else { self.after }
    }

    /// The next matches, at most `wanted`.
    pub(crate) async fn step(&mut self, wanted: usize) -> Result<Step, StoreError> {
        if self.ended || wanted == 0 {
            return Ok(Step::End);
        }
        let limit = self.size.next(wanted);
        let page = if self.backwards {
            let filter = self.filter.clone();
            let read = Read { after: self.after, until: self.until, filter, limit, backwards: true };
            self.app.store().read(read).await?
        } else {
            self.app.engine.observer().page(&self.filter, self.after, self.until, limit).await?
        };
        if self.strict && page.extent.is_torn(self.after) {
            // What this node has in memory may be behind the store.
            let extent = self.app.engine.observer().extent().await?;
            let torn = Step::Torn { head: extent.head };
            return Ok(if extent.is_torn(self.after) { torn } else { Step::Nothing });
        }
        if self.until.is_none() {
            self.head = page.extent.head;
        }
        if self.backwards {
            self.move_down(page.scanned, page.extent.forgotten);
        } else {
            self.move_up(page.scanned, page.events.is_empty());
        }
        Ok(if page.events.is_empty() { Step::Nothing } else { Step::Events(page.events) })
    }

    fn move_up(&mut self, scanned: EventId, empty: bool) {
        self.until = Some(self.head);
        let moved = scanned > self.after;
        self.after = self.after.max(scanned);
        // A page that neither found anything nor came any further has nothing before it.
        self.ended = self.after >= self.head || (empty && !moved);
    }

    fn move_down(&mut self, scanned: EventId, forgotten: EventId) {
        let below = scanned.get().checked_sub(1).and_then(EventId::new).unwrap_or_default();
        let moved = self.until.is_none_or(|until| below < until);
        self.until = Some(below);
        self.after = self.after.max(forgotten);
        self.ended = !moved || below <= self.after;
    }

    /// Learns how large the events are.
    pub(crate) fn learn(&mut self, count: usize, bytes: usize) {
        self.size.learn(count, bytes);
    }

    /// Waits until something that matches has come beyond what this walk has seen. What does not match is passed over,
    /// also when the wait is given up.
    pub(crate) async fn grown(&mut self) {
        self.after = self.reached();
        self.app.engine.observer().matched(&self.filter, &mut self.after).await;
    }

    /// Begins a new walk through what has come since.
    pub(crate) fn go_on(&mut self) {
        self.after = self.reached().max(self.after);
        self.until = None;
        self.ended = false;
    }
}
