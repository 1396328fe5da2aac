//! Servers and other copies that use the source or the target during a copy.

use std::time::SystemTime;

use pointsman_core::Timestamp;
use pointsman_store::store_copy::{CopyError, TableKind};
use tokio::runtime::Handle;

use super::interrupted::is_refused_as_unfinished_copy;
use super::{StoreLocation, run_blocking};
use crate::fixture::*;

pub async fn a_server_aborts_the_copy_if_it_joins_the_target_before_the_first_page<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    for (page, joins) in [(1, true), (5, false)] {
        let target = L::create_empty(L::TESTED_KIND).await;
        let store = target.open(START_TIME).await;
        let (runtime, server) = (Handle::current(), store.clone());
        let copied = source.copy_to_with_hook_before_page(&target, page, move || {
            // Once a page is written, a server that had the target open finds an incomplete store and cannot join.
            let joined = runtime.block_on(server.join_node("meanwhile", START_TIME));
            assert_eq!(joined.is_ok(), joins, "{joined:?}");
        });
        match copied.await {
            Ok(report) => assert!(!joins && report.differing_tables().is_empty(), "{report:?}"),
            Err(error) => assert!(joins && matches!(error, CopyError::TargetWrittenDuringCopy), "{error:?}"),
        }
        store.close();
    }
}

pub async fn a_copy_stops_if_another_copy_writes_to_its_target_first<L: StoreLocation>() {
    let target = copy_into_concurrently_written_target::<L>().await;
    let handlers =
        run_blocking(move || expect_ok(target.open_target().count_rows(TableKind::Handlers))).await;
    assert_eq!(handlers, Some(0), "the second copy leaves nothing");
}

/// Two copies find the target empty, and the other one writes first. Returns the target.
pub async fn copy_into_concurrently_written_target<L: StoreLocation>() -> L {
    let (source, target) =
        (L::create_with_sample_data(L::OTHER_KIND).await, L::create_empty(L::TESTED_KIND).await);
    let to = target.clone();
    let mut other = run_blocking(move || to.open_target()).await;
    let copied = source.copy_to_with_hook_before_page(&target, 1, move || {
        assert!(expect_ok(other.write_rows_and_progress(TableKind::NamedTexts, vec![], "another note")));
    });
    let copied = copied.await;
    assert!(matches!(copied, Err(CopyError::TargetWrittenDuringCopy)), "{copied:?}");
    target
}

pub async fn a_copy_fails_if_its_source_is_written_to_meanwhile<L: StoreLocation>() {
    let (source, target) =
        (L::create_with_sample_data(L::TESTED_KIND).await, L::create_empty(L::OTHER_KIND).await);
    let store = source.open(START_TIME).await;
    let (runtime, writer) = (Handle::current(), store.clone());
    let copied = source.copy_to_with_hook_before_page(&target, 1, move || {
        expect_ok(runtime.block_on(writer.join_node("meanwhile", START_TIME)));
    });
    let copied = copied.await;
    assert!(matches!(copied, Err(CopyError::SourceWrittenDuringCopy)), "{copied:?}");
    store.close();
    assert!(is_refused_as_unfinished_copy(&target).await, "the target stays closed");
}

pub async fn a_store_with_a_live_server_cannot_be_opened_for_a_copy<L: StoreLocation>() {
    let location = L::create_empty(L::TESTED_KIND).await;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = Timestamp::MIN.plus(since.expect("it is later than 1970"));
    let store = location.open(now).await;
    let node = expect_ok(store.join_node("server-1", now).await);
    for open in [L::try_open_source, L::try_open_target] {
        let at = location.clone();
        let refused = run_blocking(move || open(&at).map(drop)).await;
        let published = refused.expect_err("a server has it").to_string();
        assert!(published.contains(" is in use by server-1; stop the servers first"), "{published}");
        assert!(published.contains("gone a minute after"), "{published}");
    }
    expect_ok(store.remove_node(node, now).await);
    store.close();
    for open in [L::open_source, L::open_target] {
        let at = location.clone();
        run_blocking(move || drop(open(&at))).await;
    }
}
