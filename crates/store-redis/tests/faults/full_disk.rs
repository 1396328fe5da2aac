//! A full disk under a Redis that writes an append-only file.

use pointsman_testing::{RedisServer, RedisSettings, TmpfsDisk};
use tokio::task::block_in_place;

use crate::common::invariants::InvariantMonitor;
use crate::common::load::Load;
use crate::common::redis_location::RedisLocation;

const ROUND_COUNT: usize = 3;
const PRODUCER_COUNT: u64 = 4;

/// Mounts a small disk; returns `None` where mounting is not permitted.
fn try_mount_disk() -> Option<TmpfsDisk> {
    TmpfsDisk::mount(32).inspect_err(|error| eprintln!("skipped: {error:#}")).ok()
}

/// With `appendfsync always` the server exits when it cannot write its file, and is started again once there is space.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_exits_on_a_full_disk() {
    let Some(disk) = try_mount_disk() else { return };
    let server = RedisServer::start_in_folder(disk.path(), RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let load = Load::start(&location, &location.url, PRODUCER_COUNT).await;
    let monitor = InvariantMonitor::start(&location);
    for _ in 0..ROUND_COUNT {
        load.wait_for_acknowledged(80).await;
        disk.fill().unwrap();
        load.wait_for_refused(2 * PRODUCER_COUNT as usize).await;
        assert!(location.try_connect().is_err(), "the server has exited");
        disk.remove_ballast().unwrap();
        block_in_place(|| server.kill().and_then(|()| server.start_again())).unwrap();
    }
    load.wait_for_acknowledged(80).await;
    Load::stop_and_verify([load], &location).await;
    monitor.stop_and_assert_no_violations();
}

/// With `appendfsync everysec` the server refuses writes until it could write its file, and answers reads meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_refused_on_a_full_disk_are_accepted_again_once_there_is_space() {
    let Some(disk) = try_mount_disk() else { return };
    let relaxed = RedisSettings::with_directives(&[("appendfsync", "everysec")]);
    let server = RedisServer::start_in_folder(disk.path(), relaxed).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let load = Load::start(&location, &location.url, PRODUCER_COUNT).await;
    let monitor = InvariantMonitor::start(&location);
    for _ in 0..ROUND_COUNT {
        load.wait_for_acknowledged(80).await;
        disk.fill().unwrap();
        load.wait_for_refused(2 * PRODUCER_COUNT as usize).await;
        load.node().read_journal().await;
        disk.remove_ballast().unwrap();
    }
    load.wait_for_acknowledged(80).await;
    Load::stop_and_verify([load], &location).await;
    monitor.stop_and_assert_no_violations();
}
