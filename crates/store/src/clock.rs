//! The clock of a server beside ours, where a store lies on one. Nodes judge each other by it: a node is silent, and a worker's lease has run out, when
//! that is so in the server's time, because no two machines have quite the same.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_core::Timestamp;

/// Clocks that differ by less agree.
const SLACK: i64 = 1_000_000;

#[derive(Debug, Default)]
pub struct Clock {
    /// By how many microseconds the server's clock is ahead of ours.
    ahead: Cell<i64>,
}

impl Clock {
    /// The server has said that it is this time, and was asked when ours was `asked`. An answer that took long says too
    /// little.
    pub fn compare(&self, theirs: i64, asked: i64) {
        let ours = now();
        if ours.saturating_sub(asked) < SLACK {
            self.differs(theirs.saturating_sub(ours));
        }
    }

    /// What is little more or less than before is taken for the time that an answer needs.
    fn differs(&self, ahead: i64) {
        if (ahead.saturating_sub(self.ahead.get())).abs() < SLACK {
            return;
        }
        let ahead = if ahead.abs() < SLACK { 0 } else { ahead };
        self.ahead.set(ahead);
        let seconds = -ahead as f64 / 1e6;
        match ahead {
            0 => tracing::info!("this machine's clock agrees with the database's again"),
            _ => tracing::warn!(
                "this machine's clock is {seconds:+.1} s off the database's: leases are judged by the database's, but times \
                 that are planned or told are this machine's; set the clock"
            ),
        }
    }

    pub fn skew(&self) -> i64 {
        self.ahead.get()
    }

    /// A time of ours in theirs.
    pub fn there(&self, at: Timestamp) -> i64 {
        at.micros().saturating_add(self.ahead.get())
    }

    /// A time of theirs in ours.
    pub fn here(&self, at: Timestamp) -> Timestamp {
        Timestamp::from_micros(at.micros().saturating_sub(self.ahead.get()))
    }
}

/// What time it is here, in microseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_corrected_and_small_changes_are_not_followed() {
        let clock = Clock::default();
        clock.differs(SLACK - 1);
        assert_eq!(clock.skew(), 0);
        clock.differs(SLACK + 1);
        clock.differs(SLACK - 1);
        assert_eq!(clock.skew(), SLACK + 1, "what was written by it is read by it");
        clock.differs(0);
        assert_eq!(clock.skew(), 0);
        clock.differs(-45 * SLACK);
        assert_eq!(clock.here(Timestamp::from_micros(clock.there(Timestamp::from_micros(7)))).micros(), 7);
    }

    #[test]
    fn an_answer_that_took_long_says_nothing() {
        let clock = Clock::default();
        clock.compare(now() - 30 * SLACK, now() - 40 * SLACK);
        assert_eq!(clock.skew(), 0);
        clock.compare(now() - 30 * SLACK, now());
        assert!(clock.skew() < -29 * SLACK);
    }
}
