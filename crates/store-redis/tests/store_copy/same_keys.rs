//! A copy writes the same keys as a node would have.

use pointsman_core::store::{FinishedAttempt, TaskFilter};
use pointsman_store_conformance::copy::{
    StoreLocation as _, fill_with_sample_data, run_blocking, sample_registration,
};
use pointsman_store_conformance::fixture::*;

use crate::key_dump::assert_same_keys_and_contents;
use crate::store_location::{AnyStoreCopyOnReopenHarness, StoreKind, TestStoreLocation, run_redis_command};

/// Fills a store on Redis and copies it through stores of these kinds; returns the first and the last location.
async fn copy_through(kinds: &[StoreKind]) -> (TestStoreLocation, TestStoreLocation) {
    let harness = AnyStoreCopyOnReopenHarness::with_location_kinds(kinds);
    let mut fixture = StoreFixture::new(&harness, sample_registration()).await;
    fill_with_sample_data(&mut fixture).await;
    for name in ["shop/orders", "shop/customers"] {
        fixture.request_collection_run(name).await;
    }
    for task in fixture.claim_for_handlers(&["shop"], 1).await {
        let logs =
            vec![info_log_line(fixture.now, "begun"), info_log_line(fixture.seconds_from_now(1), "half")];
        fixture
            .finish_attempt(FinishedAttempt {
                log_lines: logs,
                ..finished_attempt(&task, retryable_failure())
            })
            .await
            .unwrap();
    }
    let first = harness.close_current_store();
    let mut from = first.clone();
    for kind in &kinds[1..] {
        let to = TestStoreLocation::create_empty(*kind).await;
        assert_eq!(from.copy_to(&to).await.unwrap().differing_tables(), []);
        from = to;
    }
    (first, from)
}

#[tokio::test]
async fn keys_are_unchanged_after_a_round_trip_through_sqlite() {
    let (first, last) = copy_through(&[StoreKind::Redis, StoreKind::Sqlite, StoreKind::Redis]).await;
    run_blocking(move || {
        assert!(assert_same_keys_and_contents(first.key_prefix(), last.key_prefix(), &[]) > 50)
    })
    .await;
}

#[tokio::test]
async fn keys_are_unchanged_after_a_copy_within_redis() {
    let (first, last) = copy_through(&[StoreKind::Redis, StoreKind::Redis]).await;
    run_blocking(move || {
        assert!(assert_same_keys_and_contents(first.key_prefix(), last.key_prefix(), &[]) > 50)
    })
    .await;
}

#[tokio::test]
async fn copy_writes_the_documented_keys() {
    let harness = AnyStoreCopyOnReopenHarness::with_location_kinds(&[StoreKind::Sqlite]);
    let mut fixture = StoreFixture::new(&harness, sample_registration()).await;
    fill_with_sample_data(&mut fixture).await;
    let last = fixture.read_journal_range().await.newest_event_id;
    let run = fixture
        .list_tasks(&TaskFilter::default())
        .await
        .into_iter()
        .find(|task| task.id.as_str().contains("shop"));
    let run = run.unwrap();
    let tasks = fixture.list_tasks(&TaskFilter::default()).await;
    let mut logged = None;
    for task in &tasks {
        let messages = fixture.read_log_messages(&task.id).await;
        if !messages.is_empty() {
            logged = Some((task.id.clone(), messages.len()));
        }
    }
    let (logged, lines) = logged.unwrap();
    let object = fixture.emit(new_event("report").with_key("daily")).await;
    assert!(object.id > last);
    let (file, keys) = (harness.close_current_store(), TestStoreLocation::empty_redis());
    file.copy_to(&keys).await.unwrap();
    run_blocking(move || {
        assert_eq!(
            run_redis_command(&["GET", &keys.prefixed_key("next.event.id")]).text(),
            Some(object.id.to_string())
        );
        assert_eq!(
            run_redis_command(&["GET", &keys.prefixed_key("daily:last.event.id")]).text(),
            Some(object.id.to_string())
        );
        let hash = keys.prefixed_key(&format!("sync_tasks#{}", run.id));
        assert_eq!(run_redis_command(&["HGET", &hash, "id"]).text(), Some(run.id.to_string()));
        assert_eq!(run_redis_command(&["HGET", &hash, "source"]).text().as_deref(), Some("shop"));
        let index = keys.prefixed_key("sync_tasks_index:source#shop:collection#orders");
        assert!(!run_redis_command(&["ZRANGE", &index, "0", "-1"]).texts().is_empty());
        let log = keys.prefixed_key(&format!("sync_tasks#{logged}:logs"));
        assert_eq!(run_redis_command(&["ZCARD", &log]).number(), Some(lines as i64));
    })
    .await;
}
