//! A transaction of whoever moves a store here: what it writes is what the writer would have written.

use pointsman_store::commits::Point;
use pointsman_store::error::Result;
use pointsman_store::tables::Foreseen;

use super::RedisTables;
use crate::standing::Standing;

impl RedisTables {
    /// Begins one, unless somebody has written since this commit.
    pub(crate) fn begin_page(&self, since: Point) -> Result<bool> {
        self.begin(Foreseen::default())?;
        if self.standing.borrow().point != since {
            self.roll_back();
            return Ok(false);
        }
        // Whoever remembers anything of the tables reads it again, and finds that they are a part of a store.
        self.registry_changes();
        Ok(true)
    }

    /// Commits it; answers by which commit.
    pub(crate) fn commit_page(&self) -> Result<Point> {
        self.commit()?;
        Ok(self.standing.borrow().point)
    }

    /// Changes how far everything has come.
    pub(crate) fn change_standing(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.standing.borrow_mut());
    }
}
