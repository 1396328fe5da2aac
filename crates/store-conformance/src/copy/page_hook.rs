//! Copies that run code before a page is written.

use pointsman_core::store::{StoreError, StoreResult};
use pointsman_store::store_copy::{
    ComparisonReport, CopyCursor, CopyEndpoint, CopyError, CopyPage, CopyRow, TableKind, copy_store,
};

/// A copy target that calls a function before each page is written.
struct HookedCopyTarget<F> {
    target: Box<dyn CopyEndpoint>,
    before_page_write: F,
}

impl<F: FnMut() -> StoreResult<()> + Send> CopyEndpoint for HookedCopyTarget<F> {
    fn count_rows(&mut self, table: TableKind) -> StoreResult<Option<u64>> {
        self.target.count_rows(table)
    }

    fn read_page(&mut self, table: TableKind, after: Option<&CopyCursor>) -> StoreResult<CopyPage> {
        self.target.read_page(table, after)
    }

    fn count_outbox_events(&mut self) -> StoreResult<u64> {
        self.target.count_outbox_events()
    }

    fn is_unchanged_since_open(&mut self) -> StoreResult<bool> {
        self.target.is_unchanged_since_open()
    }

    fn read_copy_progress(&mut self) -> StoreResult<Option<String>> {
        self.target.read_copy_progress()
    }

    fn write_rows_and_progress(
        &mut self,
        table: TableKind,
        rows: Vec<CopyRow>,
        note: &str,
    ) -> StoreResult<bool> {
        (self.before_page_write)()?;
        self.target.write_rows_and_progress(table, rows, note)
    }

    fn finish_copy(&mut self) -> StoreResult<bool> {
        self.target.finish_copy()
    }
}

/// Copies at most `pages` pages, then fails.
pub(super) fn copy_at_most_pages_then_fail(
    source: &mut dyn CopyEndpoint,
    target: Box<dyn CopyEndpoint>,
    mut pages: usize,
) -> Result<ComparisonReport, CopyError> {
    let count_page = move || {
        let pages_left = pages.checked_sub(1);
        pages = pages_left.ok_or_else(|| StoreError::unavailable("cut off"))?;
        Ok(())
    };
    copy_store(source, &mut HookedCopyTarget { target, before_page_write: count_page }, &mut |_| {})
}

/// Copies and runs `action` before the given page (the first is 1) is written.
pub(super) fn copy_with_hook_before_page(
    source: &mut dyn CopyEndpoint,
    target: Box<dyn CopyEndpoint>,
    page: usize,
    action: impl FnOnce() + Send,
) -> Result<ComparisonReport, CopyError> {
    let (mut current_page, mut action) = (0, Some(action));
    let before_page_write = || {
        current_page += 1;
        if current_page == page
            && let Some(action) = action.take()
        {
            action();
        }
        Ok(())
    };
    let copied = copy_store(source, &mut HookedCopyTarget { target, before_page_write }, &mut |_| {});
    assert!(action.is_none(), "there was no page {page}: {copied:?}");
    copied
}
