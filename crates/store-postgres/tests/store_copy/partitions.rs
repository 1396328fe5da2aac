//! Copied rows are partitioned, and expire by partitions.

use pointsman_core::store::Store;
use pointsman_store_conformance::copy::StoreLocation as _;
use pointsman_store_conformance::copy::large_store::LargeStore;
use pointsman_store_postgres::Postgres;

use crate::store_location::{CopyHarness, LocationKind, TestStoreLocation};
use crate::test_store::connect;

const ROWS_PER_PARTITION: i64 = 1000;

async fn count_partitions(location: &TestStoreLocation, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM pg_inherits WHERE inhparent = 'pointsman.{table}'::regclass");
    connect(location.database_url()).await.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn copied_rows_fill_as_many_partitions_as_they_need() {
    let harness = CopyHarness::with_location_kinds(&[LocationKind::File, LocationKind::Database]);
    let large_store = LargeStore::new(&harness).await;
    // A new database, because other tests could not use small partitions.
    let database = TestStoreLocation::new_database();
    database.open(large_store.fixture.now).await.close();
    let set_partition_rows_sql =
        format!("INSERT INTO pointsman.meta (name, text) VALUES ('partition_rows', '{ROWS_PER_PARTITION}')");
    connect(database.database_url()).await.batch_execute(&set_partition_rows_sql).await.unwrap();
    harness.override_next_location(&database);
    let large_store = large_store.assert_survives_copy().await;
    let (journal, history) =
        (count_partitions(&database, "journal").await, count_partitions(&database, "history").await);
    // There is one partition for retained rows, and none for rows that expired before the copy.
    assert!((8..=10).contains(&journal) && (8..=10).contains(&history), "{journal} {history}");

    large_store.assert_prunes_oldest().await;
    let store = Postgres::open(database.database_url(), large_store.fixture.now).await.unwrap();
    store.database().drop_expired_partitions().await.unwrap();
    store.close();
    assert!(count_partitions(&database, "journal").await <= journal - 4);
    for table in ["history", "attempt", "log"] {
        assert!(count_partitions(&database, table).await <= history - 4, "{table}");
    }
    large_store.assert_waiting_task_runs().await;
}
