//! Reading the journal as it grows.

use pointsman_core::EventId;
use pointsman_core::journal::{Extent, Filter, Page};
use pointsman_core::store::StoreError;

/// Reads for those who follow the journal: from memory near its head, from the store behind it.
#[derive(Debug)]
pub struct Observer {
    _private: (),
}

impl Observer {
    /// What matches after `after` and up to `until`, at most `limit` and possibly fewer: read on after
    /// `page.scanned`. Does not wait. The page's extent tells whether `after` is torn.
    pub async fn page(
        &self,
        filter: &Filter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let _ = (filter, after, until, limit);
        unimplemented!()
    }

    /// The newest `limit` matches, newest first, that come after `after`.
    pub async fn newest(&self, filter: &Filter, after: EventId, limit: usize) -> Result<Page, StoreError> {
        let _ = (filter, after, limit);
        unimplemented!()
    }

    /// Where the journal begins and ends, from the store.
    pub async fn extent(&self) -> Result<Extent, StoreError> {
        unimplemented!()
    }

    /// Waits until the journal's head is beyond `id`.
    pub async fn grown(&self, id: EventId) {
        let _ = id;
        unimplemented!()
    }
}
