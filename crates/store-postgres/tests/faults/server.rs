//! A server that is stopped and started again.

use pointsman_testing::Postgres;
use tokio::task::block_in_place;

use crate::common::load::Load;
use crate::durable_server;

const ROUNDS: usize = 4;
/// Emitters per node.
const EMITTERS: u64 = 4;

/// Checks two nodes on a server that is stopped repeatedly.
async fn assert_emits_survive(go: fn(&Postgres) -> anyhow::Result<()>) {
    let (server, url) = durable_server();
    let (one, other) = (Load::start(&url, EMITTERS).await, Load::start(&url, EMITTERS).await);
    for _ in 0..ROUNDS {
        one.wait_for_acknowledged(60).await;
        other.wait_for_acknowledged(60).await;
        block_in_place(|| go(&server)).unwrap();
        tokio::join!(one.wait_for_refused(EMITTERS as usize), other.wait_for_refused(EMITTERS as usize));
        block_in_place(|| server.start_again()).unwrap();
    }
    one.wait_for_acknowledged(60).await;
    other.wait_for_acknowledged(60).await;
    Load::finish_all([one, other], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    assert_emits_survive(Postgres::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_restarted() {
    assert_emits_survive(Postgres::stop).await;
}
