//! A copied store has the same contents and continues to work.

use pointsman_store::store_copy::{CopyEndpoint, copy_store};
use pointsman_store_conformance::copy::round_trips::assert_equal_after_copies;
use pointsman_store_conformance::copy::{StoreLocation as _, run_blocking};
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::RedisCluster;

use crate::store_location::{StoreKind, TestStoreLocation};

/// Copies from SQLite to Redis, PostgreSQL, Redis, and back to SQLite.
const COPY_ROUTE: [StoreKind; 5] =
    [StoreKind::Sqlite, StoreKind::Redis, StoreKind::Postgres, StoreKind::Redis, StoreKind::Sqlite];

#[tokio::test]
async fn store_is_unchanged_after_a_round_of_copies_ending_in_sqlite() {
    assert_equal_after_copies::<TestStoreLocation>(&COPY_ROUTE, 4).await;
}

#[tokio::test]
async fn copied_store_continues_on_redis() {
    assert_equal_after_copies::<TestStoreLocation>(&COPY_ROUTE, 3).await;
}

#[tokio::test]
async fn store_from_redis_continues_on_postgresql() {
    assert_equal_after_copies::<TestStoreLocation>(&[StoreKind::Redis, StoreKind::Postgres], 1).await;
}

#[tokio::test]
async fn store_can_be_copied_to_and_from_a_cluster() {
    let (file, back) = (
        TestStoreLocation::create_with_sample_data(StoreKind::Sqlite).await,
        TestStoreLocation::create_empty(StoreKind::Sqlite).await,
    );
    run_blocking(move || {
        let cluster = RedisCluster::start().unwrap();
        let copy = |from: &mut dyn CopyEndpoint, to: &mut dyn CopyEndpoint| {
            let report = copy_store(from, to, &mut |_| {}).unwrap();
            assert!(report.differing_tables().is_empty(), "{report:?}");
        };
        copy(&mut *file.open_source(), &mut RedisStoreCopy::open_target(&cluster.url()).unwrap());
        copy(&mut RedisStoreCopy::open_source(&cluster.url()).unwrap(), &mut *back.open_target());
    })
    .await;
}
