//! What was moved is the same, and goes on.

use pointsman_store_conformance::moving::{assert_same, fill, goes_on, lists, plan};
use pointsman_store_conformance::world::*;

use crate::lair::Movers;

#[tokio::test]
async fn everything_is_the_same_on_postgresql_and_goes_on() {
    let movers = Movers::new();
    let mut world = World::new(&movers, plan()).await;
    fill(&mut world).await;
    let before = lists(&world, world.node).await;
    let node = world.node;
    let world = world.reopen().await;
    assert_same(&lists(&world, node).await, &before);
    goes_on(world).await;
}

#[tokio::test]
async fn everything_is_the_same_when_it_comes_back_and_goes_on() {
    let movers = Movers::new();
    let mut world = World::new(&movers, plan()).await;
    fill(&mut world).await;
    let node = world.node;
    let before = lists(&world, node).await;
    let world = world.reopen().await;
    let world = world.reopen().await;
    assert_same(&lists(&world, node).await, &before);
    goes_on(world).await;
}
