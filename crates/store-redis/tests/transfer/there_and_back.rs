//! What was moved is the same, and goes on.

use pointsman_store::transfer::{Movable, transfer};
use pointsman_store_conformance::moving::{assert_same, fill, goes_on, lists, plan};
use pointsman_store_conformance::world::*;
use pointsman_store_redis::RedisMove;
use pointsman_testing::RedisCluster;

use crate::cut::filled;
use crate::lair::{Kind, Movers, apart};

/// From a file to Redis, to PostgreSQL, to Redis again, and home.
const ROUND: [Kind; 5] = [Kind::File, Kind::Keys, Kind::Database, Kind::Keys, Kind::File];

/// Is the same after each of so many moves, and then goes on.
async fn travels(movers: Movers, moves: usize) {
    let mut world = World::new(&movers, plan()).await;
    fill(&mut world).await;
    let node = world.node;
    let before = lists(&world, node).await;
    for _ in 0..moves {
        world = world.reopen().await;
        assert_same(&lists(&world, node).await, &before);
    }
    goes_on(world).await;
}

#[tokio::test]
async fn everything_is_the_same_at_every_place_of_a_round_and_goes_on_at_home() {
    travels(Movers::along(&ROUND), 4).await;
}

#[tokio::test]
async fn everything_goes_on_on_redis() {
    travels(Movers::along(&ROUND), 1).await;
    travels(Movers::along(&ROUND), 3).await;
}

#[tokio::test]
async fn what_began_on_redis_goes_on_elsewhere() {
    travels(Movers::along(&[Kind::Keys, Kind::File]), 1).await;
    travels(Movers::along(&[Kind::Keys, Kind::Database]), 1).await;
    travels(Movers::along(&[Kind::Keys, Kind::Keys]), 2).await;
}

#[tokio::test]
async fn a_cluster_is_moved_to_and_from() {
    let (movers, file) = filled(&[Kind::File]).await;
    let back = movers.file();
    apart(move || {
        let cluster = RedisCluster::start().unwrap();
        let moved = |from: &mut dyn Movable, to: &mut dyn Movable| {
            let report = transfer(from, to, &mut |_| {}).unwrap();
            assert!(report.differences().is_empty(), "{report:?}");
        };
        moved(&mut *file.source(), &mut RedisMove::target(&cluster.url()).unwrap());
        moved(&mut RedisMove::source(&cluster.url()).unwrap(), &mut *back.target());
    })
    .await;
}
