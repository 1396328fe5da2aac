//! A server that is made to forget its scripts.

use pointsman_testing::{Redis, RedisSettings};
use tokio::task::block_in_place;

use crate::common::invariants::Watch;
use crate::common::load::Load;
use crate::common::place::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scripts_that_are_forgotten_at_any_time_are_taught_again_unnoticed() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let one = Load::start(&place, &place.url, 3).await;
    let other = Load::start(&place, &place.url, 3).await;
    let watch = Watch::start(&place);
    let mut hand = place.connect();
    for _ in 0..40 {
        one.acknowledged(5).await;
        block_in_place(|| hand.ask(&["SCRIPT", "FLUSH"]));
    }
    one.acknowledged(50).await;
    other.acknowledged(50).await;
    assert_eq!((one.refusals(), other.refusals()), (0, 0));
    Load::end([one, other], &place).await;
    watch.end();
}
