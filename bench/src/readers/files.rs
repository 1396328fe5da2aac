//! How many readers there is room for: each takes two files of this process, one at either end of its connection.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files for everything else: two stores, the program itself, and what the servers keep back for tasks.
const KEPT: u64 = 1_000;

/// As many readers as wished, or as many as there can be files for. The process's own limit is raised for that as far
/// as the system lets it.
pub(super) fn readers(wished: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return wished };
    let raised = (KEPT + 2 * wished as u64).min(hard);
    let files = match soft < raised && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() {
        true => raised,
        false => soft,
    };
    fitting(wished, files)
}

/// An even number, for half of them read in the one way and half in the other.
fn fitting(wished: usize, files: u64) -> usize {
    let room = files.saturating_sub(KEPT).max(files / 2) / 2;
    wished.min(usize::try_from(room).unwrap_or(usize::MAX)) & !1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_leave_files_for_the_rest() {
        assert_eq!(fitting(2_000, 20_000), 2_000);
        assert_eq!(fitting(2_000, 4_096), 1_548);
        assert_eq!(fitting(2_000, 1_024), 256);
    }
}
