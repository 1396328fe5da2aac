//! Moves that are cut off.

use pointsman_core::store::{self, StoreError};
use pointsman_store::transfer::{Movable, MoveError, Page, Place, Report, Row, Section, transfer};

/// Something is done before each page is written.
pub struct Before<F> {
    pub target: Box<dyn Movable>,
    pub page: F,
}

impl<F: FnMut() -> store::Result<()> + Send> Movable for Before<F> {
    fn count(&mut self, section: Section) -> store::Result<Option<u64>> {
        self.target.count(section)
    }

    fn read(&mut self, section: Section, after: Option<&Place>) -> store::Result<Page> {
        self.target.read(section, after)
    }

    fn waiting(&mut self) -> store::Result<u64> {
        self.target.waiting()
    }

    fn is_unchanged(&mut self) -> store::Result<bool> {
        self.target.is_unchanged()
    }

    fn note(&mut self) -> store::Result<Option<String>> {
        self.target.note()
    }

    fn write(&mut self, section: Section, rows: Vec<Row>, note: &str) -> store::Result<bool> {
        (self.page)()?;
        self.target.write(section, rows, note)
    }

    fn finish(&mut self) -> store::Result<bool> {
        self.target.finish()
    }
}

impl<F> std::fmt::Debug for Before<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Before").finish_non_exhaustive()
    }
}

/// Moves so many pages at most.
pub fn move_pages(
    source: &mut dyn Movable,
    target: Box<dyn Movable>,
    mut pages: usize,
) -> Result<Report, MoveError> {
    let page = move || {
        let some = pages.checked_sub(1);
        pages = some.ok_or_else(|| StoreError::Unavailable("cut off".into()))?;
        Ok(())
    };
    transfer(source, &mut Before { target, page }, &mut |_| {})
}
