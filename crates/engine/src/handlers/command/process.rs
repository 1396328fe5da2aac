//! One process: its state in `/proc`, its identity beyond the pid, and signals that never reach another process.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid};

/// The fields of `/proc/PID/stat` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessStat {
    /// Whether the main thread of the process has ended. Its other threads may still run.
    pub(super) is_zombie: bool,
    pub(super) process_group_id: Pid,
    /// When it was started, in clock ticks since the system's start.
    started_ticks: u64,
}

impl ProcessStat {
    /// Reads `/proc/PID/stat`; `None` for a process that does not exist, or that this process may not see.
    pub(super) fn read(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses, and may contain anything.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().collect();
        Some(Self {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            process_group_id: Pid::from_raw(fields.get(2)?.parse().ok()?),
            started_ticks: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Identifies a process by its pid and its start, so that a process which is given the same pid later differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// `None` if `/proc` did not show the process.
    pub(super) started_ticks: Option<u64>,
}

impl Process {
    /// The process that now has this pid.
    pub(super) fn from_pid(pid: Pid) -> Self {
        Self { pid, started_ticks: ProcessStat::read(pid).map(|stat| stat.started_ticks) }
    }

    /// Whether the pid still belongs to this process, which runs or has not been reaped. False if its start is unknown.
    pub(super) fn exists(self) -> bool {
        self.started_ticks.is_some() && Self::from_pid(self.pid) == self
    }
}

/// Whether a pid may be signalled or moved as the process of a command. To `kill`, 0 is this process's own group; in
/// `cgroup.procs` it is the writing process, and the kernel shows it for a process that is reaped while it is listed.
pub(super) fn may_be_command_pid(pid: Pid) -> bool {
    pid.as_raw() > 1 && pid != getpid()
}

/// Kills a process. A process that has ended is not an error.
pub(super) fn kill_process(pid: Pid) -> Result<(), Errno> {
    match may_be_command_pid(pid) {
        true => ignore_no_such_process(kill(pid, Signal::SIGKILL)),
        false => Err(Errno::EINVAL),
    }
}

/// Signals a process group. A group without processes is not an error.
pub(super) fn signal_process_group(group: Pid, signal: Signal) -> Result<(), Errno> {
    match may_be_command_pid(group) {
        true => ignore_no_such_process(killpg(group, signal)),
        false => Err(Errno::EINVAL),
    }
}

fn ignore_no_such_process(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::ESRCH) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_fields_are_parsed_after_the_program_name() {
        let line = b"7 (a) Z 1 ) (\xff) S 1 70 71 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 4711 9 9\n";
        assert_eq!(
            ProcessStat::parse(line),
            Some(ProcessStat { is_zombie: false, process_group_id: Pid::from_raw(70), started_ticks: 4711 })
        );
        assert_eq!(ProcessStat::parse(b"7 (a) Z 1"), None);
        assert!(Process::from_pid(getpid()).exists());
        assert!(!Process::from_pid(Pid::from_raw(i32::MAX)).exists());
        assert!(!Process { pid: getpid(), started_ticks: Some(0) }.exists());
    }

    #[test]
    fn neither_this_process_nor_its_group_nor_init_is_ever_killed() {
        for pid in [Pid::from_raw(0), Pid::from_raw(1), Pid::from_raw(-1), getpid()] {
            assert_eq!(kill_process(pid), Err(Errno::EINVAL), "{pid}");
            assert_eq!(signal_process_group(pid, Signal::SIGKILL), Err(Errno::EINVAL), "{pid}");
        }
        assert_eq!(kill_process(Pid::from_raw(i32::MAX)), Ok(()));
    }
}
