//! When to speak of something that keeps failing: when it begins, now and then while it lasts, and when it has ended.

use std::time::{Duration, Instant};

/// How long nothing more is said.
const QUIET: Duration = Duration::from_secs(10);

/// Something that works or fails, and what was said of it.
#[derive(Debug, Default)]
pub struct Outage {
    since: Option<Instant>,
    told: Option<Instant>,
    /// The failures of this outage.
    failures: u64,
    /// That it has begun was said.
    known: bool,
}

/// What is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Begins,
    Lasts { failures: u64 },
    Ends { after: Duration, failures: u64 },
}

impl Outage {
    /// It failed once more. What begins again soon after the last word of it is told only if it lasts.
    pub fn failed(&mut self, now: Instant) -> Option<Said> {
        self.since.get_or_insert(now);
        self.failures += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < QUIET) {
            return None;
        }
        self.told = Some(now);
        match std::mem::replace(&mut self.known, true) {
            false => Some(Said::Begins),
            true => Some(Said::Lasts { failures: self.failures }),
        }
    }

    /// It works. Its end is told if its beginning was.
    pub fn works(&mut self, now: Instant) -> Option<Said> {
        let since = self.since.take()?;
        let (known, failures) = (std::mem::take(&mut self.known), std::mem::take(&mut self.failures));
        known.then(|| Said::Ends { after: now.saturating_duration_since(since), failures })
    }

    /// Since when it fails, if it does.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn its_beginning_and_its_end_are_told_and_little_between() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        assert_eq!(outage.works(start), None);
        let said: Vec<_> = (0..250).filter_map(|tenth| outage.failed(start + seconds(tenth) / 10)).collect();
        assert_eq!(said, [Said::Begins, Said::Lasts { failures: 101 }, Said::Lasts { failures: 201 }]);
        assert_eq!(outage.works(start + seconds(25)), Some(Said::Ends { after: seconds(25), failures: 250 }));
        assert_eq!((outage.works(start + seconds(26)), outage.since()), (None, None));
    }

    #[test]
    fn what_comes_and_goes_is_told_as_seldom() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let mut said = 0;
        for second in 0..100 {
            let now = start + seconds(second);
            said += usize::from(outage.failed(now).is_some()) + usize::from(outage.works(now).is_some());
        }
        assert_eq!(said, 20);
    }
}
