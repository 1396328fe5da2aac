//! Copies that are interrupted and continued.

use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;
use pointsman_store::store_copy::{CopyEndpoint, CopyError, CopyProgressUpdate, copy_store};

use super::page_hook::copy_with_hook_before_page;
use super::{StoreLocation, run_blocking};
use crate::fixture::START_TIME;

pub async fn a_copy_interrupted_after_every_page_can_be_completed<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    let (tested, other) = (L::create_empty(L::TESTED_KIND).await, L::create_empty(L::OTHER_KIND).await);
    assert!(copy_page_by_page(&source, &tested).await > 15);
    assert!(copy_page_by_page(&tested, &other).await > 15);
    for location in [&tested, &other] {
        assert!(!is_refused_as_unfinished_copy(location).await, "{location:?} is complete");
    }
}

/// Copies over a connection that breaks before the seventh page, and then continues the copy to the same location
/// directly.
pub async fn a_copy_continues_after_a_broken_connection<L: StoreLocation>(
    to: L,
    open_remote_target: impl FnOnce() -> Box<dyn CopyEndpoint> + Send + 'static,
    break_connection: impl FnOnce() + Send + 'static,
) {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    let from = source.clone();
    let broken = run_blocking(move || {
        copy_with_hook_before_page(&mut *from.open_source(), open_remote_target(), 7, break_connection)
    })
    .await;
    assert!(matches!(broken, Err(CopyError::WriteTarget(StoreError::Unavailable(_)))), "{broken:?}");
    let (copied, first) = run_blocking(move || {
        let mut first = None;
        let mut record_progress = |progress: CopyProgressUpdate| {
            first.get_or_insert(progress);
        };
        (copy_store(&mut *source.open_source(), &mut *to.open_target(), &mut record_progress), first)
    })
    .await;
    let report = copied.unwrap_or_else(|error| panic!("{error:?}"));
    assert!(report.differing_tables().is_empty(), "{report:?}");
    assert!(
        matches!(first, Some(CopyProgressUpdate::CopyStarted { total_rows, already_copied }) if already_copied > 6 && already_copied < total_rows),
        "{first:?}"
    );
}

/// Copies one page per call until the copy is complete. Returns the number of interruptions.
async fn copy_page_by_page<L: StoreLocation>(from: &L, to: &L) -> usize {
    let mut interruptions = 0;
    loop {
        match from.copy_at_most_pages_to(to, 1).await {
            Ok(report) => {
                assert!(report.differing_tables().is_empty(), "{report:?}");
                return interruptions;
            }
            Err(CopyError::WriteTarget(StoreError::Unavailable(reason))) => {
                assert_eq!(reason.to_string(), "cut off")
            }
            Err(error) => panic!("{error:?}"),
        }
        interruptions += 1;
        assert!(interruptions < 100, "the copy does not end");
        assert!(is_refused_as_unfinished_copy(to).await, "an incomplete store is not opened");
    }
}

/// Returns whether a store cannot be opened because a copy to it is unfinished.
pub(super) async fn is_refused_as_unfinished_copy<L: StoreLocation>(location: &L) -> bool {
    match location.try_open(START_TIME).await {
        Ok(store) => {
            store.close();
            false
        }
        Err(error) => ErrorChain(&*error).to_string().contains("a move to it has not ended"),
    }
}
