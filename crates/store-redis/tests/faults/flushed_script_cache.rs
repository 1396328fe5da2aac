//! A server whose script cache is flushed.

use pointsman_testing::{RedisServer, RedisSettings};
use tokio::task::block_in_place;

use crate::common::invariants::InvariantMonitor;
use crate::common::load::Load;
use crate::common::redis_location::RedisLocation;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn flushed_scripts_are_reloaded_without_errors() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let one = Load::start(&location, &location.url, 3).await;
    let other = Load::start(&location, &location.url, 3).await;
    let monitor = InvariantMonitor::start(&location);
    let mut client = location.connect();
    for _ in 0..40 {
        one.wait_for_acknowledged(5).await;
        block_in_place(|| client.run_command(&["SCRIPT", "FLUSH"]));
    }
    one.wait_for_acknowledged(50).await;
    other.wait_for_acknowledged(50).await;
    assert_eq!((one.refused_count(), other.refused_count()), (0, 0));
    Load::stop_and_verify([one, other], &location).await;
    monitor.stop_and_assert_no_violations();
}
