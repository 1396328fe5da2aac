//! A full disk.

use pointsman_testing::{PostgresServer, PostgresSettings, TmpfsDisk};
use tokio::task::block_in_place;

use crate::common::test_load::TestLoad;

/// Mounts a small disk; none if the user may not mount one.
fn mount_disk() -> Option<TmpfsDisk> {
    TmpfsDisk::mount(200).inspect_err(|refused| eprintln!("skipped: {refused:#}")).ok()
}

fn start_server_on(disk: &TmpfsDisk) -> (PostgresServer, String) {
    // Without checkpoints: one that finds the disk full stops the server, and then it cannot start again.
    let extra_settings = [("max_wal_size", "1GB"), ("min_wal_size", "32MB"), ("checkpoint_timeout", "1h")];
    let extra_settings = extra_settings.map(|(name, value)| (name.into(), value.into())).into();
    let server = PostgresServer::start_in_folder(
        disk.path(),
        PostgresSettings { durable: true, max_connections: 50, extra_settings },
    )
    .unwrap();
    let url = server.create_database().unwrap();
    (server, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_disk_is_reported_and_never_acknowledged() {
    let Some(disk) = mount_disk() else { return };
    let (server, url) = start_server_on(&disk);
    let database = url.rsplit('/').next().unwrap();
    let load = TestLoad::start(&url, 8).await;
    for _ in 0..3 {
        load.wait_for_acknowledged_emits(100).await;
        // The current WAL file has space: only the tables cannot grow.
        server.query(database, "SELECT pg_switch_wal()").unwrap();
        disk.fill().unwrap();
        load.wait_for_failed_emits(20).await;
        disk.remove_ballast().unwrap();
    }
    load.wait_for_acknowledged_emits(100).await;
    TestLoad::stop_and_check_all([load], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_recovers_after_the_server_stops_on_a_full_disk() {
    let Some(disk) = mount_disk() else { return };
    let (server, url) = start_server_on(&disk);
    let load = TestLoad::start(&url, 8).await;
    load.wait_for_acknowledged_emits(100).await;
    disk.fill().unwrap();
    // The next WAL record needs a new file, without which the server stops.
    let database = url.rsplit('/').next().unwrap();
    let _ = server.query(database, "SELECT pg_switch_wal()");
    let _ = server.query(database, "CREATE TABLE public.more (n integer)");
    load.wait_for_failed_emits(40).await;
    let queried = server.query(database, "SELECT 1");
    assert!(queried.is_err(), "the server has not stopped");
    disk.remove_ballast().unwrap();
    block_in_place(|| server.kill().and_then(|()| server.start_again())).unwrap();
    load.wait_for_acknowledged_emits(100).await;
    TestLoad::stop_and_check_all([load], &url).await;
}
