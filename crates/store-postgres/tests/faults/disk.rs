//! A disk that is full.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pointsman_testing::{Postgres, Settings};
use tempfile::TempDir;
use tokio::task::block_in_place;

use crate::common::load::Load;

/// A small disk in memory; not there any more when this is dropped.
struct Disk(TempDir);

impl Disk {
    /// Nothing where nobody may mount one.
    fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m,mode=0755");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(done) if done.status.success() => Some(Self(folder)),
            refused => {
                eprintln!("skipped, because no disk can be mounted: {refused:?}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no room on it.
    fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut file = File::create(&ballast).unwrap();
        for piece in [1 << 20, 4096] {
            while file.write_all(&vec![0; piece]).is_ok() {}
        }
        ballast
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

fn server_on(disk: &Disk) -> (Postgres, String) {
    let extra = [("max_wal_size", "64MB"), ("min_wal_size", "32MB")];
    let extra = extra.map(|(name, value)| (name.into(), value.into())).into();
    let server =
        Postgres::start_in(disk.path(), Settings { durable: true, max_connections: 50, extra }).unwrap();
    let url = server.create_database().unwrap();
    (server, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_disk_is_told_and_never_taken_for_success() {
    let Some(disk) = Disk::mount(200) else { return };
    let (server, url) = server_on(&disk);
    let database = url.rsplit('/').next().unwrap();
    let load = Load::start(&url, 8).await;
    for _ in 0..3 {
        load.acknowledged(100).await;
        // The log has a file with room enough: only the tables cannot grow.
        server.query(database, "SELECT pg_switch_wal()").unwrap();
        let ballast = disk.fill();
        load.refused(20).await;
        std::fs::remove_file(ballast).unwrap();
    }
    load.acknowledged(100).await;
    Load::end([load], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_ends_on_a_full_disk_is_waited_for() {
    let Some(disk) = Disk::mount(200) else { return };
    let (server, url) = server_on(&disk);
    let load = Load::start(&url, 8).await;
    load.acknowledged(100).await;
    let ballast = disk.fill();
    // What is logged next needs a new file, without which a server cannot go on.
    let database = url.rsplit('/').next().unwrap();
    let _ = server.query(database, "SELECT pg_switch_wal()");
    let _ = server.query(database, "CREATE TABLE public.more (n integer)");
    load.refused(40).await;
    let there = server.query(database, "SELECT 1");
    assert!(there.is_err(), "it has ended");
    std::fs::remove_file(ballast).unwrap();
    block_in_place(|| server.kill().and_then(|()| server.start_again())).unwrap();
    load.acknowledged(100).await;
    Load::end([load], &url).await;
}
