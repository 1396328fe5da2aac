//! Parents and states of processes, read from `/proc`.

use std::fs;

/// The fields of `/proc/PID/stat` that are used here.
struct ProcessStat {
    /// `R`, `S`, `T`, `Z` and so on.
    state: char,
    parent_pid: u32,
}

/// Reads the state and the parent of a process; None if the process does not exist.
fn read_process_stat(pid: u32) -> Option<ProcessStat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses, and may contain parentheses and blanks itself.
    let (_, fields_after_name) = line.rsplit_once(')')?;
    let mut fields = fields_after_name.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some(ProcessStat { state, parent_pid: fields.next()?.parse().ok()? })
}

/// Whether a process has not ended. A zombie counts as ended: only its parent has not waited for it.
pub(crate) fn is_alive(pid: u32) -> bool {
    read_process_stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether a process was stopped by SIGSTOP, or has ended.
pub(crate) fn is_stopped_or_ended(pid: u32) -> bool {
    read_process_stat(pid).is_none_or(|stat| matches!(stat.state, 'T' | 'Z' | 'X'))
}

/// Lists the direct children of a process.
pub(crate) fn list_child_pids(parent: u32) -> anyhow::Result<Vec<u32>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse().ok());
    Ok(pids.filter(|pid| read_process_stat(*pid).is_some_and(|stat| stat.parent_pid == parent)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_processes_are_listed_until_they_end() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        assert!(
            list_child_pids(std::process::id()).unwrap().contains(&pid)
                && is_alive(pid)
                && !is_stopped_or_ended(pid)
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!list_child_pids(std::process::id()).unwrap().contains(&pid) && !is_alive(pid));
    }
}
