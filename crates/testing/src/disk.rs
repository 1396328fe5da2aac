//! A small disk in memory that can be filled up.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use tempfile::TempDir;

/// A mounted tmpfs. It is unmounted when this is dropped.
#[derive(Debug)]
pub struct Disk(TempDir);

impl Disk {
    /// Mounts a disk of this size. Fails where the user may not mount.
    pub fn mount(megabytes: u32) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let size = format!("size={megabytes}m,mode=0755");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output()?;
        if !mount.status.success() {
            bail!("no disk can be mounted: {}", String::from_utf8_lossy(&mount.stderr));
        }
        Ok(Self(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no space on it.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut file = File::create(self.ballast())?;
        for piece in [1 << 20, 4096] {
            while file.write_all(&vec![0; piece]).is_ok() {}
        }
        Ok(())
    }

    /// Frees what [`fill`](Self::fill) took.
    pub fn free(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
