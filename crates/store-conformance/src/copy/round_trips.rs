//! What was moved is the same, and goes on.

use super::continued_work::goes_on;
use super::list_snapshot::{assert_same, lists};
use super::{CopyingHarness, StoreLocation, fill, plan};
use crate::fixture::StoreFixture;

pub async fn a_store_copied_to_the_tested_kind_is_equal_and_continues<L: StoreLocation>() {
    travels::<L>(&[L::ELSEWHERE, L::HERE], 1).await;
}

pub async fn a_store_copied_there_and_back_is_equal_and_continues<L: StoreLocation>() {
    travels::<L>(&[L::ELSEWHERE, L::HERE], 2).await;
}

pub async fn a_store_copied_to_the_other_kind_is_equal_and_continues<L: StoreLocation>() {
    travels::<L>(&[L::HERE, L::ELSEWHERE], 1).await;
}

pub async fn a_store_copied_within_its_kind_is_equal_and_continues<L: StoreLocation>() {
    travels::<L>(&[L::HERE, L::HERE], 2).await;
}

/// Is the same after each of so many moves along a way, and then goes on.
pub async fn travels<L: StoreLocation>(way: &[L::Kind], moves: usize) {
    let movers = CopyingHarness::<L>::along(way);
    let mut world = StoreFixture::new(&movers, plan()).await;
    fill(&mut world).await;
    let node = world.node;
    let before = lists(&world, node).await;
    for _ in 0..moves {
        world = world.reopen().await;
        assert_same(&lists(&world, node).await, &before);
    }
    goes_on(world).await;
}
