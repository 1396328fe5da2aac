//! Watches the journal for new events.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::Stream;
use futures::stream::unfold;
use pointsman_core::EventId;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::StoreError;
use pointsman_engine::Engine;

use crate::RawEvent;

/// The number of events that are read at a time.
const MAX_EVENTS_PER_READ: usize = 256;

/// Watches the journal: returns the matching events in order and without a gap.
pub struct JournalWatch {
    engine: Engine,
    filter: EventFilter,
    after: EventId,
    /// Events that were read and not yet returned.
    buffered_events: VecDeque<Arc<pointsman_core::Event>>,
}

/// Why a watch ended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// Events that the watch has not returned have expired, or it began after an id that was never assigned.
    #[error("the journal is torn after event {0}: later events have expired before they were read")]
    Torn(EventId),
    /// The store failed, or the bus has stopped.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl JournalWatch {
    pub(crate) fn new(engine: Engine, after: EventId, filter: EventFilter) -> Self {
        Self { engine, filter, after, buffered_events: VecDeque::new() }
    }

    /// Waits for the next event; an error when the bus stops. Dropping the future loses no event.
    pub async fn next(&mut self) -> Result<RawEvent, WatchError> {
        loop {
            if let Some(event) = self.buffered_events.pop_front() {
                return Ok(RawEvent(event));
            }
            let observer = self.engine.observer();
            let page = observer.read_page(&self.filter, self.after, None, MAX_EVENTS_PER_READ).await?;
            if page.journal_range.has_gap_after(self.after) {
                return Err(WatchError::Torn(self.after));
            }
            self.after = page.last_scanned_event_id.max(self.after);
            self.buffered_events.extend(page.events);
            if self.buffered_events.is_empty() && self.after >= page.journal_range.newest_event_id {
                tokio::select! {
                    () = observer.wait_for_matching_event(&self.filter, &mut self.after) => {}
                    () = observer.wait_until_stopped() => return Err(StoreError::Closed.into()),
                }
            }
        }
    }

    /// Converts the watch into a stream, which ends after an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<RawEvent, WatchError>> + Send {
        unfold(Some(self), |watch| async {
            let mut watch = watch?;
            match watch.next().await {
                Ok(event) => Some((Ok(event), Some(watch))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl std::fmt::Debug for JournalWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JournalWatch").field("after", &self.after).field("filter", &self.filter).finish()
    }
}
