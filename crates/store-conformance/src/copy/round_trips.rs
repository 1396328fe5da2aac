//! A copied store is equal to the original and continues its work.

use super::continued_work::assert_work_continues;
use super::store_lists::{assert_same_lists, read_store_lists};
use super::{CopyOnReopenHarness, StoreLocation, fill_with_sample_data, sample_registration};
use crate::fixture::StoreFixture;

pub async fn a_store_copied_to_the_tested_kind_is_equal_and_continues<L: StoreLocation>() {
    assert_equal_after_copies::<L>(&[L::OTHER_KIND, L::TESTED_KIND], 1).await;
}

pub async fn a_store_copied_to_the_tested_kind_and_back_is_equal_and_continues<L: StoreLocation>() {
    assert_equal_after_copies::<L>(&[L::OTHER_KIND, L::TESTED_KIND], 2).await;
}

pub async fn a_store_copied_to_the_other_kind_is_equal_and_continues<L: StoreLocation>() {
    assert_equal_after_copies::<L>(&[L::TESTED_KIND, L::OTHER_KIND], 1).await;
}

pub async fn a_store_copied_within_its_kind_is_equal_and_continues<L: StoreLocation>() {
    assert_equal_after_copies::<L>(&[L::TESTED_KIND, L::TESTED_KIND], 2).await;
}

/// Asserts that the store is equal after each of several copies through the given kinds, and then continues its work.
pub async fn assert_equal_after_copies<L: StoreLocation>(location_kinds: &[L::Kind], copies: usize) {
    let harness = CopyOnReopenHarness::<L>::with_location_kinds(location_kinds);
    let mut fixture = StoreFixture::new(&harness, sample_registration()).await;
    fill_with_sample_data(&mut fixture).await;
    let node = fixture.node_id;
    let before = read_store_lists(&fixture, node).await;
    for _ in 0..copies {
        fixture = fixture.reopen().await;
        assert_same_lists(&read_store_lists(&fixture, node).await, &before);
    }
    assert_work_continues(fixture).await;
}
