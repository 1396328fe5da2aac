//! The children of this process: commands whose attempts wait for them, and orphans.
//!
//! A process whose parent ends gets another parent: init, unless a process in between is a subreaper. [`adopt_orphans`]
//! makes this process a subreaper, so that a process which a command leaves behind stays below it, where its attempt
//! finds it, and where [`kill_orphans`] kills it after the last attempt. Adopted children must also be reaped, and only
//! they: the exit status of a command belongs to its attempt.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use tokio::process::{Child, Command};

use super::process::{Process, kill_process};
use super::procfs::{list_children_of_main_thread, list_descendants_except};

/// How long [`kill_orphans`] waits for killed processes to end. A process that hangs in the kernel may take longer.
const ORPHAN_KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval between two kills of the orphans that still run.
const ORPHAN_KILL_INTERVAL: Duration = Duration::from_millis(2);

/// Whether [`adopt_orphans`] was called.
static ADOPTS_ORPHANS: AtomicBool = AtomicBool::new(false);

/// The processes below this one that existed before it adopted orphans: they are not commands.
static PREEXISTING_PROCESSES: OnceLock<Vec<Process>> = OnceLock::new();

static NON_ORPHAN_CHILDREN: Mutex<NonOrphanChildren> = Mutex::new(NonOrphanChildren {
    awaited_pids: BTreeSet::new(),
    children_reaped_by_runtime: BTreeSet::new(),
    starting_command_count: 0,
});

/// The children that must not be reaped as orphans.
#[derive(Debug)]
struct NonOrphanChildren {
    /// Children that an attempt waits for.
    awaited_pids: BTreeSet<Pid>,
    /// Children whose attempt was dropped: the runtime reaps them.
    children_reaped_by_runtime: BTreeSet<Process>,
    /// The number of commands that are being started. An unknown child may be one of them.
    starting_command_count: usize,
}

fn lock_non_orphan_children() -> MutexGuard<'static, NonOrphanChildren> {
    NON_ORPHAN_CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of every process below it whose own parent has ended.
///
/// For programs whose only child processes from then on are the commands of handlers: any other child would be treated
/// as an orphan, and reaped when it ends. Children that this process has already, of a script that became this program
/// by `exec`, are neither reaped nor killed, nor is any process below them.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(true)?;
    PREEXISTING_PROCESSES.get_or_init(|| {
        let awaited = lock_non_orphan_children().awaited_pids.clone();
        let preexisting = list_descendants_except(getpid(), |pid| awaited.contains(&pid));
        preexisting.into_iter().map(Process::from_pid).collect()
    });
    ADOPTS_ORPHANS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether processes that commands leave behind become children of this process.
pub(super) fn adopts_orphans() -> bool {
    ADOPTS_ORPHANS.load(Ordering::Relaxed)
}

fn is_preexisting_process(pid: Pid) -> bool {
    PREEXISTING_PROCESSES
        .get()
        .is_some_and(|preexisting| preexisting.iter().any(|process| process.pid == pid && process.exists()))
}

/// Kills every process below this one, if it has adopted orphans. Called when no attempt runs any more.
pub fn kill_orphans() {
    if !adopts_orphans() {
        return;
    }
    let deadline = Instant::now() + ORPHAN_KILL_TIMEOUT;
    loop {
        let mut remaining = list_descendants_except(getpid(), is_preexisting_process);
        remaining.retain(|pid| !try_reap(*pid));
        let mut kill_error = None;
        for pid in &remaining {
            kill_error = kill_process(*pid).err().or(kill_error);
        }
        if remaining.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            tracing::warn!(
                pids = ?remaining, timeout = ?ORPHAN_KILL_TIMEOUT,
                error = kill_error.map(tracing::field::display),
                "killed processes of commands did not end in time; this process exits without waiting for them. If \
                 they keep running, end them by hand"
            );
            return;
        }
        std::thread::sleep(ORPHAN_KILL_INTERVAL);
    }
}

/// A child process that does not count as an orphan while this value exists, nor later if the runtime has yet to reap
/// it.
#[derive(Debug)]
pub(super) struct AwaitedChild(Process);

impl Drop for AwaitedChild {
    fn drop(&mut self) {
        let mut children = lock_non_orphan_children();
        children.awaited_pids.remove(&self.0.pid);
        if self.0.exists() {
            children.children_reaped_by_runtime.insert(self.0);
        }
    }
}

/// Guards the start of a command: while this value exists, unknown children are not reaped.
struct CommandStartGuard;

impl CommandStartGuard {
    fn begin() -> Self {
        lock_non_orphan_children().starting_command_count += 1;
        Self
    }
}

impl Drop for CommandStartGuard {
    fn drop(&mut self) {
        lock_non_orphan_children().starting_command_count -= 1;
    }
}

/// Starts a command as a child that its attempt waits for.
pub(super) fn spawn_awaited_child(command: &mut Command) -> io::Result<(Child, Process, AwaitedChild)> {
    // Spawning lasts until the program is loaded, forever on a hanging file system, so nothing is locked meanwhile.
    let starting = CommandStartGuard::begin();
    let child = command.spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let process =
        Process::from_pid(Pid::from_raw(id.ok_or_else(|| io::Error::other("the process has no id"))?));
    lock_non_orphan_children().awaited_pids.insert(process.pid);
    drop(starting);
    Ok((child, process, AwaitedChild(process)))
}

/// Lists the adopted processes that still run. Those that have ended are reaped, unless a command is being started,
/// which could be one of them.
pub(super) fn list_and_reap_orphans() -> Vec<Pid> {
    if !adopts_orphans() {
        return Vec::new();
    }
    // Locked until the end, so that no command is started meanwhile.
    let mut children = lock_non_orphan_children();
    children.children_reaped_by_runtime.retain(|process| process.exists());
    // A child that ends while the list is read can hide another one from it.
    let mut found = list_children_of_main_thread(getpid());
    found.extend(list_children_of_main_thread(getpid()));
    found.sort_unstable();
    found.dedup();
    found.retain(|pid| {
        let dropped = || children.children_reaped_by_runtime.iter().any(|process| process.pid == *pid);
        !children.awaited_pids.contains(pid) && !dropped() && !is_preexisting_process(*pid)
    });
    if children.starting_command_count == 0 {
        found.retain(|pid| !try_reap(*pid));
    }
    found
}

/// Reaps a child that has ended. Returns false for a child that runs, and for a process that is not a child.
fn try_reap(pid: Pid) -> bool {
    matches!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::AsyncReadExt;
    use tokio::time::sleep;

    use super::super::process::ProcessStat;
    use super::*;

    #[tokio::test]
    async fn while_a_command_is_being_started_no_orphan_is_reaped_and_other_commands_run() {
        adopt_orphans().unwrap();
        let start_guard = CommandStartGuard::begin();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 0.05 >/dev/null & echo $!"]).stdout(Stdio::piped());
        let (mut child, _, awaited) = spawn_awaited_child(&mut command).unwrap();
        let mut printed = String::new();
        child.stdout.take().unwrap().read_to_string(&mut printed).await.unwrap();
        child.wait().await.unwrap();
        drop(awaited);
        let orphan = Pid::from_raw(printed.trim().parse().unwrap());
        while !ProcessStat::read(orphan).unwrap().is_zombie {
            sleep(ORPHAN_KILL_INTERVAL).await;
        }
        assert!(list_and_reap_orphans().contains(&orphan));
        assert!(ProcessStat::read(orphan).is_some());
        drop(start_guard);
        let deadline = Instant::now() + Duration::from_secs(10);
        while ProcessStat::read(orphan).is_some() {
            assert!(Instant::now() < deadline);
            // Other tests start commands meanwhile.
            list_and_reap_orphans();
            sleep(ORPHAN_KILL_INTERVAL).await;
        }
    }

    #[tokio::test]
    async fn a_child_whose_attempt_was_dropped_is_left_to_the_runtime() {
        adopt_orphans().unwrap();
        let mut command = Command::new("sleep");
        let (child, process, awaited) = spawn_awaited_child(command.arg("600").kill_on_drop(true)).unwrap();
        // The guard is dropped before the child, which is certainly not reaped yet.
        drop(awaited);
        assert!(!list_and_reap_orphans().contains(&process.pid));
        assert!(lock_non_orphan_children().children_reaped_by_runtime.contains(&process));
        drop(child);
        let deadline = Instant::now() + Duration::from_secs(10);
        while process.exists() {
            assert!(Instant::now() < deadline);
            sleep(ORPHAN_KILL_INTERVAL).await;
        }
        list_and_reap_orphans();
        assert!(!lock_non_orphan_children().children_reaped_by_runtime.contains(&process));
    }
}
