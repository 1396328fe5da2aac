//! The time for a store's background jobs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pointsman_core::Timestamp;

/// The current time according to the callers of a store: the time that one of them reported last, when its node joined
/// or sent a heartbeat, advanced by the monotonic clock. A store that drains an outbox by itself uses this time,
/// because no caller passes one and this machine's clock may be off.
#[derive(Debug)]
pub struct CallerTimeSource {
    last_report: Mutex<(Timestamp, Instant)>,
}

impl Default for CallerTimeSource {
    fn default() -> Self {
        Self::from_start_time(Timestamp::MIN)
    }
}

impl CallerTimeSource {
    pub fn from_start_time(now: Timestamp) -> Self {
        Self { last_report: Mutex::new((now, Instant::now())) }
    }

    /// Records the time that a caller reports.
    pub fn record_reported_time(&self, now: Timestamp) {
        *self.lock_last_report() = (now, Instant::now());
    }

    pub fn now(&self) -> Timestamp {
        let (reported, at) = *self.lock_last_report();
        reported.plus(at.elapsed())
    }

    fn lock_last_report(&self) -> MutexGuard<'_, (Timestamp, Instant)> {
        self.last_report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_recorded_time_applies_even_if_it_is_earlier() {
        let time = CallerTimeSource::from_start_time(Timestamp::from_millis(1_800_000_000_000));
        let (first, second) = (time.now(), time.now());
        assert!(first <= second);
        time.record_reported_time(Timestamp::from_millis(1_000));
        assert!(time.now() >= Timestamp::from_millis(1_000) && time.now() < first);
    }
}
