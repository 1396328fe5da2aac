//! Whose child is whose, as `/proc` tells it.

use std::fs;

/// What `/proc/PID/stat` says of a process.
struct Stat {
    /// `R`, `S`, `T`, `Z` and so on.
    state: char,
    parent: u32,
}

/// None if there is no such process.
fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses, and may hold anything, parentheses and blanks too.
    let (_, after) = line.rsplit_once(')')?;
    let mut words = after.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some(Stat { state, parent: words.next()?.parse().ok()? })
}

/// Whether a process still does something. One that has ended may wait to be buried.
pub(crate) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether a process has come to a halt by SIGSTOP.
pub(crate) fn is_halted(pid: u32) -> bool {
    stat(pid).is_none_or(|stat| matches!(stat.state, 'T' | 'Z' | 'X'))
}

pub(crate) fn children(parent: u32) -> anyhow::Result<Vec<u32>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse().ok());
    Ok(pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_and_its_end_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        assert!(children(std::process::id()).unwrap().contains(&pid) && is_alive(pid) && !is_halted(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(std::process::id()).unwrap().contains(&pid) && !is_alive(pid));
    }
}
