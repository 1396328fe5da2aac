//! The server's clock beside ours. Nodes judge each other by it: a node is silent, and a worker's lease has run out, when
//! that is so in the server's time, because no two machines have quite the same.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_core::Timestamp;

/// What differs by less is taken for the time that an answer needs.
const SLACK: i64 = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// By how many microseconds the server's clock is ahead of ours.
    ahead: Cell<i64>,
}

impl Clock {
    /// The server has just said that it is this time.
    pub(crate) fn compare(&self, theirs: i64) {
        let ours = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ahead = theirs - i64::try_from(ours.as_micros()).unwrap_or(i64::MAX);
        let ahead = if ahead.abs() < SLACK { 0 } else { ahead };
        let before = self.ahead.replace(ahead);
        if (ahead - before).abs() >= SLACK {
            let seconds = -ahead as f64 / 1e6;
            match ahead {
                0 => tracing::info!("this machine's clock agrees with the database's again"),
                _ => tracing::warn!(
                    "this machine's clock is {seconds:+.1} s off the database's: leases are judged by the database's, but \
                     times that are planned or told are this machine's; set the clock"
                ),
            }
        }
    }

    pub(crate) fn skew(&self) -> i64 {
        self.ahead.get()
    }

    /// A time of ours in theirs.
    pub(crate) fn there(&self, at: Timestamp) -> i64 {
        at.micros().saturating_add(self.ahead.get())
    }

    /// A time of theirs in ours.
    pub(crate) fn here(&self, at: Timestamp) -> Timestamp {
        Timestamp::from_micros(at.micros().saturating_sub(self.ahead.get()))
    }
}
