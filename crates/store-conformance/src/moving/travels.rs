//! What was moved is the same, and goes on.

use super::lists::{assert_same, lists};
use super::onward::goes_on;
use super::{Lair, Movers, fill, plan};
use crate::world::World;

pub async fn everything_is_the_same_here_and_goes_on<L: Lair>() {
    travels::<L>(&[L::ELSEWHERE, L::HERE], 1).await;
}

pub async fn everything_is_the_same_when_it_comes_back_and_goes_on<L: Lair>() {
    travels::<L>(&[L::ELSEWHERE, L::HERE], 2).await;
}

pub async fn what_began_here_goes_on_elsewhere<L: Lair>() {
    travels::<L>(&[L::HERE, L::ELSEWHERE], 1).await;
}

pub async fn what_began_here_goes_on_at_other_places_of_its_kind<L: Lair>() {
    travels::<L>(&[L::HERE, L::HERE], 2).await;
}

/// Is the same after each of so many moves along a way, and then goes on.
pub async fn travels<L: Lair>(way: &[L::Kind], moves: usize) {
    let movers = Movers::<L>::along(way);
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
