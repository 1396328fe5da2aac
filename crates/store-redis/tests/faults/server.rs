//! A server that goes away and comes back.

use pointsman_testing::{Redis, RedisSettings};
use tokio::task::block_in_place;

use crate::common::invariants::Watch;
use crate::common::load::Load;
use crate::common::place::Place;

const ROUNDS: usize = 4;
/// On each node.
const ACTORS: u64 = 4;

/// Two nodes, on a server that goes away.
async fn survives(go: fn(&Redis) -> anyhow::Result<()>) {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let one = Load::start(&place, &place.url, ACTORS).await;
    let other = Load::start(&place, &place.url, ACTORS).await;
    let watch = Watch::start(&place);
    for _ in 0..ROUNDS {
        one.acknowledged(80).await;
        other.acknowledged(80).await;
        block_in_place(|| go(&server)).unwrap();
        tokio::join!(one.refused(ACTORS as usize), other.refused(ACTORS as usize));
        block_in_place(|| server.start_again()).unwrap();
    }
    one.acknowledged(80).await;
    other.acknowledged(80).await;
    Load::end([one, other], &place).await;
    watch.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    survives(Redis::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_restarted() {
    survives(Redis::stop).await;
}
