//! Limits connections by the open file limit of the process. Each connection uses a file descriptor, and so do the
//! store, commands and HTTP handlers, for which some are reserved.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::lingering::MAX_LINGERING_CONNECTIONS;

/// File descriptors reserved for everything but admitted connections and running tasks. Connections that are being
/// refused or closed use some of them.
const RESERVED_FILE_DESCRIPTORS: u64 = 128 + MAX_LINGERING_CONNECTIONS as u64;
/// File descriptors reserved for each running task.
const FILE_DESCRIPTORS_PER_TASK: u64 = 8;

/// Raises the soft limit of open files as far as `requested` connections beside `tasks` running tasks need it and the
/// hard limit permits. Returns the number of connections that the limit then allows, at most `requested`.
pub(crate) fn raise_open_file_limit_for_connections(requested: usize, tasks: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return requested };
    let reserved_files = RESERVED_FILE_DESCRIPTORS + FILE_DESCRIPTORS_PER_TASK * tasks as u64;
    let needed = reserved_files.saturating_add(requested as u64);
    let raised = needed.min(hard);
    let files = match soft < raised && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() {
        true => raised,
        false => soft,
    };
    let connections = connections_that_fit(requested, files, reserved_files);
    if connections < requested {
        tracing::warn!(
            allowed_connections = connections,
            configured_connections = requested,
            open_file_limit = files,
            "the open file limit allows fewer connections than `server.max_connections`; raise the limit (ulimit -n), \
             or lower the setting"
        );
    }
    connections
}

/// The number of connections for which unreserved file descriptors are left, or half of all file descriptors if that is
/// more; at most `requested`.
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
