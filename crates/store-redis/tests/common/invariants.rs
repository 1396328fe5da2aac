//! Checks the invariants of document 001 on the real keys while a test runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::redis_location::{RawClient, RedisLocation};
use super::wait_until;

const INVARIANTS_LUA: &str = include_str!("invariants.lua");
/// Pause between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Returns the current violations of the invariants; if `must_be_drained`, also all events and workers that remain.
pub(crate) fn find_violations(client: &mut RawClient, must_be_drained: bool) -> anyhow::Result<Vec<String>> {
    let (prefix, must_be_drained) = (client.prefix.clone(), if must_be_drained { "1" } else { "0" });
    Ok(client.try_run_command(&["EVAL", INVARIANTS_LUA, "0", &prefix, must_be_drained])?.texts())
}

/// Waits until all pushed events are journaled and no worker keys remain.
pub(crate) async fn wait_until_outbox_is_drained(location: &RedisLocation) {
    let mut client = location.connect();
    let mut found = vec![];
    let drained = wait_until("the outbox is drained", async || {
        found = find_violations(&mut client, true).unwrap();
        found.is_empty()
    });
    drained.await;
}

/// Checks the invariants continuously on its own connection.
pub(crate) struct InvariantMonitor {
    stop_requested: Arc<AtomicBool>,
    violations: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<u64>,
}

impl InvariantMonitor {
    pub(crate) fn start(location: &RedisLocation) -> Self {
        let (stop_requested, violations) =
            (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
        let (location, stopped, all_violations) =
            (location.clone(), stop_requested.clone(), violations.clone());
        let thread = std::thread::spawn(move || {
            let (mut client, mut check_count) = (None, 0);
            while !stopped.load(Ordering::Relaxed) {
                // Connects at first, and again after the server was down.
                client = client.or_else(|| location.try_connect().ok());
                match client.as_mut().map(|client| find_violations(client, false)) {
                    Some(Ok(found)) => {
                        all_violations.lock().unwrap().extend(found);
                        check_count += 1;
                    }
                    Some(Err(_)) | None => client = None,
                }
                std::thread::sleep(CHECK_INTERVAL);
            }
            check_count
        });
        Self { stop_requested, violations, thread }
    }

    pub(crate) fn has_violations(&self) -> bool {
        !self.violations.lock().unwrap().is_empty()
    }

    /// Stops; returns the violations and the number of checks.
    pub(crate) fn stop(self) -> (Vec<String>, u64) {
        self.stop_requested.store(true, Ordering::Relaxed);
        let check_count = self.thread.join().unwrap();
        let found = std::mem::take(&mut *self.violations.lock().unwrap());
        (found, check_count)
    }

    /// Stops, and asserts that there were no violations.
    pub(crate) fn stop_and_assert_no_violations(self) {
        let (found, check_count) = self.stop();
        let first: Vec<_> = found.iter().take(10).collect();
        assert!(found.is_empty(), "{} violations: {first:#?}", found.len());
        assert!(check_count > 0, "the monitor has checked nothing");
    }
}
