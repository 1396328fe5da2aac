//! Waiting between tries.

use std::time::Duration;

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
