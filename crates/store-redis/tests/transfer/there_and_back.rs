//! What was moved is the same, and goes on.

use pointsman_store::transfer::{Movable, transfer};
use pointsman_store_conformance::moving::travels::travels;
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::RedisCluster;

use crate::lair::{Kind, Lair};

/// From a file to Redis, to PostgreSQL, to Redis again, and home.
const ROUND: [Kind; 5] = [Kind::File, Kind::Keys, Kind::Database, Kind::Keys, Kind::File];

#[tokio::test]
async fn everything_is_the_same_at_every_place_of_a_round_and_goes_on_at_home() {
    travels::<Lair>(&ROUND, 4).await;
}

#[tokio::test]
async fn everything_goes_on_on_redis_wherever_it_came_from() {
    travels::<Lair>(&ROUND, 3).await;
}

#[tokio::test]
async fn what_began_on_redis_goes_on_on_postgresql() {
    travels::<Lair>(&[Kind::Keys, Kind::Database], 1).await;
}

#[tokio::test]
async fn a_cluster_is_moved_to_and_from() {
    let (file, back) = (Lair::filled(Kind::File).await, Lair::empty(Kind::File).await);
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
