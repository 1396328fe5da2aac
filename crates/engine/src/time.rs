//! The one place that reads the clock, for the engine and for those who build on it. Everything below is told what
//! time it is.

use std::time::{Duration, SystemTime};

use pointsman_core::Timestamp;

/// What the clock says now. A clock that stands before 1970 is taken to stand at its beginning.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::MIN.plus(since)
}

/// How long to wait between tries at a store that does not answer: a little at first, then longer.
#[derive(Debug)]
pub(crate) struct Patience {
    next: Duration,
}

impl Patience {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);

    pub(crate) fn new() -> Self {
        Self { next: Self::FIRST }
    }

    /// The wait before the next try.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(Self::LONGEST);
        wait
    }

    /// It answered.
    pub(crate) fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_to_its_limit_and_starts_over() {
        let mut patience = Patience::new();
        let waits: Vec<_> = (0..10).map(|_| patience.wait()).collect();
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(waits[9], Patience::LONGEST);
        patience.reset();
        assert_eq!(patience.wait(), Patience::FIRST);
    }
}
