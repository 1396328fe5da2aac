//! Watching the journal grow.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::Stream;
use futures::stream::unfold;
use pointsman_core::EventId;
use pointsman_core::journal::Filter;
use pointsman_core::store::StoreError;
use pointsman_engine::Engine;

use crate::Raw;

/// How many events are read at once.
const PAGE: usize = 256;

/// The events of the journal, in order, without a gap.
pub struct Watch {
    engine: Engine,
    filter: Filter,
    after: EventId,
    ready: VecDeque<Arc<pointsman_core::Event>>,
}

/// Why a watch cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Events that it has not seen were forgotten, or it began at an id that was never given out.
    #[error("the journal is torn after {0}: events that were not seen are gone")]
    Torn(EventId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Watch {
    pub(crate) fn new(engine: Engine, after: EventId, filter: Filter) -> Self {
        Self { engine, filter, after, ready: VecDeque::new() }
    }

    /// The next event, as soon as there is one; an error when the bus stops. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Raw, WatchError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Raw(event));
            }
            let observer = self.engine.observer();
            let page = observer.page(&self.filter, self.after, None, PAGE).await?;
            if page.extent.is_torn(self.after) {
                return Err(WatchError::Torn(self.after));
            }
            self.after = page.scanned.max(self.after);
            self.ready.extend(page.events);
            if self.ready.is_empty() && self.after >= page.extent.head {
                tokio::select! {
                    () = observer.matched(&self.filter, &mut self.after) => {}
                    () = observer.stopped() => return Err(StoreError::Closed.into()),
                }
            }
        }
    }

    /// The same as a stream, which ends after an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Raw, WatchError>> + Send {
        unfold(Some(self), |watch| async {
            let mut watch = watch?;
            match watch.next().await {
                Ok(event) => Some((Ok(event), Some(watch))),
                Err(fault) => Some((Err(fault), None)),
            }
        })
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("after", &self.after).field("filter", &self.filter).finish()
    }
}
