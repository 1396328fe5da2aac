//! The limit on open files: each reader uses two files of this process, one at either end of its connection.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The number of files that are left for everything else: two stores, the program itself, and the files that the servers
/// reserve for tasks.
const RESERVED_FILES: u64 = 1_000;

/// Returns the requested number of readers, or as many as the limit on open files allows. Raises the limit of this
/// process as far as possible.
pub(super) fn raise_file_limit_and_cap_readers(requested: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return requested };
    let raised = (RESERVED_FILES + 2 * requested as u64).min(hard);
    let files = match soft < raised && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() {
        true => raised,
        false => soft,
    };
    cap_reader_count_for_file_limit(requested, files)
}

/// Returns how many of the requested readers can run with this many open files: an even number, because half of them use
/// each protocol.
fn cap_reader_count_for_file_limit(requested: usize, files: u64) -> usize {
    let max_readers = files.saturating_sub(RESERVED_FILES).max(files / 2) / 2;
    requested.min(usize::try_from(max_readers).unwrap_or(usize::MAX)) & !1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_leave_reserved_files_free() {
        assert_eq!(cap_reader_count_for_file_limit(2_000, 20_000), 2_000);
        assert_eq!(cap_reader_count_for_file_limit(2_000, 4_096), 1_548);
        assert_eq!(cap_reader_count_for_file_limit(2_000, 1_024), 256);
    }
}
