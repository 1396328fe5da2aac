//! A transaction of whoever moves a store here: what it writes is what the writer would have written.

use pointsman_store::commits::Point;
use pointsman_store::error::Result;
use pointsman_store::tables::Foreseen;

use super::RedisTables;
use crate::store_state::StoreState;

impl RedisTables {
    /// Begins one, unless somebody has written since this commit.
    pub(crate) fn begin_copy_page(&self, since: Point) -> Result<bool> {
        self.begin(Foreseen::default())?;
        if self.store_state.borrow().commit_version != since {
            self.roll_back();
            return Ok(false);
        }
        // Whoever remembers anything of the tables reads it again, and finds that they are a part of a store.
        self.mark_registry_changed();
        Ok(true)
    }

    /// Commits it; answers by which commit.
    pub(crate) fn commit_copy_page(&self) -> Result<Point> {
        self.commit()?;
        Ok(self.store_state.borrow().commit_version)
    }

    /// Changes how far everything has come.
    pub(crate) fn update_store_state(&self, change: impl FnOnce(&mut StoreState)) {
        change(&mut self.store_state.borrow_mut());
    }
}
