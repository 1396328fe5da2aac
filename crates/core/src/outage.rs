//! Throttles log lines about an operation that keeps failing: one when it starts to fail, one now and then while it
//! fails, and one when it works again.

use std::time::{Duration, Instant};

/// The minimum time between two log lines about failures.
const MIN_NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// Tracks whether an operation fails, and decides when a notice about it is logged.
#[derive(Debug, Default)]
pub struct OutageTracker {
    failing_since: Option<Instant>,
    last_notice_at: Option<Instant>,
    /// The number of failures in this outage.
    failure_count: u64,
    /// Whether a notice about the start of this outage has been returned.
    start_noticed: bool,
}

/// A change of an outage that is worth a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageNotice {
    /// The outage has begun.
    Started,
    /// The outage goes on.
    Ongoing {
        /// The number of failures so far.
        failures: u64,
    },
    /// The outage is over.
    Ended {
        /// How long the outage lasted.
        duration: Duration,
        /// The number of failures during the outage.
        failures: u64,
    },
}

impl OutageTracker {
    /// Counts a failure. An outage that starts soon after the previous notice gets a notice only if it lasts.
    pub fn record_failure(&mut self, now: Instant) -> Option<OutageNotice> {
        self.failing_since.get_or_insert(now);
        self.failure_count += 1;
        if self
            .last_notice_at
            .is_some_and(|last_notice_at| now.saturating_duration_since(last_notice_at) < MIN_NOTICE_INTERVAL)
        {
            return None;
        }
        self.last_notice_at = Some(now);
        match std::mem::replace(&mut self.start_noticed, true) {
            false => Some(OutageNotice::Started),
            true => Some(OutageNotice::Ongoing { failures: self.failure_count }),
        }
    }

    /// Ends the outage. Returns a notice of its end only if there was one of its start.
    pub fn record_success(&mut self, now: Instant) -> Option<OutageNotice> {
        let failing_since = self.failing_since.take()?;
        let (start_noticed, failures) =
            (std::mem::take(&mut self.start_noticed), std::mem::take(&mut self.failure_count));
        start_noticed
            .then(|| OutageNotice::Ended { duration: now.saturating_duration_since(failing_since), failures })
    }

    /// Since when the operation has been failing, if it is.
    pub fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn start_and_end_of_an_outage_are_noticed_and_few_failures_between() {
        let (mut tracker, start) = (OutageTracker::default(), Instant::now());
        assert_eq!(tracker.record_success(start), None);
        let notices: Vec<_> =
            (0..250).filter_map(|tenth| tracker.record_failure(start + seconds(tenth) / 10)).collect();
        assert_eq!(
            notices,
            [
                OutageNotice::Started,
                OutageNotice::Ongoing { failures: 101 },
                OutageNotice::Ongoing { failures: 201 }
            ]
        );
        assert_eq!(
            tracker.record_success(start + seconds(25)),
            Some(OutageNotice::Ended { duration: seconds(25), failures: 250 })
        );
        assert_eq!((tracker.record_success(start + seconds(26)), tracker.failing_since()), (None, None));
    }

    #[test]
    fn notices_of_short_repeated_outages_are_throttled() {
        let (mut tracker, start) = (OutageTracker::default(), Instant::now());
        let mut notices = 0;
        for second in 0..100 {
            let now = start + seconds(second);
            notices += usize::from(tracker.record_failure(now).is_some())
                + usize::from(tracker.record_success(now).is_some());
        }
        assert_eq!(notices, 20);
    }
}
