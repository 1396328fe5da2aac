//! How many connections there is room for: each takes a file, of which a process may have only so many open. The
//! store, commands and HTTP handlers need files too, and whoever merely connects must not take those.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::lingering::MAX_LINGERING;

/// Files that are kept for all but admitted connections, those that are being refused or closed among them, and those
/// for each task that runs.
const RESERVED_FILES: u64 = 128 + MAX_LINGERING as u64;
const FILES_PER_TASK: u64 = 8;

/// As many connections as wished, or as the process can have beside so many tasks. Its own limit is raised for
/// that as far as the system lets it.
pub(crate) fn max_connections_for_open_files(requested: usize, tasks: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return requested };
    let reserved_files = RESERVED_FILES + FILES_PER_TASK * tasks as u64;
    let needed = reserved_files.saturating_add(requested as u64);
    let raised = needed.min(hard);
    let files = match soft < raised && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() {
        true => raised,
        false => soft,
    };
    let connections = connections_that_fit(requested, files, reserved_files);
    if connections < requested {
        tracing::warn!(
            "the process may open {files} files, so that it takes {connections} connections at a time, not {requested}"
        );
    }
    connections
}

/// However few files there are, half of them are for connections.
fn connections_that_fit(requested: usize, files: u64, reserved_files: u64) -> usize {
    let available_files = files.saturating_sub(reserved_files).max(files / 2).max(1);
    requested.min(usize::try_from(available_files).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_file_descriptors_for_the_store_and_tasks() {
        assert_eq!(connections_that_fit(1024, 1_000_000, 256), 1024);
        assert_eq!(connections_that_fit(1024, 1024, 256), 768);
        assert_eq!(connections_that_fit(1024, 200, 256), 100);
        assert_eq!(connections_that_fit(1024, 0, 256), 1);
        assert_eq!(connections_that_fit(10, 1024, 256), 10);
    }
}
