//! Open streams and long polls, counted per token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::auth::{Caller, TokenHash};
use crate::metrics::HttpMetrics;
use crate::problem::Problem;

/// Limits the open streams and long polls of each token. A stream or long poll occupies a connection as long as its
/// client keeps it open.
#[derive(Debug)]
pub(crate) struct StreamLimiter {
    max_per_token: usize,
    open_stream_count_by_token: Mutex<HashMap<TokenHash, usize>>,
    metrics: Arc<HttpMetrics>,
}

/// Counts a stream of a token as open until this is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limiter: Arc<StreamLimiter>,
    token_hash: TokenHash,
}

impl StreamLimiter {
    pub(crate) fn new(max_per_token: usize, metrics: Arc<HttpMetrics>) -> Arc<Self> {
        Arc::new(Self { max_per_token, open_stream_count_by_token: Mutex::default(), metrics })
    }

    /// Counts one more stream of a token, or refuses the request if the token has reached its limit.
    pub(crate) fn try_acquire_permit(self: &Arc<Self>, caller: &Caller) -> Result<StreamPermit, Problem> {
        let token = caller.token_hash();
        let mut counts = self.lock_counts();
        let count = counts.entry(token).or_default();
        if *count >= self.max_per_token {
            self.metrics.count_refused_stream();
            return Err(Problem::unavailable(format!(
                "the token {:?} has {} streams and long polls open, which is the limit; close some of them, or \
                 raise `server.limits.streams_per_client`",
                caller.token_name, self.max_per_token
            )));
        }
        *count += 1;
        Ok(StreamPermit { limiter: self.clone(), token_hash: token })
    }

    /// The number of open streams of all tokens.
    pub(crate) fn count_open_streams(&self) -> usize {
        self.lock_counts().values().sum()
    }

    fn lock_counts(&self) -> MutexGuard<'_, HashMap<TokenHash, usize>> {
        self.open_stream_count_by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.limiter.lock_counts();
        if let Some(count) = counts.get_mut(&self.token_hash) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.token_hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::test_caller;
    use super::*;

    #[test]
    fn each_token_has_its_own_stream_limit() {
        let limiter = StreamLimiter::new(2, Arc::default());
        let (one, other) = (test_caller("one"), test_caller("other"));
        let held = [limiter.try_acquire_permit(&one).unwrap(), limiter.try_acquire_permit(&one).unwrap()];
        assert!(limiter.try_acquire_permit(&one).is_err());
        let _other = limiter.try_acquire_permit(&other).unwrap();
        assert_eq!(limiter.count_open_streams(), 3);
        drop(held);
        assert!(limiter.try_acquire_permit(&one).is_ok());
        assert_eq!(limiter.lock_counts().len(), 1, "tokens without streams are not kept");
    }
}
