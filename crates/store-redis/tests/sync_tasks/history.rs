//! Retention of the tasks of a source and collection.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_store_conformance::fixture::{
    KEEP_EVERYTHING, RegistrationBuilder, StoreFixture, info_log_line,
};

use crate::SyncTaskHarness;

const KEEP_NOTHING: Retention = Retention { max_count: 0, max_age: Duration::ZERO };

#[tokio::test(flavor = "multi_thread")]
async fn each_source_and_collection_has_its_own_history() {
    let harness = SyncTaskHarness::new();
    // The ids of their tasks all begin with `a_x_y_` or `a_x_`.
    let registration =
        RegistrationBuilder::default().collection("a/x", 1).collection("a/x_y", 1).collection("a_x/y", 1);
    let mut fixture = StoreFixture::new(&harness, registration).await;
    let mut reader = harness.reader();
    let mut expected = [vec![], vec![], vec![]];
    for n in 0..3 {
        for (pair, pair_history) in ["a/x", "a/x_y", "a_x/y"].iter().zip(&mut expected) {
            pair_history
                .push((fixture.request_new_collection_run(pair).await.to_string(), 1_700_000_000 + n * 10));
        }
        fixture.run_all_ready_tasks().await;
        fixture.advance_clock(10);
    }
    let [x, x_y, y] = expected;
    assert_eq!(reader.read_history("a", "x"), x);
    assert_eq!(reader.read_history("a", "x_y"), x_y);
    assert_eq!(reader.read_history("a_x", "y"), y);
    assert_eq!(reader.read_history("a_x", "x"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_tasks_leave_no_keys() {
    let harness = SyncTaskHarness::new();
    let registration =
        RegistrationBuilder::default().collection("shop/orders", 5).collection("shop/items", 5);
    let mut fixture = StoreFixture::new(&harness, registration).await;
    let mut reader = harness.reader();
    for _ in 0..3 {
        fixture.request_new_collection_run("shop/orders").await;
        let claimed = fixture.claim_one().await;
        let line = pointsman_core::store::AttemptLogLine {
            task_seq: claimed.seq,
            fence: claimed.fence,
            line: info_log_line(fixture.now, "working"),
        };
        fixture.store.append_log_lines(vec![line]).await.unwrap();
        fixture.succeed(&claimed).await;
        fixture.advance_clock(10);
    }
    let active = fixture.request_new_collection_run("shop/items").await;
    assert_eq!(reader.read_history("shop", "orders").len(), 3);
    assert_eq!(reader.0.list_keys("sync_tasks#*:logs").len(), 3);
    let pruned = fixture
        .prune_events_and_tasks(KEEP_EVERYTHING, Retention { max_count: 1, max_age: KEEP_EVERYTHING.max_age })
        .await;
    assert_eq!((pruned.deleted_task_count, reader.read_history("shop", "orders").len()), (2, 1));
    assert_eq!(reader.0.list_keys("sync_tasks#*:logs").len(), 1);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_NOTHING).await;
    let mut remaining = vec![
        "sync_tasks_index:source#shop:collection#items".to_string(),
        "sync_tasks_priority_queue".to_string(),
        "sync_tasks_sequence".to_string(),
        format!("sync_tasks#{active}"),
    ];
    remaining.sort();
    assert_eq!(reader.0.list_keys("sync_tasks*"), remaining);
}
