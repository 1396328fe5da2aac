//! A private temporary folder of this process for files of its commands, and the removal of stale ones.
//!
//! A process that is killed cannot clean up. So all its files are in one folder with a lock file that is locked as long
//! as the process lives, and later processes remove the folders whose lock is free.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The prefix of the folders' names.
const FOLDER_NAME_PREFIX: &str = "pointsman-work-";
const LOCK_FILE_NAME: &str = "lock";
/// The mode of the folders: a command that runs as another user can reach its own file, but cannot list others.
const FOLDER_MODE: u32 = 0o711;
/// The minimum age of a stale folder. A younger one may belong to a process that is about to lock it.
const MIN_STALE_AGE: Duration = Duration::from_secs(60);

/// The temporary folder of this process, created when it is first needed.
static PROCESS_TEMP_FOLDER: Mutex<Option<ProcessTempFolder>> = Mutex::new(None);

struct ProcessTempFolder {
    path: PathBuf,
    _lock: File,
}

/// Returns the temporary folder of this process, and creates it if there is none or if it was removed.
pub(super) fn ensure_process_temp_folder() -> io::Result<PathBuf> {
    let mut process_folder = PROCESS_TEMP_FOLDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(folder) = process_folder.as_ref().filter(|folder| folder.path.is_dir()) {
        return Ok(folder.path.clone());
    }
    let parent = std::env::temp_dir();
    let folder = create_locked_folder(&parent)?;
    let path = folder.path.clone();
    *process_folder = Some(folder);
    drop(process_folder);
    remove_stale_folders_in_background(parent, fs::symlink_metadata(&path)?.uid());
    Ok(path)
}

fn create_locked_folder(parent: &Path) -> io::Result<ProcessTempFolder> {
    // Only the owner of the folder can write to it, so that nobody else can replace a file in it.
    let path = tempfile::Builder::new().prefix(FOLDER_NAME_PREFIX).tempdir_in(parent)?.keep();
    // The mode with which a folder is created is narrowed by the umask.
    fs::set_permissions(&path, Permissions::from_mode(FOLDER_MODE))?;
    let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(LOCK_FILE_NAME))?;
    lock.lock()?;
    Ok(ProcessTempFolder { path, _lock: lock })
}

/// Removes stale folders on a thread of its own, because the temporary folder may be large and on a slow disk.
fn remove_stale_folders_in_background(parent: PathBuf, owner: u32) {
    let sweep = move || remove_stale_folders(&parent, owner);
    if let Err(error) = std::thread::Builder::new().name("pointsman-sweep".into()).spawn(sweep) {
        tracing::debug!(
            %error,
            "could not start the removal of stale temporary folders; the next process removes them"
        );
    }
}

/// Removes the folders of processes that have ended. A folder that cannot be removed belongs to another user.
fn remove_stale_folders(parent: &Path, owner: u32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let has_prefix = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER_NAME_PREFIX));
        if has_prefix && is_stale_folder(&entry.path(), owner) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a folder was left by an ended process of this user. Owner and mode are checked, because anybody can create a
/// folder of this name in a shared place.
fn is_stale_folder(folder: &Path, owner: u32) -> bool {
    let Ok(metadata) = fs::symlink_metadata(folder) else { return false };
    let is_own = metadata.is_dir() && metadata.uid() == owner && metadata.mode() & 0o7777 == FOLDER_MODE;
    let is_old =
        metadata.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > MIN_STALE_AGE);
    is_own && is_old && open_lock_file(&folder.join(LOCK_FILE_NAME)).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Opens a lock file, without following a link and without waiting for a reader of a pipe.
fn open_lock_file(path: &Path) -> io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let lock = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    match lock.metadata()?.is_file() {
        true => Ok(lock),
        false => Err(io::Error::other("not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn set_old_modification_time(folder: &Path) {
        File::open(folder).unwrap().set_modified(SystemTime::now() - MIN_STALE_AGE * 2).unwrap();
    }

    #[test]
    fn folders_of_dead_processes_are_removed_and_locked_ones_kept() {
        let parent = tempfile::tempdir().unwrap();
        let (locked, young) =
            (create_locked_folder(parent.path()).unwrap(), create_locked_folder(parent.path()).unwrap());
        let ProcessTempFolder { path: abandoned, _lock } = create_locked_folder(parent.path()).unwrap();
        fs::write(abandoned.join("effects"), "x").unwrap();
        drop(_lock);
        let young_path = young.path.clone();
        drop(young);
        let foreign = parent.path().join("pointsman-other");
        fs::create_dir(&foreign).unwrap();
        for folder in [&locked.path, &abandoned, &foreign] {
            set_old_modification_time(folder);
        }
        remove_stale_folders(parent.path(), folder_owner(parent.path()));
        assert!(!abandoned.exists());
        assert!(locked.path.exists() && young_path.exists() && foreign.exists());
    }

    fn folder_owner(folder: &Path) -> u32 {
        fs::metadata(folder).unwrap().uid()
    }

    #[test]
    fn foreign_folders_with_the_same_prefix_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        let abandoned_folder = || create_locked_folder(parent.path()).unwrap().path;
        let (with_other_mode, with_linked_lock, with_piped_lock, unchanged) =
            (abandoned_folder(), abandoned_folder(), abandoned_folder(), abandoned_folder());
        fs::set_permissions(&with_other_mode, Permissions::from_mode(0o755)).unwrap();
        let elsewhere = parent.path().join("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        fs::remove_file(with_linked_lock.join(LOCK_FILE_NAME)).unwrap();
        std::os::unix::fs::symlink(&elsewhere, with_linked_lock.join(LOCK_FILE_NAME)).unwrap();
        fs::remove_file(with_piped_lock.join(LOCK_FILE_NAME)).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(with_piped_lock.join(LOCK_FILE_NAME))
                .status()
                .unwrap()
                .success()
        );
        for folder in [&with_other_mode, &with_linked_lock, &with_piped_lock, &unchanged] {
            set_old_modification_time(folder);
        }
        let owner = folder_owner(parent.path());
        assert!(
            !is_stale_folder(&with_other_mode, owner)
                && !is_stale_folder(&with_linked_lock, owner)
                && !is_stale_folder(&with_piped_lock, owner)
        );
        assert!(!is_stale_folder(&unchanged, owner + 1) && is_stale_folder(&unchanged, owner));
    }

    #[test]
    fn a_process_has_one_temp_folder() {
        assert_eq!(ensure_process_temp_folder().unwrap(), ensure_process_temp_folder().unwrap());
    }
}
