//! The time for a store's background jobs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pointsman_core::Timestamp;

/// The current time according to the callers of a store: the time that one of them reported last, when its node joined
/// or sent a heartbeat, advanced by the monotonic clock. A store that drains an outbox by itself uses this time,
/// because no caller passes one and this machine's clock may be off.
#[derive(Debug)]
pub struct CallerTime {
    reported: Mutex<(Timestamp, Instant)>,
}

impl Default for CallerTime {
    fn default() -> Self {
        Self::starting_at(Timestamp::MIN)
    }
}

impl CallerTime {
    pub fn starting_at(now: Timestamp) -> Self {
        Self { reported: Mutex::new((now, Instant::now())) }
    }

    /// Records the time that a caller reports.
    pub fn report(&self, now: Timestamp) {
        *self.lock_reported() = (now, Instant::now());
    }

    pub fn now(&self) -> Timestamp {
        let (reported, at) = *self.lock_reported();
        reported.plus(at.elapsed())
    }

    fn lock_reported(&self) -> MutexGuard<'_, (Timestamp, Instant)> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_reported_time_counts_even_if_it_is_earlier() {
        let time = CallerTime::starting_at(Timestamp::from_millis(1_800_000_000_000));
        let (first, second) = (time.now(), time.now());
        assert!(first <= second);
        time.report(Timestamp::from_millis(1_000));
        assert!(time.now() >= Timestamp::from_millis(1_000) && time.now() < first);
    }
}
