//! Copies the receipts and keys of events emitted in SQL.

use pointsman_store::transfer::{NotReady, Section};
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_postgres::PgStoreCopy;
use tokio::runtime::Handle;

use crate::store_location::{LocationKind, StoreLocation};
use crate::test_store::{TestStore, connect, emit, event_of_receipt};

const EMIT_WITH_KEY: &str = "emit('record', 'r:1', '1', idempotency_key => 'once')";

#[tokio::test]
async fn receipts_are_copied_where_the_target_has_them() {
    let (from, to) = (
        StoreLocation::empty(LocationKind::Database).await,
        StoreLocation::empty(LocationKind::Database).await,
    );
    let store_node = TestStore::open(from.url()).await;
    let client = store_node.client().await;
    let first = emit(&client, EMIT_WITH_KEY).await;
    let second = emit(&client, "emit('record', 'r:1', '2')").await;
    let events = store_node.wait_for_events(2).await;
    store_node.close().await;
    let report = from.move_to(&to).await.unwrap();
    assert_eq!((report.differences(), report.left_behind()), (vec![], vec![]));

    let store_node = TestStore::open(to.url()).await;
    let client = store_node.client().await;
    for (receipt, event) in [(first, &events[0]), (second, &events[1])] {
        assert_eq!(event_of_receipt(&client, receipt).await, Some(event.id));
    }
    assert_eq!(emit(&client, EMIT_WITH_KEY).await, first);
    let third = emit(&client, "emit('record', 'r:1', '3')").await;
    let all = store_node.wait_for_events(3).await;
    assert_eq!(event_of_receipt(&client, third).await, Some(all[2].id));
    assert_eq!(all[2].prev, Some(events[1].id));
    store_node.close().await;

    let report = to.move_to(&StoreLocation::empty(LocationKind::File).await).await.unwrap();
    assert_eq!(report.differences(), []);
    assert_eq!(report.left_behind(), [(Section::Receipts, 3), (Section::Keys, 1)]);
}

#[tokio::test]
async fn emits_at_the_target_during_a_copy_keep_their_numbers() {
    let (from, to) =
        (StoreLocation::filled(LocationKind::File).await, StoreLocation::empty(LocationKind::Database).await);
    let (runtime, url) = (Handle::current(), to.url().to_owned());
    let moved = from.move_to_while(&to, 1, move || {
        runtime.block_on(async { emit(&connect(&url).await, "emit('meanwhile')").await });
    });
    assert_eq!(moved.await.unwrap().differences(), []);
    let client = connect(to.url()).await;
    // As a manual insert may have done.
    let made_up = "INSERT INTO pointsman.outbox (n, type) VALUES (9000000000000000, 'made up')";
    client.batch_execute(made_up).await.unwrap();
    emit(&client, "emit('after')").await;
    let numbers = client.query("SELECT n FROM pointsman.outbox ORDER BY n", &[]).await.unwrap();
    let numbers: Vec<i64> = numbers.iter().map(|row| row.get(0)).collect();
    assert_eq!(numbers, [1, 2, 9_000_000_000_000_000]);
}

#[tokio::test]
async fn a_made_up_outbox_number_does_not_exhaust_the_sequence() {
    let (from, to) = (
        StoreLocation::empty(LocationKind::Database).await,
        StoreLocation::empty(LocationKind::Database).await,
    );
    let store_node = TestStore::open(from.url()).await;
    let client = store_node.client().await;
    let receipt = "INSERT INTO pointsman.outbox (n, type, receipt)
                   VALUES (9223372036854775807, 'a', gen_random_uuid()), (281474976710655, 'a', gen_random_uuid())";
    client.batch_execute(receipt).await.unwrap();
    store_node.wait_for_events(2).await;
    store_node.close().await;
    from.move_to(&to).await.unwrap();
    emit(&connect(to.url()).await, "emit('after')").await;
}

#[tokio::test]
async fn a_source_with_undrained_events_is_rejected() {
    let from = StoreLocation::empty(LocationKind::Database).await;
    emit(&connect(from.url()).await, EMIT_WITH_KEY).await;
    let url = from.url().to_owned();
    let error = apart(move || PgStoreCopy::source(&url).unwrap_err()).await;
    assert!(matches!(&error, NotReady::Undrained { events, .. } if events == "1 event"), "{error}");
    let store_node = TestStore::open(from.url()).await;
    store_node.wait_for_events(1).await;
    let url = store_node.close().await;
    apart(move || drop(PgStoreCopy::source(&url).unwrap())).await;
}
