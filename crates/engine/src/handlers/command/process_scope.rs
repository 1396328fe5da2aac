//! All processes that the command of one attempt has started, and how they are killed.
//!
//! Processes of the command are found in three ways, each of which sees what the others may miss:
//!
//! | by | misses |
//! |---|---|
//! | the process group that the command leads | a process that starts a group or session of its own |
//! | its parents, and for an orphan the environment it inherited | an orphan that has cleared its environment |
//! | a control group ([`Cgroup`]), where one can be created | what the command started before it was moved there, if it is an orphan with a cleared environment by then |

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use super::cgroup::Cgroup;
use super::children::{adopts_orphans, list_and_reap_orphans};
use super::process::{Process, ProcessStat, kill_process, signal_process_group};
use super::procfs::{EnvVariablePresence, env_variable_presence, list_descendants};

/// How long killed processes may take to end. A process that hangs in the kernel may take longer.
const SCOPE_KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval between two kills of the processes that still run.
const SCOPE_KILL_INTERVAL: Duration = Duration::from_millis(2);
/// How long an orphan may show neither arguments nor an environment before the attempt ends without it.
const UNIDENTIFIED_ORPHAN_TIMEOUT: Duration = Duration::from_millis(50);

/// The processes of one attempt. Killed when dropped.
#[derive(Debug)]
pub(super) struct ProcessScope(Option<ProcessScopeState>);

#[derive(Debug)]
struct ProcessScopeState {
    /// The command itself, and the id of its process group.
    leader: Process,
    /// Whether the leader was reaped. Then the system may give its pid to another process.
    is_leader_reaped: bool,
    /// Whether it was logged that a process could not be signalled.
    is_signal_failure_logged: AtomicBool,
    cgroup: Option<Cgroup>,
    /// A `NAME=value` that only processes of this attempt have in their environment.
    marker_variable: Vec<u8>,
}

impl ProcessScope {
    /// The scope of a command that has just been started as the leader of a process group.
    pub(super) fn new(leader: Process, cgroup: Option<Cgroup>, marker_variable: Vec<u8>) -> Self {
        let mut processes = ProcessScopeState {
            leader,
            is_leader_reaped: false,
            is_signal_failure_logged: AtomicBool::new(false),
            cgroup,
            marker_variable,
        };
        processes.move_into_cgroup();
        Self(Some(processes))
    }

    /// Signals the process group of the command.
    pub(super) fn signal_group(&self, signal: Signal) {
        if let Some(processes) = &self.0 {
            processes.signal_group(signal, &processes.list_processes());
        }
    }

    /// Kills every process that can be found now.
    pub(super) fn kill_found_processes(&self) {
        if let Some(processes) = &self.0 {
            processes.kill_group_and_processes(&processes.list_processes());
        }
    }

    /// Records that the leader was reaped.
    pub(super) fn set_leader_reaped(&mut self) {
        if let Some(processes) = &mut self.0 {
            processes.is_leader_reaped = true;
        }
    }

    /// Kills every process repeatedly until none is found or the time is up. Returns how many were killed.
    pub(super) async fn kill_until_gone(mut self) -> usize {
        match self.0.take() {
            Some(processes) => processes.kill_until_gone().await,
            None => 0,
        }
    }
}

impl Drop for ProcessScope {
    fn drop(&mut self) {
        let Some(mut processes) = self.0.take() else { return };
        processes.kill_group_and_processes(&processes.list_processes());
        // The runtime reaps the leader soon. If its start was not seen, a reuse of its pid could not be detected.
        processes.is_leader_reaped |= processes.leader.started_ticks.is_none();
        // A process that was starting another one meanwhile is killed in the background.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(processes.kill_until_gone());
        }
    }
}

impl ProcessScopeState {
    /// Moves the command into its control group, with what it has started already.
    fn move_into_cgroup(&mut self) {
        let Some(cgroup) = &self.cgroup else { return };
        // A command that has ended already cannot be moved, but an orphan of it can.
        if let Err(error) = cgroup.add_process(self.leader.pid).or_else(ignore_no_such_process_io_error) {
            tracing::warn!(
                %error,
                "cannot move a command into a control group; it runs without one, and processes that it leaves behind \
                 may outlive the attempt if they clear their environment"
            );
            self.cgroup = None;
            return;
        }
        let mut moved = BTreeSet::from([self.leader.pid]);
        loop {
            let new_pids: Vec<Pid> =
                self.list_processes_without_cgroup().into_iter().filter(|pid| moved.insert(*pid)).collect();
            for pid in &new_pids {
                // The process may have ended meanwhile.
                let _ = cgroup.add_process(*pid);
            }
            if new_pids.is_empty() {
                return;
            }
        }
    }

    /// The processes that can be found and have not been reaped, without the leader.
    fn list_processes(&self) -> Vec<Pid> {
        let mut found = self.list_processes_without_cgroup();
        found.extend(self.cgroup.iter().flat_map(Cgroup::list_processes));
        found.retain(|pid| *pid != self.leader.pid);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The processes that are found without the control group: by parents, process group and environment.
    fn list_processes_without_cgroup(&self) -> Vec<Pid> {
        let mut found = if self.owns_leader_pid() { list_descendants(self.leader.pid) } else { vec![] };
        for orphan in self.list_orphans_of_command() {
            found.push(orphan);
            found.extend(list_descendants(orphan));
        }
        found
    }

    fn list_orphans_of_command(&self) -> Vec<Pid> {
        let may_own_group = self.owns_leader_pid() || ProcessStat::read(self.leader.pid).is_none();
        let mut orphans = list_and_reap_orphans();
        orphans.retain(|pid| {
            (may_own_group && self.is_in_process_group(*pid))
                || env_variable_presence(*pid, &self.marker_variable) == EnvVariablePresence::Present
        });
        orphans
    }

    /// Whether an orphan may be a process of this scope: it has the marker variable, or shows no environment because it
    /// is about to become another program or is just ending.
    fn may_have_unidentified_orphans(&self) -> bool {
        list_and_reap_orphans()
            .into_iter()
            .any(|pid| env_variable_presence(pid, &self.marker_variable) != EnvVariablePresence::Absent)
    }

    /// Whether the leader's pid certainly still belongs to the leader.
    fn owns_leader_pid(&self) -> bool {
        !self.is_leader_reaped && (self.leader.started_ticks.is_none() || self.leader.exists())
    }

    fn is_in_process_group(&self, pid: Pid) -> bool {
        ProcessStat::read(pid).is_some_and(|stat| !stat.is_zombie && stat.process_group_id == self.leader.pid)
    }

    /// Whether the process group is still the command's. While a process is in the group, the system gives its id to no
    /// other process.
    fn owns_process_group(&self, processes: &[Pid]) -> bool {
        if self.owns_leader_pid() {
            return true;
        }
        if ProcessStat::read(self.leader.pid).is_some() {
            return false;
        }
        // If this process does not adopt orphans, they cannot be found, and a group without a leader most likely
        // belongs to orphans of the command.
        !adopts_orphans() || processes.iter().any(|pid| self.is_in_process_group(*pid))
    }

    fn signal_group(&self, signal: Signal, processes: &[Pid]) {
        if self.owns_process_group(processes) {
            self.log_first_signal_failure(self.leader.pid, signal_process_group(self.leader.pid, signal));
        }
    }

    fn kill_group_and_processes(&self, processes: &[Pid]) {
        self.signal_group(Signal::SIGKILL, processes);
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill_all();
        }
        for pid in processes {
            self.log_first_signal_failure(*pid, kill_process(*pid));
        }
    }

    /// Logs the first process or group that could not be signalled.
    fn log_first_signal_failure(&self, pid: Pid, result: Result<(), Errno>) {
        if let Err(error) = result
            && !self.is_signal_failure_logged.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                %error, %pid,
                "cannot signal a process of a command; the process may outlive its attempt. If it keeps running, \
                 end it by hand"
            );
        }
    }

    async fn kill_until_gone(self) -> usize {
        // A process that is just ending by itself, such as the last of a pipeline, was not left behind.
        if !self.list_processes().is_empty() {
            sleep(SCOPE_KILL_INTERVAL).await;
        }
        let mut killed = BTreeSet::new();
        let deadline = Instant::now() + SCOPE_KILL_TIMEOUT;
        let mut unidentified_since = None;
        loop {
            let remaining = self.list_processes();
            self.kill_group_and_processes(&remaining);
            killed.extend(remaining.iter().copied());
            let now = Instant::now();
            if remaining.is_empty() {
                let since = *unidentified_since.get_or_insert(now);
                if now >= since + UNIDENTIFIED_ORPHAN_TIMEOUT || !self.may_have_unidentified_orphans() {
                    return killed.len();
                }
            } else {
                unidentified_since = None;
            }
            if now >= deadline {
                tracing::warn!(
                    pids = ?remaining, timeout = ?SCOPE_KILL_TIMEOUT,
                    "killed processes of a command did not end in time; the attempt ends without them. If they keep \
                     running, end them by hand"
                );
                return killed.len();
            }
            sleep(SCOPE_KILL_INTERVAL).await;
        }
    }
}

/// Treats a process that has ended as success: it cannot be moved, and need not be.
fn ignore_no_such_process_io_error(error: std::io::Error) -> std::io::Result<()> {
    match error.raw_os_error() {
        Some(nix::libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::process::Command;

    use super::super::children::{adopt_orphans, spawn_awaited_child};
    use super::*;

    /// Runs a script to its end in the scope of a test, and returns the pid it printed and how many processes were
    /// killed.
    async fn run_script_and_end_scope(test: &str, script: &str, cgroup: Option<Cgroup>) -> (Pid, usize) {
        adopt_orphans().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("SCOPE_TEST", test).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let (mut child, process, _awaited) = spawn_awaited_child(&mut command).unwrap();
        let mut scope = ProcessScope::new(process, cgroup, format!("SCOPE_TEST={test}").into());
        drop(child.stdin.take());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let detached = lines.next_line().await.unwrap().unwrap().parse().unwrap();
        child.wait().await.unwrap();
        scope.set_leader_reaped();
        (Pid::from_raw(detached), scope.kill_until_gone().await)
    }

    fn is_running(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    /// A script that waits until it is in its scope, starts a process in a session of its own that prints its pid, and
    /// ends.
    fn detached_script(prefix: &str) -> String {
        format!("cat; {prefix} setsid sh -c 'echo $$; exec sleep 600 >/dev/null' &")
    }

    #[tokio::test]
    async fn orphans_are_found_by_their_environment_without_a_control_group() {
        let (pid, killed) = run_script_and_end_scope("by-environment", &detached_script(""), None).await;
        assert!(!is_running(pid));
        assert_eq!(killed, 1);
    }

    #[tokio::test]
    async fn a_control_group_contains_orphans_that_cleared_their_environment() {
        // Where this process may not create control groups there is nothing to test.
        let Some(cgroup) = Cgroup::create() else { return };
        let path = format!("{cgroup:?}");
        let (pid, killed) =
            run_script_and_end_scope("by-cgroup", &detached_script("env -i PATH=\"$PATH\""), Some(cgroup))
                .await;
        assert!(!is_running(pid), "{path}");
        assert_eq!(killed, 1);
    }

    #[tokio::test]
    async fn orphans_of_other_scopes_are_not_killed() {
        let (pid, killed) =
            run_script_and_end_scope("own", &detached_script("env SCOPE_TEST=other"), None).await;
        assert!(is_running(pid));
        assert_eq!(killed, 0);
        kill_process(pid).unwrap();
    }

    #[tokio::test]
    async fn an_orphan_in_the_process_group_is_found_without_its_environment() {
        let script = "cat; env -i PATH=\"$PATH\" sh -c 'echo $$; exec sleep 600 >/dev/null' &";
        let (pid, killed) = run_script_and_end_scope("by-group", script, None).await;
        assert!(!is_running(pid));
        assert_eq!(killed, 1);
    }

    #[tokio::test]
    async fn a_process_that_reuses_the_pid_of_the_command_is_not_killed() {
        adopt_orphans().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; wait"]).process_group(0).kill_on_drop(true);
        let (mut child, other, _awaited) = spawn_awaited_child(command.stdout(Stdio::piped())).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let child_of_other = Pid::from_raw(lines.next_line().await.unwrap().unwrap().parse().unwrap());
        let reaped = Process { started_ticks: other.started_ticks.map(|started| started - 1), ..other };
        for is_reaped in [false, true] {
            let mut scope = ProcessScope::new(reaped, None, b"SCOPE_TEST=reused".into());
            if is_reaped {
                scope.set_leader_reaped();
            }
            scope.signal_group(Signal::SIGTERM);
            scope.kill_found_processes();
            assert_eq!(scope.kill_until_gone().await, 0);
            drop(ProcessScope::new(reaped, None, b"SCOPE_TEST=reused".into()));
        }
        sleep(Duration::from_millis(50)).await;
        assert!(is_running(other.pid) && is_running(child_of_other));
        signal_process_group(other.pid, Signal::SIGKILL).unwrap();
        child.wait().await.unwrap();
    }

    #[tokio::test]
    async fn an_orphan_without_a_main_thread_does_not_delay_other_attempts() {
        let Ok(python) = std::process::Command::new("python3")
            .args(["-c", "import ctypes, sys; print(sys.executable)"])
            .output()
        else {
            eprintln!("skipped: needs python3");
            return;
        };
        let python = String::from_utf8(python.stdout).unwrap();
        let script = "import ctypes, os, threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n\
                      print(os.getpid(), flush=True)\nos.close(1)\nctypes.CDLL(None).pthread_exit(None)";
        let detach = |test| format!("cat; SCOPE_TEST={test} setsid {} -c '{script}' &", python.trim());
        let (other, killed) = run_script_and_end_scope("threads", &detach("thread-of-other"), None).await;
        assert_eq!(killed, 0);
        let begun = Instant::now();
        run_script_and_end_scope("threadless", "cat; echo 2", None).await;
        let duration = begun.elapsed();
        let (own, killed) = run_script_and_end_scope("threads", &detach("threads"), None).await;
        let other_exists = ProcessStat::read(other).is_some();
        kill_process(other).unwrap();
        assert_eq!(killed, 1);
        assert!(other_exists && duration < SCOPE_KILL_TIMEOUT, "{duration:?}");
        // The orphan is reaped when no other test starts a command.
        let deadline = Instant::now() + Duration::from_secs(10);
        while ProcessStat::read(own).is_some() {
            assert!(Instant::now() < deadline);
            list_and_reap_orphans();
            sleep(SCOPE_KILL_INTERVAL).await;
        }
    }
}
