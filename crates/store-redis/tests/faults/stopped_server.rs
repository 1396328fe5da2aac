//! A server that stops and is started again.

use pointsman_testing::{RedisServer, RedisSettings};
use tokio::task::block_in_place;

use crate::common::invariants::InvariantMonitor;
use crate::common::load::Load;
use crate::common::redis_location::RedisLocation;

const ROUND_COUNT: usize = 4;
/// Producers of each node.
const PRODUCERS_PER_NODE: u64 = 4;

/// Runs two nodes under load on a server that is stopped and started repeatedly, and verifies the journal.
async fn assert_no_acknowledged_event_is_lost(stop: fn(&RedisServer) -> anyhow::Result<()>) {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let one = Load::start(&location, &location.url, PRODUCERS_PER_NODE).await;
    let other = Load::start(&location, &location.url, PRODUCERS_PER_NODE).await;
    let monitor = InvariantMonitor::start(&location);
    for _ in 0..ROUND_COUNT {
        one.wait_for_acknowledged(80).await;
        other.wait_for_acknowledged(80).await;
        block_in_place(|| stop(&server)).unwrap();
        tokio::join!(
            one.wait_for_refused(PRODUCERS_PER_NODE as usize),
            other.wait_for_refused(PRODUCERS_PER_NODE as usize)
        );
        block_in_place(|| server.start_again()).unwrap();
    }
    one.wait_for_acknowledged(80).await;
    other.wait_for_acknowledged(80).await;
    Load::stop_and_verify([one, other], &location).await;
    monitor.stop_and_assert_no_violations();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    assert_no_acknowledged_event_is_lost(RedisServer::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_restarted() {
    assert_no_acknowledged_event_is_lost(RedisServer::stop).await;
}
