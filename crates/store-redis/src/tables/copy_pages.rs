//! Transactions of a store copy: they write what the writer would have written.

use pointsman_store::error::TableResult;
use pointsman_store::invalidation::CommitVersion;
use pointsman_store::tables::ReadSet;

use super::RedisTables;
use crate::store_state::StoreState;

impl RedisTables {
    /// Begins the transaction of a page; returns false if the last commit is not the expected one.
    pub(crate) fn begin_copy_page(&mut self, expected_version: CommitVersion) -> TableResult<bool> {
        self.begin(ReadSet::default())?;
        if self.store_state.commit_version != expected_version {
            self.roll_back();
            return Ok(false);
        }
        // A node that has the store open then reads everything again, and finds the progress of the unfinished copy.
        self.mark_registry_changed();
        Ok(true)
    }

    /// Commits the page and returns the version of this commit.
    pub(crate) fn commit_copy_page(&mut self) -> TableResult<CommitVersion> {
        self.commit()?;
        Ok(self.store_state.commit_version)
    }

    /// Changes the store state.
    pub(crate) fn update_store_state(&mut self, change: impl FnOnce(&mut StoreState)) {
        change(&mut self.store_state);
    }
}
