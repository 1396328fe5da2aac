//! Reads `/proc`: the descendants of a process, and whether a variable is in its environment.

use std::fs;

use nix::unistd::Pid;

use super::process::{ProcessStat, may_be_command_pid};

/// The processes below `root`, without `root` itself: its children, their children and so on.
pub(super) fn list_descendants(root: Pid) -> Vec<Pid> {
    list_descendants_except(root, |_| false)
}

/// The processes below `root`, without those that are spared and what is below them.
pub(super) fn list_descendants_except(root: Pid, is_spared: impl Fn(Pid) -> bool) -> Vec<Pid> {
    let children = |pid| list_children(pid).into_iter().filter(|child| *child != root && !is_spared(*child));
    let mut found: Vec<Pid> = children(root).collect();
    let mut next_index = 0;
    while let Some(pid) = found.get(next_index).copied() {
        next_index += 1;
        // A process that changes its parent meanwhile can be read twice.
        found.extend(children(pid));
        if found.len() > MAX_LISTED_PROCESSES {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The maximum number of processes that are listed at once, because a tree may grow while it is read. The caller kills
/// the listed processes and lists again.
const MAX_LISTED_PROCESSES: usize = 10_000;

/// The children that any thread of a process has started.
fn list_children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| parse_command_pids(&list)).collect()
}

/// The children of a process that belong to its main thread. The kernel gives orphans to that thread.
pub(super) fn list_children_of_main_thread(pid: Pid) -> Vec<Pid> {
    parse_command_pids(&fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default())
}

/// Parses a list of pids from the kernel, without those that no process of a command can have.
pub(super) fn parse_command_pids(text: &str) -> Vec<Pid> {
    let pids = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).map(Pid::from_raw);
    pids.filter(|pid| may_be_command_pid(*pid)).collect()
}

/// Whether a process was started with a variable in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnvVariablePresence {
    Present,
    Absent,
    /// The process has neither arguments nor an environment: it is about to become another program, or is just ending.
    Unknown,
}

/// Whether the environment of a process has this `NAME=value`. `Absent` if the environment cannot be read: the process
/// has ended, or belongs to a user whose processes this one may not inspect.
pub(super) fn env_variable_presence(pid: Pid, variable: &[u8]) -> EnvVariablePresence {
    // A process that becomes another program while its environment is read seems to have none.
    for _ in 0..MAX_EMPTY_ENVIRONMENT_READS {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(environment) if environment.is_empty() => {}
            Ok(environment) if contains_variable(&environment, variable) => {
                return EnvVariablePresence::Present;
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {
                return env_variable_presence_in_threads(pid, variable);
            }
            Ok(_) | Err(_) => return EnvVariablePresence::Absent,
        }
        if fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| arguments.is_empty()) {
            return env_variable_presence_in_threads(pid, variable);
        }
    }
    EnvVariablePresence::Absent
}

/// Checks the environment of the other threads if the main thread shows none. If that thread has ended, others may
/// still run and show it; if none does, the process has ended.
fn env_variable_presence_in_threads(pid: Pid, variable: &[u8]) -> EnvVariablePresence {
    match ProcessStat::read(pid) {
        None => return EnvVariablePresence::Absent,
        Some(stat) if !stat.is_zombie => return EnvVariablePresence::Unknown,
        Some(_) => {}
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut environments = threads.filter_map(|thread| fs::read(thread.path().join("environ")).ok());
    match environments.any(|environment| contains_variable(&environment, variable)) {
        true => EnvVariablePresence::Present,
        false => EnvVariablePresence::Absent,
    }
}

fn contains_variable(environment: &[u8], variable: &[u8]) -> bool {
    environment.split(|byte| *byte == 0).any(|entry| entry == variable)
}

/// How often an environment is read as empty before the process counts as one without variables.
const MAX_EMPTY_ENVIRONMENT_READS: usize = 4;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use nix::unistd::getpid;

    use super::*;

    #[test]
    fn pids_that_no_command_has_are_not_listed() {
        let text = format!("0\n1\n-1\n{}\n4711\n", getpid());
        assert_eq!(parse_command_pids(&text), [Pid::from_raw(4711)]);
    }

    /// Starts a process that has a variable in its environment and ends when its stdin does.
    fn start_process_with_variable(program: &str, arguments: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(arguments).env("THREAD_TEST", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    fn child_pid(child: &Child) -> Pid {
        Pid::from_raw(child.id().try_into().unwrap())
    }

    fn wait_for_zombie(pid: Pid) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !ProcessStat::read(pid).unwrap().is_zombie {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_process_that_has_ended_shows_no_environment_variable() {
        let mut child = start_process_with_variable("cat", &[]);
        let mut echo = BufReader::new(child.stdout.take().unwrap());
        child.stdin.as_mut().unwrap().write_all(b"runs\n").unwrap();
        echo.read_line(&mut String::new()).unwrap();
        assert_eq!(env_variable_presence(child_pid(&child), b"THREAD_TEST=1"), EnvVariablePresence::Present);
        assert_eq!(env_variable_presence(child_pid(&child), b"THREAD_TEST=2"), EnvVariablePresence::Absent);
        drop(child.stdin.take());
        wait_for_zombie(child_pid(&child));
        assert_eq!(env_variable_presence(child_pid(&child), b"THREAD_TEST=1"), EnvVariablePresence::Absent);
        child.wait().unwrap();
    }

    #[test]
    fn the_threads_of_a_process_show_its_environment_when_its_main_thread_has_ended() {
        // Ends the main thread alone, while another one waits for the end of stdin.
        let script = "import ctypes, sys, threading\n\
                      threading.Thread(target=sys.stdin.read).start()\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let Ok(true) = Command::new("python3").args(["-c", "import ctypes"]).status().map(|s| s.success())
        else {
            eprintln!("skipped: needs python3 with ctypes");
            return;
        };
        // The launcher of a version manager would start another process.
        let python =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        let mut child =
            start_process_with_variable(String::from_utf8(python.stdout).unwrap().trim(), &["-c", script]);
        wait_for_zombie(child_pid(&child));
        assert_eq!(env_variable_presence(child_pid(&child), b"THREAD_TEST=1"), EnvVariablePresence::Present);
        assert_eq!(env_variable_presence(child_pid(&child), b"THREAD_TEST=2"), EnvVariablePresence::Absent);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
