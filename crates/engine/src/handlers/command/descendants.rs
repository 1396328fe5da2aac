//! Reads from `/proc` which processes are below another one.

use std::fs;

use nix::unistd::Pid;

/// The processes below `root`, without `root` itself: its children, their children and so on.
pub(super) fn list_below(root: Pid) -> Vec<Pid> {
    let mut found = list_children(root);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        // A process that changes its parent meanwhile can be read twice.
        found.extend(list_children(pid).into_iter().filter(|child| *child != root));
        if found.len() > MAX_LISTED {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Bounds one pass over a tree that grows while it is read. The caller kills what was read and reads again.
const MAX_LISTED: usize = 10_000;

/// The children that any thread of a process has started.
fn list_children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| parse_pids(&list)).collect()
}

/// The children of a process that belong to its main thread. The kernel gives orphans to that thread.
pub(super) fn list_children_of_main_thread(pid: Pid) -> Vec<Pid> {
    parse_pids(&fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default())
}

pub(super) fn parse_pids(text: &str) -> Vec<Pid> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).map(Pid::from_raw).collect()
}

/// Whether a process was started with a variable in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HasVariable {
    Yes,
    No,
    /// It has neither arguments nor an environment: it is about to become another program, or is just ending.
    Unknown,
}

/// Looks for this `NAME=value`. The answer is no where the environment cannot be read: the process has ended, or belongs
/// to a user whose processes this one may not inspect.
pub(super) fn has_variable(pid: Pid, variable: &[u8]) -> HasVariable {
    // A process that becomes another program while its environment is read seems to have none.
    for _ in 0..READS_OF_NONE {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(environment) if environment.is_empty() => {}
            Ok(environment) if environment.split(|byte| *byte == 0).any(|entry| entry == variable) => {
                return HasVariable::Yes;
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => return HasVariable::Unknown,
            Ok(_) | Err(_) => return HasVariable::No,
        }
        if fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| arguments.is_empty()) {
            return HasVariable::Unknown;
        }
    }
    HasVariable::No
}

/// How often an empty environment is read before it is taken for cleared.
const READS_OF_NONE: usize = 4;
