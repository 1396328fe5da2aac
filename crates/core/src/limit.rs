//! Limits on the starts of a handler's tasks: concurrency, rate, and the circuit breaker of its target.
//!
//! All decisions are made here, from the [`LimiterAndBreakerState`] that a store keeps for each handler; the stores only persist
//! it. [`LimiterAndBreakerState::admission`] decides whether another attempt may start, and if not, until when and why.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::retry::RetryPolicy;
use crate::{Priority, Timestamp, Weight};

/// A number of starts per period (`100/m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The number of attempts that may start in each period.
    pub count: u32,
    /// The length of a period.
    #[serde(rename = "per")]
    pub period: Duration,
}

impl Rate {
    /// The time between two evenly spaced starts, in whole microseconds. Rounded up, so that the rate is not exceeded.
    pub fn start_interval(self) -> Duration {
        let micros = self.period.as_micros().div_ceil(u128::from(self.count.max(1)));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// The number of starts allowed at once after an idle time: a tenth of the count, at least 1.
    fn burst_size(self) -> u32 {
        (self.count / 10).max(1)
    }

    /// The maximum number of starts in any time shorter than the period: the count and one burst.
    pub fn max_starts_per_period(self) -> u32 {
        self.count + self.burst_size() - 1
    }
}

/// The error of a text that is no [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a rate; write one like `10/s`, `100/m`, `1000/h` or `5000/d`")]
pub struct BadRate(String);

impl std::str::FromStr for Rate {
    type Err = BadRate;
    fn from_str(text: &str) -> Result<Self, BadRate> {
        let bad = || BadRate(text.into());
        let (count, unit) = text.split_once('/').ok_or_else(bad)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Err(bad()),
        };
        let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        let count =
            count.parse().ok().filter(|n: &u32| digits && (1..=1_000_000).contains(n)).ok_or_else(bad)?;
        Ok(Self { count, period: Duration::from_secs(seconds) })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.period.as_secs() {
            1 => write!(f, "{}/s", self.count),
            60 => write!(f, "{}/m", self.count),
            3600 => write!(f, "{}/h", self.count),
            86_400 => write!(f, "{}/d", self.count),
            other => write!(f, "{} in {other} s", self.count),
        }
    }
}

/// The limits of a handler's tasks, over all nodes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The maximum number of its tasks that run at a time.
    pub concurrency: Option<u32>,
    /// The maximum number of one object's tasks that run at a time, for a handler without lanes.
    pub concurrency_per_key: Option<u32>,
    /// The maximum rate of starts.
    pub rate: Option<Rate>,
    /// The weight of the handler's queues in the round robin over the queues of a tenant.
    pub weight: Weight,
    /// A waiting task gains one point of priority each time this duration has passed.
    #[serde(rename = "ageing")]
    pub ageing_interval: Option<Duration>,
}

impl Limits {
    /// The position of a task in its queue, higher first. It never changes while the task waits: that all waiting tasks
    /// gain priority at the same speed is equivalent to giving later tasks a lower initial score.
    pub fn task_score_in_queue(&self, priority: Priority, created: Timestamp) -> i64 {
        let priority_score = i64::from(priority.get()) * SCORE_PER_PRIORITY_POINT;
        match self.ageing_interval {
            None => priority_score,
            Some(interval) => {
                let interval_millis = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
                let created_millis = created
                    .millis()
                    .saturating_sub(AGEING_EPOCH_MILLIS)
                    .clamp(0, i64::MAX / SCORE_PER_PRIORITY_POINT);
                priority_score.saturating_sub(created_millis * SCORE_PER_PRIORITY_POINT / interval_millis)
            }
        }
    }
}

/// The score of one point of priority.
const SCORE_PER_PRIORITY_POINT: i64 = 1_000_000;
/// 2020-01-01: the creation times in scores are counted from here, to keep scores small.
const AGEING_EPOCH_MILLIS: i64 = 1_577_836_800_000;

/// The health of a handler's target (the service that its attempts call), as an attempt reports it. All tasks of the
/// handler share the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetHealth {
    /// The target responded normally.
    Healthy,
    /// The target could not be reached, or failed.
    Failing,
    /// The target requested a pause (Retry-After).
    Busy {
        /// The end of the pause.
        until: Timestamp,
    },
}

/// The number of consecutive failures that trips the circuit breaker: from then on one task at a time tries the target.
pub const BREAKER_FAILURE_THRESHOLD: u32 = 5;

/// The stored state of a handler's rate limiter and of its target's circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimiterAndBreakerState {
    /// When the next attempt would start if attempts started in even intervals. A burst may start before it.
    #[serde(rename = "next")]
    pub next_evenly_spaced_start: Timestamp,
    /// The number of consecutive failures of the target.
    #[serde(rename = "failures")]
    pub consecutive_failures: u32,
    /// Until when the circuit breaker is open: no task tries the target.
    #[serde(rename = "quiet_until")]
    pub breaker_open_until: Timestamp,
    /// When the breaker was opened. If the clock shows a time well before that, it was set back since then, and the
    /// breaker is ignored.
    #[serde(default, rename = "quiet_since")]
    pub breaker_opened_at: Timestamp,
}

/// The tolerated difference between the clocks of two nodes.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Whether another attempt of a handler may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// This many attempts may start now.
    Admitted(u32),
    /// The concurrency limit is reached, or the breaker is half-open and one attempt is running.
    ConcurrencyFull,
    /// The rate limit is used up until then.
    RateLimited(Timestamp),
    /// The circuit breaker is open until then.
    BreakerOpen(Timestamp),
}

impl LimiterAndBreakerState {
    /// Decides whether another attempt may start while `running` attempts of the handler run.
    pub fn admission(&self, limits: &Limits, running: u32, now: Timestamp) -> Admission {
        if now < self.breaker_open_until && now.plus(MAX_CLOCK_SKEW) >= self.breaker_opened_at {
            return Admission::BreakerOpen(self.breaker_open_until);
        }
        let max_running = if self.is_breaker_tripped() { 1 } else { limits.concurrency.unwrap_or(u32::MAX) };
        let free_slots = max_running.saturating_sub(running);
        if free_slots == 0 {
            return Admission::ConcurrencyFull;
        }
        match limits.rate {
            None => Admission::Admitted(free_slots),
            Some(rate) => match self.remaining_starts(rate, now) {
                0 => Admission::RateLimited(self.rate_limited_until(rate, now)),
                remaining => Admission::Admitted(free_slots.min(remaining)),
            },
        }
    }

    /// Whether the target has failed so often that at most one task at a time may try it.
    pub fn is_breaker_tripped(&self) -> bool {
        self.consecutive_failures >= BREAKER_FAILURE_THRESHOLD
    }

    /// Counts the start of an attempt against the rate limit.
    pub fn record_start(&mut self, limits: &Limits, now: Timestamp) {
        if let Some(rate) = limits.rate {
            self.next_evenly_spaced_start = self.effective_next_start(rate, now).plus(rate.start_interval());
        }
    }

    /// Updates the circuit breaker with the health of the target that an attempt reports.
    pub fn record_target_health(&mut self, target: TargetHealth, retry: &RetryPolicy, now: Timestamp) {
        match target {
            TargetHealth::Healthy => {
                self.consecutive_failures = 0;
                self.breaker_open_until = Timestamp::MIN;
                self.breaker_opened_at = Timestamp::MIN;
            }
            TargetHealth::Failing => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
                if self.is_breaker_tripped() {
                    let wait = retry.retry_delay(
                        self.consecutive_failures - BREAKER_FAILURE_THRESHOLD + 1,
                        u64::from(self.consecutive_failures),
                    );
                    self.open_breaker(now.plus(wait), now);
                }
            }
            TargetHealth::Busy { until } => self.open_breaker(until, now),
        }
    }

    fn open_breaker(&mut self, until: Timestamp, now: Timestamp) {
        let is_valid = now.plus(MAX_CLOCK_SKEW) >= self.breaker_opened_at;
        self.breaker_open_until = if is_valid { self.breaker_open_until.max(until) } else { until };
        self.breaker_opened_at = now;
    }

    /// How long before its evenly spaced time an attempt may start, because a burst is allowed.
    fn burst_tolerance(rate: Rate) -> Duration {
        rate.start_interval() * (rate.burst_size() - 1)
    }

    /// The next evenly spaced start. A stored time further ahead than any start could have set it was written by a
    /// clock that ran ahead, and is ignored.
    fn effective_next_start(&self, rate: Rate, now: Timestamp) -> Timestamp {
        let latest_possible = now.plus(Self::burst_tolerance(rate) + rate.start_interval() + rate.period);
        if self.next_evenly_spaced_start > latest_possible {
            now
        } else {
            self.next_evenly_spaced_start.max(now)
        }
    }

    /// When the rate limit admits the next start.
    fn rate_limited_until(&self, rate: Rate, now: Timestamp) -> Timestamp {
        self.effective_next_start(rate, now).minus(Self::burst_tolerance(rate))
    }

    /// The number of attempts that the rate limit admits now.
    fn remaining_starts(&self, rate: Rate, now: Timestamp) -> u32 {
        let latest_admitted = now.plus(Self::burst_tolerance(rate));
        let next = self.effective_next_start(rate, now);
        if next > latest_admitted {
            return 0;
        }
        let interval_micros = rate.start_interval().as_micros().max(1);
        u32::try_from(latest_admitted.duration_since(next).as_micros() / interval_micros)
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn limits_with(rate: Option<&str>, concurrency: Option<u32>) -> Limits {
        Limits { rate: rate.map(|text| text.parse().unwrap()), concurrency, ..Limits::default() }
    }

    #[test]
    fn rates_round_trip_and_invalid_ones_are_rejected() {
        for good in ["1/s", "100/m", "1000/h", "5000/d"] {
            assert_eq!(good.parse::<Rate>().unwrap().to_string(), good);
        }
        for bad in
            ["", "100", "0/s", "1/w", "-1/s", "+1/s", "1.5/s", "1/ s", "1000001/s", "/s", "99999999999/s"]
        {
            assert!(bad.parse::<Rate>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_period_has_more_starts_than_the_rate_and_a_burst() {
        for rate in ["1/s", "7/s", "20/s", "100/m", "25/m", "1000/h"] {
            let limits = limits_with(Some(rate), None);
            let rate = limits.rate.unwrap();
            let mut limiter = LimiterAndBreakerState::default();
            let mut starts = Vec::new();
            let step = rate.start_interval() / 3 + Duration::from_micros(1);
            let mut now = NOW;
            for round in 0..rate.count * 10 {
                // Pauses now and then, so that bursts occur.
                now = now.plus(if round % 50 == 0 { rate.period } else { step });
                while matches!(limiter.admission(&limits, 0, now), Admission::Admitted(_)) {
                    limiter.record_start(&limits, now);
                    starts.push(now);
                }
            }
            let starts_per_period = starts.iter().enumerate().map(|(first, start)| {
                starts[first..].iter().take_while(|later| later.duration_since(*start) < rate.period).count()
            });
            assert!(starts_per_period.max().unwrap() as u32 <= rate.max_starts_per_period(), "{rate}");
            assert!(rate.max_starts_per_period() * 10 <= rate.count * 11);
            assert!(starts.len() as u32 >= rate.count * 3, "{rate}: the rate is reached");
        }
    }

    #[test]
    fn intervals_between_starts_are_rounded_up() {
        for (rate, micros) in [("1000000/s", 1), ("600000/s", 2), ("7/s", 142_858), ("100/m", 600_000)] {
            assert_eq!(
                rate.parse::<Rate>().unwrap().start_interval(),
                Duration::from_micros(micros),
                "{rate}"
            );
        }
    }

    #[test]
    fn a_rate_limits_how_many_attempts_start_at_once_and_when_the_next_may_start() {
        let limits = limits_with(Some("100/m"), None);
        let mut limiter = LimiterAndBreakerState::default();
        assert_eq!(limiter.admission(&limits, 0, NOW), Admission::Admitted(10));
        for remaining in (0..10).rev() {
            limiter.record_start(&limits, NOW);
            match limiter.admission(&limits, 0, NOW) {
                Admission::Admitted(more) => assert_eq!(more, remaining),
                denied => {
                    assert_eq!(
                        (remaining, denied),
                        (0, Admission::RateLimited(NOW.plus(Duration::from_millis(600))))
                    )
                }
            }
        }
        assert_eq!(
            limiter.admission(&limits, 0, NOW.plus(Duration::from_millis(600))),
            Admission::Admitted(1)
        );
    }

    #[test]
    fn a_clock_that_ran_ahead_stalls_neither_rate_limiter_nor_breaker() {
        let limits = limits_with(Some("10/m"), None);
        let mut limiter = LimiterAndBreakerState::default();
        limiter.record_start(&limits, NOW.plus(Duration::from_secs(86_400)));
        let waited = (0..1000).find(|second| {
            let now = NOW.plus(Duration::from_secs(*second));
            matches!(limiter.admission(&limits, 0, now), Admission::Admitted(_))
        });
        assert!(waited.is_some_and(|seconds| seconds <= 60), "{waited:?}");
        limiter.record_target_health(
            TargetHealth::Busy { until: NOW.plus(Duration::from_secs(90_000)) },
            &RetryPolicy::default(),
            NOW.plus(Duration::from_secs(86_400)),
        );
        assert!(
            matches!(limiter.admission(&Limits::default(), 0, NOW), Admission::Admitted(_)),
            "nor the circuit breaker"
        );
    }

    #[test]
    fn concurrency_limits_running_attempts() {
        let limits = limits_with(None, Some(3));
        let limiter = LimiterAndBreakerState::default();
        assert_eq!(limiter.admission(&limits, 1, NOW), Admission::Admitted(2));
        assert_eq!(limiter.admission(&limits, 3, NOW), Admission::ConcurrencyFull);
        assert_eq!(limiter.admission(&limits, 9, NOW), Admission::ConcurrencyFull);
    }

    #[test]
    fn a_failing_target_is_tried_by_one_task_at_a_time_until_it_recovers() {
        let (limits, retry) = (limits_with(None, Some(50)), RetryPolicy::default());
        let mut limiter = LimiterAndBreakerState::default();
        for _ in 1..BREAKER_FAILURE_THRESHOLD {
            limiter.record_target_health(TargetHealth::Failing, &retry, NOW);
            assert_eq!(limiter.admission(&limits, 0, NOW), Admission::Admitted(50));
        }
        limiter.record_target_health(TargetHealth::Failing, &retry, NOW);
        let Admission::BreakerOpen(until) = limiter.admission(&limits, 0, NOW) else {
            panic!("the breaker is open")
        };
        assert_eq!(limiter.admission(&limits, 0, until), Admission::Admitted(1));
        assert_eq!(limiter.admission(&limits, 1, until), Admission::ConcurrencyFull);
        limiter.record_target_health(TargetHealth::Failing, &retry, until);
        let Admission::BreakerOpen(later) = limiter.admission(&limits, 0, until) else { panic!("again") };
        assert!(later.duration_since(until) > until.duration_since(NOW), "open for longer each time");
        limiter.record_target_health(TargetHealth::Healthy, &retry, later);
        assert_eq!(limiter.admission(&limits, 0, later), Admission::Admitted(50));
    }

    #[test]
    fn the_breaker_stays_open_as_long_as_a_busy_target_requested() {
        let mut limiter = LimiterAndBreakerState::default();
        let until = NOW.plus(Duration::from_secs(30));
        limiter.record_target_health(TargetHealth::Busy { until }, &RetryPolicy::default(), NOW);
        limiter.record_target_health(TargetHealth::Busy { until: NOW }, &RetryPolicy::default(), NOW);
        assert_eq!(limiter.admission(&Limits::default(), 0, NOW), Admission::BreakerOpen(until));
        assert_eq!(limiter.admission(&Limits::default(), 0, until), Admission::Admitted(u32::MAX));
    }

    #[test]
    fn with_ageing_a_task_that_waited_long_enough_overtakes_higher_priorities() {
        let low = Priority::try_from(100).unwrap();
        let high = Priority::try_from(110).unwrap();
        let plain = Limits::default();
        assert!(
            plain.task_score_in_queue(high, NOW.plus(Duration::from_secs(1 << 30)))
                > plain.task_score_in_queue(low, NOW)
        );
        let ageing = Limits { ageing_interval: Some(Duration::from_secs(60)), ..Limits::default() };
        let minutes = |n: u64| NOW.plus(Duration::from_secs(60 * n));
        assert!(ageing.task_score_in_queue(high, minutes(9)) > ageing.task_score_in_queue(low, NOW));
        assert!(ageing.task_score_in_queue(high, minutes(11)) < ageing.task_score_in_queue(low, NOW));
    }
}
