//! A server that is stopped and started again.

use pointsman_testing::PostgresServer;
use tokio::task::block_in_place;

use crate::common::test_load::TestLoad;
use crate::start_durable_server;

const ROUNDS: usize = 4;
/// Emitters per node.
const EMITTERS_PER_NODE: u64 = 4;

/// Checks that no acknowledged emit of two nodes is lost when their server is stopped repeatedly.
async fn assert_emits_survive_server_stop(stop_server: fn(&PostgresServer) -> anyhow::Result<()>) {
    let (server, url) = start_durable_server();
    let (one, other) =
        (TestLoad::start(&url, EMITTERS_PER_NODE).await, TestLoad::start(&url, EMITTERS_PER_NODE).await);
    for _ in 0..ROUNDS {
        one.wait_for_acknowledged_emits(60).await;
        other.wait_for_acknowledged_emits(60).await;
        block_in_place(|| stop_server(&server)).unwrap();
        tokio::join!(
            one.wait_for_failed_emits(EMITTERS_PER_NODE as usize),
            other.wait_for_failed_emits(EMITTERS_PER_NODE as usize)
        );
        block_in_place(|| server.start_again()).unwrap();
    }
    one.wait_for_acknowledged_emits(60).await;
    other.wait_for_acknowledged_emits(60).await;
    TestLoad::stop_and_check_all([one, other], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    assert_emits_survive_server_stop(PostgresServer::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_restarted() {
    assert_emits_survive_server_stop(PostgresServer::stop).await;
}
