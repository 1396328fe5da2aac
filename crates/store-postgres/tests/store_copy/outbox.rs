//! Copies the receipts and keys of events emitted in SQL.

use pointsman_store::store_copy::{CopyEndpointError, TableKind};
use pointsman_store_conformance::copy::{StoreLocation as _, run_blocking};
use pointsman_store_postgres::PgStoreCopy;
use tokio::runtime::Handle;

use crate::store_location::{LocationKind, TestStoreLocation};
use crate::test_store::{TestStore, connect, emit_in_sql, find_event_of_receipt};

const EMIT_WITH_KEY: &str = "emit('record', 'r:1', '1', idempotency_key => 'once')";

#[tokio::test]
async fn receipts_are_copied_to_a_database_and_not_to_a_file() {
    let (from, to) = (
        TestStoreLocation::create_empty(LocationKind::Database).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    let store_node = TestStore::open(from.database_url()).await;
    let client = store_node.connect_client().await;
    let first = emit_in_sql(&client, EMIT_WITH_KEY).await;
    let second = emit_in_sql(&client, "emit('record', 'r:1', '2')").await;
    let events = store_node.wait_for_events(2).await;
    store_node.close().await;
    let report = from.copy_to(&to).await.unwrap();
    assert_eq!((report.differing_tables(), report.uncopied_tables()), (vec![], vec![]));

    let store_node = TestStore::open(to.database_url()).await;
    let client = store_node.connect_client().await;
    for (receipt, event) in [(first, &events[0]), (second, &events[1])] {
        assert_eq!(find_event_of_receipt(&client, receipt).await, Some(event.id));
    }
    assert_eq!(emit_in_sql(&client, EMIT_WITH_KEY).await, first);
    let third = emit_in_sql(&client, "emit('record', 'r:1', '3')").await;
    let events_after_copy = store_node.wait_for_events(3).await;
    assert_eq!(find_event_of_receipt(&client, third).await, Some(events_after_copy[2].id));
    assert_eq!(events_after_copy[2].prev, Some(events[1].id));
    store_node.close().await;

    let report = to.copy_to(&TestStoreLocation::create_empty(LocationKind::File).await).await.unwrap();
    assert_eq!(report.differing_tables(), []);
    assert_eq!(report.uncopied_tables(), [(TableKind::OutboxReceipts, 3), (TableKind::OutboxKeys, 1)]);
}

#[tokio::test]
async fn emits_at_the_target_during_a_copy_keep_their_numbers() {
    let (from, to) = (
        TestStoreLocation::create_with_sample_data(LocationKind::File).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    let (runtime, url) = (Handle::current(), to.database_url().to_owned());
    let copied = from.copy_to_with_hook_before_page(&to, 1, move || {
        runtime.block_on(async { emit_in_sql(&connect(&url).await, "emit('meanwhile')").await });
    });
    assert_eq!(copied.await.unwrap().differing_tables(), []);
    let client = connect(to.database_url()).await;
    // A manual insert with a large number must not change the sequence.
    let insert_made_up_sql = "INSERT INTO pointsman.outbox (n, type) VALUES (9000000000000000, 'made up')";
    client.batch_execute(insert_made_up_sql).await.unwrap();
    emit_in_sql(&client, "emit('after')").await;
    let numbers = client.query("SELECT n FROM pointsman.outbox ORDER BY n", &[]).await.unwrap();
    let numbers: Vec<i64> = numbers.iter().map(|row| row.get(0)).collect();
    assert_eq!(numbers, [1, 2, 9_000_000_000_000_000]);
}

#[tokio::test]
async fn a_made_up_outbox_number_does_not_exhaust_the_sequence() {
    let (from, to) = (
        TestStoreLocation::create_empty(LocationKind::Database).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    let store_node = TestStore::open(from.database_url()).await;
    let client = store_node.connect_client().await;
    let receipt = "INSERT INTO pointsman.outbox (n, type, receipt)
                   VALUES (9223372036854775807, 'a', gen_random_uuid()), (281474976710655, 'a', gen_random_uuid())";
    client.batch_execute(receipt).await.unwrap();
    store_node.wait_for_events(2).await;
    store_node.close().await;
    from.copy_to(&to).await.unwrap();
    emit_in_sql(&connect(to.database_url()).await, "emit('after')").await;
}

#[tokio::test]
async fn a_source_with_undrained_events_is_rejected() {
    let from = TestStoreLocation::create_empty(LocationKind::Database).await;
    emit_in_sql(&connect(from.database_url()).await, EMIT_WITH_KEY).await;
    let url = from.database_url().to_owned();
    let error = run_blocking(move || PgStoreCopy::open_source(&url).unwrap_err()).await;
    assert!(
        matches!(&error, CopyEndpointError::OutboxNotEmpty { events, .. } if events == "1 event"),
        "{error}"
    );
    let store_node = TestStore::open(from.database_url()).await;
    store_node.wait_for_events(1).await;
    let url = store_node.close().await;
    run_blocking(move || drop(PgStoreCopy::open_source(&url).unwrap())).await;
}
