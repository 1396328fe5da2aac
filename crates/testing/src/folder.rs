//! A server's own folder. It is removed with the server, and if that could not be, by whoever comes next.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use crate::user::Servant;

const PREFIX: &str = "pointsman-server-";

/// Held locked by the process that uses the folder. The system lets go of it when that process ends in any way.
const LOCK: &str = "lock";

#[derive(Debug)]
pub(crate) struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    pub(crate) fn new(servant: &Servant) -> anyhow::Result<Self> {
        Self::new_in(&std::env::temp_dir(), servant)
    }

    pub(crate) fn new_in(place: &Path, servant: &Servant) -> anyhow::Result<Self> {
        sweep();
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place);
        let folder = made.context("cannot make a folder")?;
        // The lock gets its name once it is held, so that a sweep never sees it free.
        let unnamed = folder.path().join("lock-to-be");
        let lock = File::create_new(&unnamed)?;
        lock.try_lock().context("cannot lock a new file")?;
        fs::rename(&unnamed, folder.path().join(LOCK))?;
        servant.give(folder.path())?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of processes that were killed before they could. What cannot be removed is not ours.
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.filter_map(Result::ok) {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if ours
            && let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Copies a folder with all that is in it, and gives it to the one who runs the server.
pub(crate) fn copy(from: &Path, to: &Path, servant: &Servant) -> anyhow::Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    servant.give(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, servant)?;
        } else {
            fs::copy(entry.path(), &target)?;
            servant.give(&target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_leaves_what_is_in_use_and_removes_what_is_not() {
        let servant = Servant::find().unwrap();
        let used = Folder::new(&servant).unwrap();
        let left = Folder::new(&servant).unwrap();
        let place = left.path().to_path_buf();
        // As if its process had been killed: the lock is free, the folder is there.
        let Folder { mut folder, _lock } = left;
        folder.disable_cleanup(true);
        drop((folder, _lock));
        sweep();
        assert!(!place.exists() && used.path().exists());
    }
}
