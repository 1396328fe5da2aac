//! A private folder of this process for what its commands write, and the removal of those that others left.
//!
//! A process that is killed cannot clean up after itself. So all its files lie in one folder with a lock that it holds
//! as long as it lives, and whoever starts later removes the folders whose lock nobody holds.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// What the folders' names begin with.
const PREFIX: &str = "pointsman-work-";
const LOCK: &str = "lock";
/// A folder this young may belong to somebody who is about to lock it.
const YOUNG: Duration = Duration::from_secs(60);

/// The folder and its lock, once it was needed.
static ROOM: Mutex<Option<Room>> = Mutex::new(None);

struct Room {
    path: PathBuf,
    _lock: File,
}

/// The folder of this process, made if there is none or somebody has removed it.
pub(super) fn path() -> io::Result<PathBuf> {
    let mut room = ROOM.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(room) = room.as_ref().filter(|room| room.path.is_dir()) {
        return Ok(room.path.clone());
    }
    let parent = std::env::temp_dir();
    remove_left(&parent);
    let made = make(&parent)?;
    let path = made.path.clone();
    *room = Some(made);
    Ok(path)
}

fn make(parent: &Path) -> io::Result<Room> {
    // For its owner alone, so that nobody can put another file in the place of one in it.
    let private = Permissions::from_mode(0o700);
    let path = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?.keep();
    let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(LOCK))?;
    lock.lock()?;
    Ok(Room { path, _lock: lock })
}

/// Removes the folders of processes that are gone. What cannot be removed is somebody else's.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if ours && is_left(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left(folder: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(folder) else { return false };
    let old = about.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > YOUNG);
    let lock = OpenOptions::new().write(true).open(folder.join(LOCK));
    about.is_dir() && old && lock.is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn age(folder: &Path) {
        File::open(folder).unwrap().set_modified(SystemTime::now() - YOUNG * 2).unwrap();
    }

    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_hold_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let (held, young) = (make(parent.path()).unwrap(), make(parent.path()).unwrap());
        let Room { path: left, _lock } = make(parent.path()).unwrap();
        fs::write(left.join("effects"), "x").unwrap();
        drop(_lock);
        let young_path = young.path.clone();
        drop(young);
        let stranger = parent.path().join("pointsman-other");
        fs::create_dir(&stranger).unwrap();
        for folder in [&held.path, &left, &stranger] {
            age(folder);
        }
        remove_left(parent.path());
        assert!(!left.exists());
        assert!(held.path.exists() && young_path.exists() && stranger.exists());
    }

    #[test]
    fn a_process_has_one_folder() {
        assert_eq!(path().unwrap(), path().unwrap());
    }
}
