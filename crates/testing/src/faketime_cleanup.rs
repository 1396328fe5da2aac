//! Cleanup of the files that processes under faketime leave behind.

use std::fs;
use std::path::Path;

/// The folder where libfaketime keeps a semaphore and shared memory for each process, named by its pid.
const SHARED_MEMORY_FOLDER: &str = "/dev/shm";
const FAKETIME_FILE_PREFIXES: [&str; 2] = ["sem.faketime_sem_", "faketime_shm_"];

/// Removes the files of killed processes. A new process that gets the pid of one of them could not start under
/// faketime.
pub fn remove_stale_faketime_files() {
    let Ok(entries) = fs::read_dir(SHARED_MEMORY_FOLDER) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = FAKETIME_FILE_PREFIXES
            .iter()
            .find_map(|prefix| name.to_str()?.strip_prefix(prefix)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Another process may have removed it already.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_dead_processes_are_removed_and_files_of_live_ones_are_kept() {
        let file = |pid: u32| format!("{SHARED_MEMORY_FOLDER}/{}{pid}", FAKETIME_FILE_PREFIXES[1]);
        // No process has this pid: it is larger than any pid that Linux assigns.
        let (dead, own) = (file(4_194_305), file(std::process::id()));
        for path in [&dead, &own] {
            fs::write(path, "").unwrap();
        }
        remove_stale_faketime_files();
        assert!(!Path::new(&dead).exists() && Path::new(&own).exists());
        fs::remove_file(own).unwrap();
    }
}
