//! When a failed task is retried.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the delays between attempts grow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// `delay`, then twice as long each time up to `max_delay`, reduced by a jitter of up to a fifth so that
    /// tasks that failed together are not retried together.
    Exponential,
    /// `delay`, then twice, three times and so on as long, up to `max_delay`.
    Linear,
    /// `delay` every time.
    Fixed,
    /// These delays, in order; the last one repeats.
    List(Vec<Duration>),
}

/// How often and after which delays a failed task is retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The maximum number of retries: with 2, the third failure is final.
    #[serde(rename = "max")]
    pub max_retries: u32,
    /// How the delay grows from one retry to the next.
    pub backoff: Backoff,
    /// The delay before the first retry, from which `backoff` computes the others.
    pub delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            backoff: Backoff::Exponential,
            delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// The delay before retry number `retry` (the first is 1). `seed` decides the jitter, so that the result is the
    /// same each time it is computed for a task.
    pub fn retry_delay(&self, retry: u32, seed: u64) -> Duration {
        match &self.backoff {
            Backoff::Fixed => self.delay,
            Backoff::Linear => self.delay.saturating_mul(retry.max(1)).min(self.max_delay),
            Backoff::List(delays) => {
                let index = (retry.max(1) as usize - 1).min(delays.len().saturating_sub(1));
                delays.get(index).copied().unwrap_or(self.delay)
            }
            Backoff::Exponential => {
                let doublings = retry.clamp(1, 32) - 1;
                let full_delay = self.delay.saturating_mul(1 << doublings.min(31)).min(self.max_delay);
                let jitter = (mix_bits(seed ^ u64::from(retry)) >> 11) as f64 / (1u64 << 53) as f64;
                full_delay.mul_f64(1.0 - 0.2 * jitter)
            }
        }
    }
}

/// Spreads the bits of a number (the finaliser of SplitMix64).
fn mix_bits(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_backoff_doubles_within_its_jitter_up_to_the_maximum() {
        let policy = RetryPolicy { max_delay: Duration::from_secs(10), ..RetryPolicy::default() };
        for seed in 0..100 {
            for (retry, full) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (4_000_000_000, 10.0)] {
                let delay = policy.retry_delay(retry, seed).as_secs_f64();
                assert!((full * 0.8..=full).contains(&delay), "retry {retry}: {delay}");
            }
        }
        assert_ne!(policy.retry_delay(1, 1), policy.retry_delay(1, 2));
    }

    #[test]
    fn linear_backoff_grows_by_the_same_amount_up_to_the_maximum() {
        let secs = Duration::from_secs;
        let policy = RetryPolicy { backoff: Backoff::Linear, max_delay: secs(3), ..RetryPolicy::default() };
        assert_eq!([1, 2, 3, 4, u32::MAX].map(|n| policy.retry_delay(n, 0)), [1, 2, 3, 3, 3].map(secs));
    }

    #[test]
    fn a_backoff_list_repeats_its_last_delay() {
        let secs = Duration::from_secs;
        let policy =
            RetryPolicy { backoff: Backoff::List(vec![secs(1), secs(60)]), ..RetryPolicy::default() };
        assert_eq!([1, 2, 3].map(|n| policy.retry_delay(n, 0)), [secs(1), secs(60), secs(60)]);
    }
}
