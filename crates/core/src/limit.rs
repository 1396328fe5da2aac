//! What bounds how fast a handler's tasks begin: how many at a time, how often, and how its target fares.
//!
//! All of it is decided here, on values that a store keeps for each handler ([`Pace`]); the stores only
//! remember them. [`Pace::opening`] says whether another attempt may begin, and if not, until when and why.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::retry::RetryPolicy;
use crate::{Priority, Timestamp};

/// A share in a round robin: one with weight 2 gets twice the turns of one with weight 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(u16);

impl Weight {
    pub const MAX: u16 = 1000;

    pub fn new(weight: u16) -> Option<Self> {
        (1..=Self::MAX).contains(&weight).then_some(Self(weight))
    }

    pub fn get(self) -> u16 {
        self.0
    }

    /// How far one turn moves its owner on: the heavier, the shorter the step.
    pub fn stride(self) -> i64 {
        STRIDE / i64::from(self.0)
    }
}

/// The step of weight 1, large enough that all weights divide it almost evenly.
const STRIDE: i64 = 1_000_000;

impl Default for Weight {
    fn default() -> Self {
        Self(1)
    }
}

/// So many starts in so much time (`100/m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub count: u32,
    pub per: Duration,
}

impl Rate {
    /// The time between two starts at an even pace, in whole microseconds: rounded down, more than the rate would begin.
    pub fn step(self) -> Duration {
        let micros = self.per.as_micros().div_ceil(u128::from(self.count.max(1)));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// How many may begin at once after a pause: a tenth of them.
    fn burst(self) -> u32 {
        (self.count / 10).max(1)
    }

    /// How many begin at most in any time shorter than the period: the rate, and what was saved up in a pause.
    pub fn most_in_period(self) -> u32 {
        self.count + self.burst() - 1
    }
}

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
        Ok(Self { count, per: Duration::from_secs(seconds) })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per.as_secs() {
            1 => write!(f, "{}/s", self.count),
            60 => write!(f, "{}/m", self.count),
            3600 => write!(f, "{}/h", self.count),
            86_400 => write!(f, "{}/d", self.count),
            other => write!(f, "{} in {other} s", self.count),
        }
    }
}

/// What a handler's tasks are bounded by, over all nodes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// How many of its tasks run at a time.
    pub concurrency: Option<u32>,
    /// How many of one object's tasks run at a time, where they keep no order.
    pub concurrency_per_key: Option<u32>,
    /// How often one begins.
    pub rate: Option<Rate>,
    pub weight: Weight,
    /// A waiting task gains one point of priority each time this has passed.
    pub ageing: Option<Duration>,
}

impl Limits {
    /// Where a task stands in its queue, higher first. It never changes while the task waits: that everything
    /// waiting gains priority at the same pace is the same as that what came later starts lower.
    pub fn score(&self, priority: Priority, created: Timestamp) -> i64 {
        let points = i64::from(priority.get()) * POINT;
        match self.ageing {
            None => points,
            Some(each) => {
                let each = i64::try_from(each.as_millis()).unwrap_or(i64::MAX).max(1);
                let waited_from = created.millis().saturating_sub(ERA_MILLIS).clamp(0, i64::MAX / POINT);
                points.saturating_sub(waited_from * POINT / each)
            }
        }
    }
}

/// One point of priority in a score.
const POINT: i64 = 1_000_000;
/// 2020-01-01: ages are counted from here to keep scores small.
const ERA_MILLIS: i64 = 1_577_836_800_000;

/// What an attempt told of the target behind its handler. All tasks of the handler share the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// It answered as one that works.
    Well,
    /// It could not be reached, or broke down.
    Unwell,
    /// It asked to be left alone until then.
    Busy { until: Timestamp },
}

/// So many failures in a row make a target ailing: then it is tried by one task at a time.
pub const AILING: u32 = 5;

/// How a handler has been going: what its next start depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// When, at an even pace, the next start would be due.
    pub next: Timestamp,
    /// How often in a row the target has been unwell.
    pub failures: u32,
    /// Until when the target is left alone.
    pub quiet_until: Timestamp,
    /// When that was decided. A clock that shows an earlier time by far was put right since, and it does not count.
    #[serde(default)]
    pub quiet_since: Timestamp,
}

/// Clocks may differ by this much.
const CLOCKS_AGREE_WITHIN: Duration = Duration::from_secs(60);

/// Whether another attempt of a handler may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// So many may.
    Open(u32),
    /// As many run as may.
    Full,
    /// Not before this, at its rate.
    Paced(Timestamp),
    /// Not before this: the target is left alone.
    Quiet(Timestamp),
}

impl Pace {
    /// Whether another attempt may begin while `running` of them run.
    pub fn opening(&self, limits: &Limits, running: u32, now: Timestamp) -> Opening {
        if now < self.quiet_until && now.plus(CLOCKS_AGREE_WITHIN) >= self.quiet_since {
            return Opening::Quiet(self.quiet_until);
        }
        let width = if self.ailing() { 1 } else { limits.concurrency.unwrap_or(u32::MAX) };
        let free = width.saturating_sub(running);
        if free == 0 {
            return Opening::Full;
        }
        match limits.rate {
            None => Opening::Open(free),
            Some(rate) => match self.starts_left(rate, now) {
                0 => Opening::Paced(self.paced_until(rate, now)),
                left => Opening::Open(free.min(left)),
            },
        }
    }

    /// The target keeps failing and is tried singly.
    pub fn ailing(&self) -> bool {
        self.failures >= AILING
    }

    /// An attempt begins.
    pub fn started(&mut self, limits: &Limits, now: Timestamp) {
        if let Some(rate) = limits.rate {
            self.next = self.next_start(rate, now).plus(rate.step());
        }
    }

    /// An attempt has told how the target fares.
    pub fn told(&mut self, target: Target, retry: &RetryPolicy, now: Timestamp) {
        match target {
            Target::Well => {
                self.failures = 0;
                self.quiet_until = Timestamp::MIN;
                self.quiet_since = Timestamp::MIN;
            }
            Target::Unwell => {
                self.failures = self.failures.saturating_add(1);
                if self.ailing() {
                    let wait = retry.delay(self.failures - AILING + 1, u64::from(self.failures));
                    self.quiet(now.plus(wait), now);
                }
            }
            Target::Busy { until } => self.quiet(until, now),
        }
    }

    fn quiet(&mut self, until: Timestamp, now: Timestamp) {
        let counts = now.plus(CLOCKS_AGREE_WITHIN) >= self.quiet_since;
        self.quiet_until = if counts { self.quiet_until.max(until) } else { until };
        self.quiet_since = now;
    }

    fn slack(rate: Rate) -> Duration {
        rate.step() * (rate.burst() - 1)
    }

    /// The next even start. One that lies further ahead than any start could have put it was written by a clock that
    /// ran ahead, and does not count.
    fn next_start(&self, rate: Rate, now: Timestamp) -> Timestamp {
        let possible = now.plus(Self::slack(rate) + rate.step() + rate.per);
        if self.next > possible { now } else { self.next.max(now) }
    }

    fn paced_until(&self, rate: Rate, now: Timestamp) -> Timestamp {
        self.next_start(rate, now).minus(Self::slack(rate))
    }

    fn starts_left(&self, rate: Rate, now: Timestamp) -> u32 {
        let credit = now.plus(Self::slack(rate));
        let next = self.next_start(rate, now);
        if next > credit {
            return 0;
        }
        let step = rate.step().as_micros().max(1);
        u32::try_from(credit.since(next).as_micros() / step).unwrap_or(u32::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn limits(rate: Option<&str>, concurrency: Option<u32>) -> Limits {
        Limits { rate: rate.map(|text| text.parse().unwrap()), concurrency, ..Limits::default() }
    }

    #[test]
    fn rates_read_back_and_nonsense_is_refused() {
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
    fn no_period_sees_more_than_its_rate_and_a_tenth() {
        for rate in ["1/s", "7/s", "20/s", "100/m", "25/m", "1000/h"] {
            let limits = limits(Some(rate), None);
            let rate = limits.rate.unwrap();
            let mut pace = Pace::default();
            let mut starts = Vec::new();
            let step = rate.step() / 3 + Duration::from_micros(1);
            let mut now = NOW;
            for round in 0..rate.count * 10 {
                // Pauses now and then, so that bursts come about.
                now = now.plus(if round % 50 == 0 { rate.per } else { step });
                while matches!(pace.opening(&limits, 0, now), Opening::Open(_)) {
                    pace.started(&limits, now);
                    starts.push(now);
                }
            }
            let most = starts.iter().enumerate().map(|(first, start)| {
                starts[first..].iter().take_while(|later| later.since(*start) < rate.per).count()
            });
            assert!(most.max().unwrap() as u32 <= rate.most_in_period(), "{rate}");
            assert!(rate.most_in_period() * 10 <= rate.count * 11);
            assert!(starts.len() as u32 >= rate.count * 3, "{rate}: it is reached, too");
        }
    }

    #[test]
    fn steps_of_high_rates_are_rounded_up() {
        for (rate, micros) in [("1000000/s", 1), ("600000/s", 2), ("7/s", 142_858), ("100/m", 600_000)] {
            assert_eq!(rate.parse::<Rate>().unwrap().step(), Duration::from_micros(micros), "{rate}");
        }
    }

    #[test]
    fn a_rate_says_how_many_may_begin_and_when_the_next_one_may() {
        let limits = limits(Some("100/m"), None);
        let mut pace = Pace::default();
        assert_eq!(pace.opening(&limits, 0, NOW), Opening::Open(10));
        for left in (0..10).rev() {
            pace.started(&limits, NOW);
            match pace.opening(&limits, 0, NOW) {
                Opening::Open(more) => assert_eq!(more, left),
                closed => {
                    assert_eq!((left, closed), (0, Opening::Paced(NOW.plus(Duration::from_millis(600)))))
                }
            }
        }
        assert_eq!(pace.opening(&limits, 0, NOW.plus(Duration::from_millis(600))), Opening::Open(1));
    }

    #[test]
    fn a_clock_that_ran_ahead_does_not_stall_a_rate() {
        let limits = limits(Some("10/m"), None);
        let mut pace = Pace::default();
        pace.started(&limits, NOW.plus(Duration::from_secs(86_400)));
        let waited = (0..1000).find(|second| {
            let now = NOW.plus(Duration::from_secs(*second));
            matches!(pace.opening(&limits, 0, now), Opening::Open(_))
        });
        assert!(waited.is_some_and(|seconds| seconds <= 60), "{waited:?}");
        pace.told(
            Target::Busy { until: NOW.plus(Duration::from_secs(90_000)) },
            &RetryPolicy::default(),
            NOW.plus(Duration::from_secs(86_400)),
        );
        assert!(matches!(pace.opening(&Limits::default(), 0, NOW), Opening::Open(_)), "nor a target's wish");
    }

    #[test]
    fn concurrency_bounds_what_runs() {
        let limits = limits(None, Some(3));
        let pace = Pace::default();
        assert_eq!(pace.opening(&limits, 1, NOW), Opening::Open(2));
        assert_eq!(pace.opening(&limits, 3, NOW), Opening::Full);
        assert_eq!(pace.opening(&limits, 9, NOW), Opening::Full);
    }

    #[test]
    fn a_target_that_keeps_failing_is_tried_singly_until_it_recovers() {
        let (limits, retry) = (limits(None, Some(50)), RetryPolicy::default());
        let mut pace = Pace::default();
        for _ in 1..AILING {
            pace.told(Target::Unwell, &retry, NOW);
            assert_eq!(pace.opening(&limits, 0, NOW), Opening::Open(50));
        }
        pace.told(Target::Unwell, &retry, NOW);
        let Opening::Quiet(until) = pace.opening(&limits, 0, NOW) else { panic!("it is left alone") };
        assert_eq!(pace.opening(&limits, 0, until), Opening::Open(1));
        assert_eq!(pace.opening(&limits, 1, until), Opening::Full);
        pace.told(Target::Unwell, &retry, until);
        let Opening::Quiet(later) = pace.opening(&limits, 0, until) else { panic!("again") };
        assert!(later.since(until) > until.since(NOW), "and for longer each time");
        pace.told(Target::Well, &retry, later);
        assert_eq!(pace.opening(&limits, 0, later), Opening::Open(50));
    }

    #[test]
    fn a_busy_target_is_left_alone_as_long_as_it_asked() {
        let mut pace = Pace::default();
        let until = NOW.plus(Duration::from_secs(30));
        pace.told(Target::Busy { until }, &RetryPolicy::default(), NOW);
        pace.told(Target::Busy { until: NOW }, &RetryPolicy::default(), NOW);
        assert_eq!(pace.opening(&Limits::default(), 0, NOW), Opening::Quiet(until));
        assert_eq!(pace.opening(&Limits::default(), 0, until), Opening::Open(u32::MAX));
    }

    #[test]
    fn what_has_waited_long_enough_overtakes() {
        let low = Priority::try_from(100).unwrap();
        let high = Priority::try_from(110).unwrap();
        let plain = Limits::default();
        assert!(plain.score(high, NOW.plus(Duration::from_secs(1 << 30))) > plain.score(low, NOW));
        let ageing = Limits { ageing: Some(Duration::from_secs(60)), ..Limits::default() };
        let minutes = |n: u64| NOW.plus(Duration::from_secs(60 * n));
        assert!(ageing.score(high, minutes(9)) > ageing.score(low, NOW));
        assert!(ageing.score(high, minutes(11)) < ageing.score(low, NOW));
    }
}
