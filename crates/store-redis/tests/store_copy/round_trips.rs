//! What was moved is the same, and goes on.

use pointsman_store::transfer::{Movable, transfer};
use pointsman_store_conformance::moving::travels::travels;
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::RedisCluster;

use crate::store_location::{StoreKind, StoreLocation};

/// From a file to Redis, to PostgreSQL, to Redis again, and home.
const ROUND: [StoreKind; 5] =
    [StoreKind::Sqlite, StoreKind::Redis, StoreKind::Postgres, StoreKind::Redis, StoreKind::Sqlite];

#[tokio::test]
async fn store_is_unchanged_after_a_round_of_copies_ending_in_sqlite() {
    travels::<StoreLocation>(&ROUND, 4).await;
}

#[tokio::test]
async fn copied_store_continues_on_redis() {
    travels::<StoreLocation>(&ROUND, 3).await;
}

#[tokio::test]
async fn store_from_redis_continues_on_postgresql() {
    travels::<StoreLocation>(&[StoreKind::Redis, StoreKind::Postgres], 1).await;
}

#[tokio::test]
async fn store_can_be_copied_to_and_from_a_cluster() {
    let (file, back) =
        (StoreLocation::filled(StoreKind::Sqlite).await, StoreLocation::empty(StoreKind::Sqlite).await);
    apart(move || {
        let cluster = RedisCluster::start().unwrap();
        let moved = |from: &mut dyn Movable, to: &mut dyn Movable| {
            let report = transfer(from, to, &mut |_| {}).unwrap();
            assert!(report.differences().is_empty(), "{report:?}");
        };
        moved(&mut *file.source(), &mut RedisStoreCopy::target(&cluster.url()).unwrap());
        moved(&mut RedisStoreCopy::source(&cluster.url()).unwrap(), &mut *back.target());
    })
    .await;
}
