//! Transactions of a store copy: they write what the writer would have written.

use pointsman_store::error::Result;
use pointsman_store::invalidation::CommitVersion;
use pointsman_store::tables::ReadSet;

use super::RedisTables;
use crate::store_state::StoreState;

impl RedisTables {
    /// Begins a page; returns false if another commit happened since this one.
    pub(crate) fn begin_copy_page(&self, since: CommitVersion) -> Result<bool> {
        self.begin(ReadSet::default())?;
        if self.store_state.borrow().commit_version != since {
            self.roll_back();
            return Ok(false);
        }
        // Nodes with caches read everything again, and find an incomplete copy.
        self.mark_registry_changed();
        Ok(true)
    }

    /// Commits the page; returns the commit version.
    pub(crate) fn commit_copy_page(&self) -> Result<CommitVersion> {
        self.commit()?;
        Ok(self.store_state.borrow().commit_version)
    }

    /// Changes the store state.
    pub(crate) fn update_store_state(&self, change: impl FnOnce(&mut StoreState)) {
        change(&mut self.store_state.borrow_mut());
    }
}
