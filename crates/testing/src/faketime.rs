//! What processes under faketime leave behind.

use std::fs;
use std::path::Path;

/// Where libfaketime keeps a semaphore and some memory for each process, named by its pid.
const SHARED_MEMORY: &str = "/dev/shm";
const PREFIXES: [&str; 2] = ["sem.faketime_sem_", "faketime_shm_"];

/// Removes what killed processes have left. Another process that is given the pid of one of them could not start under
/// faketime.
pub fn remove_stale_faketime() {
    let Ok(entries) = fs::read_dir(SHARED_MEMORY) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = PREFIXES.iter().find_map(|prefix| name.to_str()?.strip_prefix(prefix)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_dead_processes_are_removed_and_those_of_others_are_not() {
        let file = |pid: u32| format!("{SHARED_MEMORY}/{}{pid}", PREFIXES[1]);
        // No process has this pid: it is larger than any that Linux gives.
        let (dead, own) = (file(4_194_305), file(std::process::id()));
        for path in [&dead, &own] {
            fs::write(path, "").unwrap();
        }
        remove_stale_faketime();
        assert!(!Path::new(&dead).exists() && Path::new(&own).exists());
        fs::remove_file(own).unwrap();
    }
}
