//! A control group of its own for each command, if the system lets this process create control groups: cgroup v2,
//! writable for this user (root, or a group that systemd has delegated), with `cgroup.kill` (Linux 5.14).
//!
//! A process cannot leave its group by forking, by starting a session or by clearing its environment, so one write
//! kills everything that a command has started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::unistd::{Pid, getpid};

use super::process::may_be_command_pid;
use super::procfs::parse_command_pids;

/// The start of the groups' names; the pid of the process that created them and a number follow.
const GROUP_NAME_PREFIX: &str = "pointsman-";

/// The group of this process, if groups can be created below it.
static PARENT_GROUP: OnceLock<Option<PathBuf>> = OnceLock::new();
static NEXT_GROUP_NUMBER: AtomicU64 = AtomicU64::new(1);
/// Groups that could not be removed, because killed processes had not ended yet.
static UNREMOVED_GROUPS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A control group. Removed when dropped, or later if processes in it have not ended by then.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates a group; `None` where the system does not let this process create one.
    pub(super) fn create() -> Option<Self> {
        let parent = PARENT_GROUP.get_or_init(|| {
            let found = find_parent_group();
            match &found {
                Ok(path) => {
                    tracing::debug!(
                        path = %path.display(),
                        "each command runs in a control group of its own below this path"
                    );
                }
                Err(error) => tracing::debug!(
                    %error,
                    "cannot create control groups; commands run without them, and their processes are found by \
                     parent and environment"
                ),
            }
            found.ok()
        });
        retry_group_removals();
        Self::create_in(parent.as_deref()?).ok()
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let number = NEXT_GROUP_NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{GROUP_NAME_PREFIX}{}-{number}", getpid()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// Moves a process into the group. Processes that it starts from then on belong to the group too.
    pub(super) fn add_process(&self, pid: Pid) -> io::Result<()> {
        if !may_be_command_pid(pid) {
            return Err(io::Error::other(format!("{pid} is not the pid of a command")));
        }
        fs::write(self.path.join("cgroup.procs"), pid.to_string())
    }

    /// The processes in the group that have not ended.
    pub(super) fn list_processes(&self) -> Vec<Pid> {
        parse_command_pids(&fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default())
    }

    /// Kills every process in the group.
    pub(super) fn kill_all(&self) {
        if let Err(error) = fs::write(self.path.join("cgroup.kill"), "1") {
            tracing::warn!(
                %error, path = %self.path.display(),
                "cannot kill all processes of a control group at once; killing them one by one"
            );
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if fs::remove_dir(&self.path).is_err() {
            UNREMOVED_GROUPS
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(std::mem::take(&mut self.path));
        }
    }
}

/// Removes the groups that could not be removed earlier, if their processes have ended since.
fn retry_group_removals() {
    let mut unremoved_groups = UNREMOVED_GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    unremoved_groups.retain(|path| fs::remove_dir(path).is_err() && path.exists());
}

/// The group of this process, if a group can be created and killed below it.
fn find_parent_group() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let path =
        find_cgroup_folder(&mounts, &groups).ok_or_else(|| io::Error::other("cgroup v2 is not mounted"))?;
    remove_abandoned_groups(&path);
    let probe = Cgroup::create_in(&path)?;
    match fs::metadata(probe.path.join("cgroup.kill")) {
        Ok(_) => Ok(path),
        Err(error) => Err(io::Error::other(format!("the kernel has no cgroup.kill: {error}"))),
    }
}

/// The folder of a process's cgroup v2 group, from its `mountinfo` and `cgroup` files.
fn find_cgroup_folder(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, folder) = (fields.next()?, fields.next()?);
        let relative_path = group.strip_prefix(root).ok()?;
        let is_inside_mount = !relative_path.components().any(|part| part == std::path::Component::ParentDir);
        (kind.starts_with("cgroup2 ") && is_inside_mount).then(|| Path::new(folder).join(relative_path))
    })
}

/// Removes the empty groups of processes that were killed and could not remove them themselves.
fn remove_abandoned_groups(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(GROUP_NAME_PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_never_moved_nor_listed() {
        let folder = tempfile::tempdir().unwrap();
        let group = Cgroup { path: folder.path().join("group") };
        fs::create_dir(&group.path).unwrap();
        let file = group.path.join("cgroup.procs");
        for pid in [Pid::from_raw(0), Pid::from_raw(1), getpid()] {
            assert!(group.add_process(pid).is_err());
            assert!(!file.exists());
        }
        fs::write(&file, format!("0\n1\n{}\n4711\n", getpid())).unwrap();
        assert_eq!(group.list_processes(), [Pid::from_raw(4711)]);
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_group_of_a_process_is_found_below_the_mount() {
        let unified = "25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        let bind_mount = "25 1 0:22 /system.slice /cg rw - cgroup2 cgroup2 rw\n";
        let found =
            |mounts, groups| find_cgroup_folder(mounts, groups).map(|path| path.display().to_string());
        assert_eq!(
            found(unified, "0::/system.slice/a.service\n").unwrap(),
            "/sys/fs/cgroup/system.slice/a.service"
        );
        assert_eq!(found(hybrid, "1:cpu:/x\n0::/y\n").unwrap(), "/sys/fs/cgroup/unified/y");
        assert_eq!(found(bind_mount, "0::/system.slice/a.service\n").unwrap(), "/cg/a.service");
        for (mounts, groups) in
            [(hybrid, "1:cpu:/\n"), ("", "0::/\n"), (bind_mount, "0::/b\n"), (unified, "0::/../b\n")]
        {
            assert_eq!(found(mounts, groups), None, "{groups}");
        }
    }
}
