//! A small disk in memory (tmpfs) that can be filled up.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use tempfile::TempDir;

/// A mounted tmpfs. Dropping this unmounts it.
#[derive(Debug)]
pub struct TmpfsDisk(TempDir);

impl TmpfsDisk {
    /// Mounts a disk of this size. Fails if this user may not mount.
    pub fn mount(megabytes: u32) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let size = format!("size={megabytes}m,mode=0755");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output()?;
        if !mount.status.success() {
            bail!("cannot mount a tmpfs (mounting needs root): {}", String::from_utf8_lossy(&mount.stderr));
        }
        Ok(Self(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Uses up all free space with a ballast file.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut file = File::create(self.ballast_path())?;
        for chunk_size in [1 << 20, 4096] {
            while file.write_all(&vec![0; chunk_size]).is_ok() {}
        }
        Ok(())
    }

    /// Frees the space that [`fill`](Self::fill) used.
    pub fn remove_ballast(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast_path())?)
    }

    fn ballast_path(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for TmpfsDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
