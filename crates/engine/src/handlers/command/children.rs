//! The children of this process: commands whose attempts wait for them, and orphans.
//!
//! A process whose parent ends gets another parent: init, unless a process in between has asked to be the one.
//! [`adopt_orphans`] asks for it, so that a process which a command leaves behind stays below this process, where its
//! attempt finds it, and [`kill_orphans`] after the last attempt. Adopted children must also be reaped, and only they:
//! the exit status of a command belongs to its attempt.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use tokio::process::{Child, Command};

use super::descendants::{list_below, list_children_of_main_thread};

/// How long [`kill_orphans`] waits for killed processes to end. One that hangs in the kernel may take longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
const KILL_INTERVAL: Duration = Duration::from_millis(2);

static ADOPTS_ORPHANS: AtomicBool = AtomicBool::new(false);

/// The children that an attempt waits for.
static AWAITED: Mutex<BTreeSet<Pid>> = Mutex::new(BTreeSet::new());

fn awaited() -> MutexGuard<'static, BTreeSet<Pid>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of every process below it whose own parent has ended.
///
/// For programs that start no child processes but the commands of handlers: any other child would be taken for an
/// orphan, and reaped when it ends.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(true)?;
    ADOPTS_ORPHANS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Kills every process below this one, if it has adopted orphans. Called when no attempt runs any more.
pub fn kill_orphans() {
    if !ADOPTS_ORPHANS.load(Ordering::Relaxed) {
        return;
    }
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        let left: Vec<Pid> = list_below(getpid()).into_iter().filter(|pid| !reap(*pid)).collect();
        for pid in &left {
            // It may have ended meanwhile.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        if left.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            tracing::warn!(
                ?left,
                "killed processes of commands are still running; exiting without waiting for them"
            );
            return;
        }
        std::thread::sleep(KILL_INTERVAL);
    }
}

/// A child that is not taken for an orphan as long as this value lives.
#[derive(Debug)]
pub(super) struct AwaitedChild(Pid);

impl Drop for AwaitedChild {
    fn drop(&mut self) {
        awaited().remove(&self.0);
    }
}

/// Starts a command as a child that its attempt waits for.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Pid, AwaitedChild)> {
    // Locked over the start, so that nobody takes the new child for an orphan.
    let mut awaited = awaited();
    let child = command.spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = Pid::from_raw(id.ok_or_else(|| io::Error::other("the process has no id"))?);
    awaited.insert(pid);
    Ok((child, pid, AwaitedChild(pid)))
}

/// The adopted processes that still run. Those that have ended are reaped.
pub(super) fn list_orphans() -> Vec<Pid> {
    if !ADOPTS_ORPHANS.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let awaited = awaited();
    // A child that ends while the list is read can hide another one from it.
    let mut children = list_children_of_main_thread(getpid());
    children.extend(list_children_of_main_thread(getpid()));
    children.sort_unstable();
    children.dedup();
    children.retain(|pid| !awaited.contains(pid) && !reap(*pid));
    children
}

/// Takes the exit status of a child that has ended. False for one that runs, and for a process that is no child.
fn reap(pid: Pid) -> bool {
    matches!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
}
