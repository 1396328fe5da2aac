//! Delays between retries of store calls.

use std::time::Duration;

/// The delays between retries of a failed store call: exponential, with a maximum.
#[derive(Debug)]
pub(crate) struct StoreBackoff {
    delay: Duration,
}

impl StoreBackoff {
    const MIN_DELAY: Duration = Duration::from_millis(50);
    const MAX_DELAY: Duration = Duration::from_secs(5);

    pub(crate) fn new() -> Self {
        Self { delay: Self::MIN_DELAY }
    }

    /// The delay before the next retry.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let wait = self.delay;
        self.delay = (wait * 2).min(Self::MAX_DELAY);
        wait
    }

    /// Starts again with the shortest delay, after a call that succeeded.
    pub(crate) fn reset(&mut self) {
        self.delay = Self::MIN_DELAY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_limit_and_reset() {
        let mut backoff = StoreBackoff::new();
        let waits: Vec<_> = (0..10).map(|_| backoff.next_delay()).collect();
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(waits[9], StoreBackoff::MAX_DELAY);
        backoff.reset();
        assert_eq!(backoff.next_delay(), StoreBackoff::MIN_DELAY);
    }
}
