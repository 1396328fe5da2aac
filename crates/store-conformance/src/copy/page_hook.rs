//! Copies that run code between two pages.

use pointsman_core::store::{self, StoreError};
use pointsman_store::transfer::{Movable, MoveError, Page, Place, Report, Row, Section, transfer};

/// A copy target that calls a function before each page is written.
struct PageHook<F> {
    target: Box<dyn Movable>,
    before_page: F,
}

impl<F: FnMut() -> store::Result<()> + Send> Movable for PageHook<F> {
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
        (self.before_page)()?;
        self.target.write(section, rows, note)
    }

    fn finish(&mut self) -> store::Result<bool> {
        self.target.finish()
    }
}

/// Copies at most `pages` pages, then fails.
pub(super) fn copy_at_most_pages(
    source: &mut dyn Movable,
    target: Box<dyn Movable>,
    mut pages: usize,
) -> Result<Report, MoveError> {
    let page = move || {
        let some = pages.checked_sub(1);
        pages = some.ok_or_else(|| StoreError::Unavailable("cut off".into()))?;
        Ok(())
    };
    transfer(source, &mut PageHook { target, before_page: page }, &mut |_| {})
}

/// Copies and runs `action` before the given page (the first is 1) is written.
pub(super) fn copy_with_hook(
    source: &mut dyn Movable,
    target: Box<dyn Movable>,
    page: usize,
    action: impl FnOnce() + Send,
) -> Result<Report, MoveError> {
    let (mut pages, mut action) = (0, Some(action));
    let before = || {
        pages += 1;
        if pages == page
            && let Some(action) = action.take()
        {
            action();
        }
        Ok(())
    };
    let moved = transfer(source, &mut PageHook { target, before_page: before }, &mut |_| {});
    assert!(action.is_none(), "there was no page {page}: {moved:?}");
    moved
}
