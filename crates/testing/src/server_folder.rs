//! The folder of one PostgreSQL, Redis or PgBouncer server. It is removed when the server is dropped; if this process is
//! killed before, the next process that creates a server folder removes it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use crate::server_os_user::ServerOsUser;

const FOLDER_PREFIX: &str = "pointsman-server-";

/// The file that the process using the folder keeps locked. The system releases the lock when that process ends in
/// any way.
const LOCK_FILE_NAME: &str = "lock";

/// The folder of one server. It exists until this is dropped.
#[derive(Debug)]
pub(crate) struct ServerFolder {
    folder: TempDir,
    _lock: File,
}

impl ServerFolder {
    pub(crate) fn new(server_os_user: &ServerOsUser) -> anyhow::Result<Self> {
        Self::new_in(&std::env::temp_dir(), server_os_user)
    }

    pub(crate) fn new_in(parent: &Path, server_os_user: &ServerOsUser) -> anyhow::Result<Self> {
        remove_abandoned_folders();
        let created = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(parent);
        let folder = created.context("cannot create a folder for the server")?;
        // The lock file gets its name after it is locked, so that a cleanup never finds it unlocked.
        let temporary_path = folder.path().join("lock-to-be");
        let lock = File::create_new(&temporary_path)?;
        lock.try_lock().context("cannot lock the new lock file")?;
        fs::rename(&temporary_path, folder.path().join(LOCK_FILE_NAME))?;
        server_os_user.chown_path(folder.path())?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of processes that were killed. A folder that cannot be removed belongs to another user.
fn remove_abandoned_folders() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_server_folder = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER_PREFIX));
        if is_server_folder
            && let Ok(lock) = File::open(entry.path().join(LOCK_FILE_NAME))
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Copies a folder with its contents and makes the server's user its owner.
pub(crate) fn copy_folder_for_user(
    from: &Path,
    to: &Path,
    server_os_user: &ServerOsUser,
) -> anyhow::Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot create {}", to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    server_os_user.chown_path(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder_for_user(&entry.path(), &target, server_os_user)?;
        } else {
            fs::copy(entry.path(), &target)?;
            server_os_user.chown_path(&target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_server_folders_are_removed_and_those_in_use_are_kept() {
        let server_os_user = ServerOsUser::choose_os_user().unwrap();
        let used = ServerFolder::new(&server_os_user).unwrap();
        let abandoned = ServerFolder::new(&server_os_user).unwrap();
        let abandoned_path = abandoned.path().to_path_buf();
        // As after a killed process: the lock is free, the folder exists.
        let ServerFolder { mut folder, _lock } = abandoned;
        folder.disable_cleanup(true);
        drop((folder, _lock));
        remove_abandoned_folders();
        assert!(!abandoned_path.exists() && used.path().exists());
    }
}
