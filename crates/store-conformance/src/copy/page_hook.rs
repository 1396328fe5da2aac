//! Copies that run code between two pages.

use pointsman_core::store::{self, StoreError};
use pointsman_store::store_copy::{
    CopyCursor, CopyEndpoint, CopyError, CopyPage, CopyReport, CopyRow, TableKind, copy_store,
};

/// A copy target that calls a function before each page is written.
struct PageHook<F> {
    target: Box<dyn CopyEndpoint>,
    before_page: F,
}

impl<F: FnMut() -> store::Result<()> + Send> CopyEndpoint for PageHook<F> {
    fn count_rows(&mut self, section: TableKind) -> store::Result<Option<u64>> {
        self.target.count_rows(section)
    }

    fn read_page(&mut self, section: TableKind, after: Option<&CopyCursor>) -> store::Result<CopyPage> {
        self.target.read_page(section, after)
    }

    fn count_outbox_events(&mut self) -> store::Result<u64> {
        self.target.count_outbox_events()
    }

    fn is_unchanged(&mut self) -> store::Result<bool> {
        self.target.is_unchanged()
    }

    fn read_progress(&mut self) -> store::Result<Option<String>> {
        self.target.read_progress()
    }

    fn write_rows(&mut self, section: TableKind, rows: Vec<CopyRow>, note: &str) -> store::Result<bool> {
        (self.before_page)()?;
        self.target.write_rows(section, rows, note)
    }

    fn finish_copy(&mut self) -> store::Result<bool> {
        self.target.finish_copy()
    }
}

/// Copies at most `pages` pages, then fails.
pub(super) fn copy_at_most_pages(
    source: &mut dyn CopyEndpoint,
    target: Box<dyn CopyEndpoint>,
    mut pages: usize,
) -> Result<CopyReport, CopyError> {
    let page = move || {
        let some = pages.checked_sub(1);
        pages = some.ok_or_else(|| StoreError::Unavailable("cut off".into()))?;
        Ok(())
    };
    copy_store(source, &mut PageHook { target, before_page: page }, &mut |_| {})
}

/// Copies and runs `action` before the given page (the first is 1) is written.
pub(super) fn copy_with_hook(
    source: &mut dyn CopyEndpoint,
    target: Box<dyn CopyEndpoint>,
    page: usize,
    action: impl FnOnce() + Send,
) -> Result<CopyReport, CopyError> {
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
    let moved = copy_store(source, &mut PageHook { target, before_page: before }, &mut |_| {});
    assert!(action.is_none(), "there was no page {page}: {moved:?}");
    moved
}
