//! EventIds: 53 bits, microseconds since 1970, strictly increasing whatever the clock does.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The position of an event in the journal. Also tells when it was journaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(u64);

impl EventId {
    /// Before every event.
    pub const ZERO: Self = Self(0);
    /// The largest id: 53 bits, so that it fits a JavaScript number. Reached in the year 2255.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The id with this number; at most [`EventId::MAX`].
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// When the event was journaled.
    pub const fn timestamp(self) -> Timestamp {
        Timestamp::from_millis((self.0 / 1000) as i64)
    }

    /// For stores whose integers are signed; 53 bits always fit.
    pub const fn as_i64(self) -> i64 {
        self.0 as i64
    }

    /// From a store's signed integer; anything out of range is an id that was never given out.
    pub const fn from_i64(number: i64) -> Self {
        if number < 0 {
            Self::ZERO
        } else if number as u64 > Self::MAX.0 {
            Self::MAX
        } else {
            Self(number as u64)
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an EventId; it is a whole number from 0 to 9007199254740991")]
pub struct BadEventId(String);

impl std::str::FromStr for EventId {
    type Err = BadEventId;
    fn from_str(text: &str) -> Result<Self, BadEventId> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.and_then(Self::new).ok_or_else(|| BadEventId(text.into()))
    }
}

/// How far ahead of what was last observed an id may run.
const LARGEST_JUMP: Duration = Duration::from_secs(3600);

/// Gives out ids: `max(now_ms * 1000, last + 1)`.
///
/// A clock that steps back never makes an id smaller, because `last` is what the store holds. A clock that
/// jumps far ahead must not poison the ids for ever, so between two observations ids run at most an hour
/// ahead, and each observation (one a sweep) moves the limit by at most an hour. When the clock is put right
/// again soon after, little harm is done; when the leap was genuine (a machine that slept), ids catch up
/// within minutes.
#[derive(Clone, Copy, Debug)]
pub struct IdClock {
    last: EventId,
    /// Ids up to this one may have been given beforehand.
    reserved: EventId,
    seen: Timestamp,
}

impl IdClock {
    /// Goes on after `last`, trusting the clock as it stands at the start.
    pub fn starting(last: EventId, now: Timestamp) -> Self {
        Self { last, reserved: EventId::ZERO, seen: now.max(last.timestamp()) }
    }

    /// The time of the latest observation.
    pub fn seen(&self) -> Timestamp {
        self.seen
    }

    /// The last id given out.
    pub fn last(&self) -> EventId {
        self.last
    }

    /// Others have given out ids up to `last`: the next goes on after it.
    pub fn went_on(&mut self, last: EventId) {
        self.last = self.last.max(last);
    }

    /// Ids up to this one may have been given beforehand, to what is not journaled yet: the next goes on after it, too.
    pub fn reserve(&mut self, up_to: EventId) {
        self.reserved = self.reserved.max(up_to);
    }

    /// Looks at the clock, as every sweep does.
    pub fn observe(&mut self, now: Timestamp) {
        self.seen = now.max(self.seen).min(self.seen.plus(LARGEST_JUMP));
    }

    /// The id that was given beforehand, if no greater one was given out meanwhile and no clock had leapt; else the next.
    pub fn take(&mut self, given: Option<EventId>, now: Timestamp) -> EventId {
        let last = self.last;
        let next = self.next(now);
        let farthest = EventId(next.0.saturating_add(LARGEST_JUMP.as_micros() as u64));
        self.last = given.filter(|given| *given > last && *given <= farthest).unwrap_or(next);
        self.last
    }

    /// The next id.
    pub fn next(&mut self, now: Timestamp) -> EventId {
        let now = now.min(self.seen.plus(LARGEST_JUMP));
        let by_clock = u64::try_from(now.millis()).unwrap_or(0).saturating_mul(1000);
        let before = self.last.max(self.reserved);
        self.last = EventId(by_clock.max(before.0 + 1).min(EventId::MAX.0));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn an_id_that_was_given_beforehand_is_kept_as_long_as_it_is_the_greatest() {
        let now = Timestamp::from_millis(1_000_000);
        let mut ids = IdClock::starting(EventId(5), now);
        let given = |id: u64| Some(EventId(id));
        assert_eq!(ids.take(given(7), now), EventId(7));
        assert_eq!(ids.take(given(7), now), EventId(1_000_000_000), "it is given out");
        assert_eq!(ids.take(given(1_000_000_900), now), EventId(1_000_000_900));
        assert_eq!(ids.take(None, now), EventId(1_000_000_901));
        assert_eq!(ids.take(given(u64::MAX >> 11), now), EventId(1_000_000_902), "a clock had leapt");
    }

    #[test]
    fn ids_that_were_given_beforehand_are_given_to_nobody_else() {
        let now = Timestamp::from_millis(1_000_000);
        let mut ids = IdClock::starting(EventId(5), now);
        ids.reserve(EventId(1_000_000_007));
        assert_eq!(ids.last(), EventId(5), "none of them is journaled");
        assert_eq!(ids.take(Some(EventId(1_000_000_003)), now), EventId(1_000_000_003));
        assert_eq!(ids.next(now), EventId(1_000_000_008));
        assert_eq!(ids.take(Some(EventId(1_000_000_007)), now), EventId(1_000_000_009));
    }

    #[test]
    fn an_id_is_the_millisecond_times_1000() {
        let mut clock = IdClock::starting(EventId::ZERO, at(1_478_257_655_827));
        assert_eq!(clock.next(at(1_478_257_655_827)).get(), 1_478_257_655_827_000);
        assert_eq!(clock.next(at(1_478_257_655_827)).get(), 1_478_257_655_827_001);
        assert_eq!(clock.next(at(1_478_257_655_828)).get(), 1_478_257_655_828_000);
    }

    #[test]
    fn a_clock_that_steps_back_never_makes_an_id_smaller() {
        let mut clock = IdClock::starting(EventId::ZERO, at(5_000));
        let first = clock.next(at(5_000));
        assert_eq!(clock.next(at(1_000)).get(), first.get() + 1);
        let mut restarted = IdClock::starting(clock.last(), at(500));
        assert_eq!(restarted.next(at(500)).get(), first.get() + 2);
    }

    #[test]
    fn ids_go_on_after_those_that_others_gave_out() {
        let mut clock = IdClock::starting(EventId::ZERO, at(5_000));
        let own = clock.next(at(5_000));
        clock.went_on(EventId(own.get() + 10));
        assert_eq!(clock.next(at(5_000)).get(), own.get() + 11);
        clock.went_on(own);
        assert_eq!(clock.next(at(5_000)).get(), own.get() + 12);
        assert_eq!(clock.seen(), at(5_000));
    }

    #[test]
    fn a_leap_ahead_is_capped_and_does_not_poison_the_ids() {
        let start = 1_700_000_000_000;
        let ten_years = 10 * 365 * 86_400_000;
        let mut clock = IdClock::starting(EventId::ZERO, at(start));
        for _ in 0..10_000 {
            assert!(clock.next(at(start + ten_years)).get() <= start as u64 * 1000 + HOUR + 10_000);
        }
        clock.observe(at(start + ten_years));
        assert!(clock.next(at(start + ten_years)).get() <= start as u64 * 1000 + 2 * HOUR + 10_000);
        // Put right: after two hours at the most, ids tell the time again.
        let later = start + 3 * 3_600_000;
        clock.observe(at(later));
        assert_eq!(clock.next(at(later)).timestamp(), at(later));
    }

    #[test]
    fn a_genuine_leap_is_caught_up_with() {
        let mut clock = IdClock::starting(EventId::ZERO, at(0));
        let two_days = 48 * 3_600_000;
        for _ in 0..48 {
            clock.observe(at(two_days));
        }
        assert_eq!(clock.next(at(two_days)).timestamp(), at(two_days));
    }

    #[test]
    fn ids_are_read_from_plain_digits_only() {
        assert_eq!("42".parse::<EventId>().unwrap().get(), 42);
        for bad in ["", "-1", "+1", "1.0", "9007199254740992", "x", " 1"] {
            assert!(bad.parse::<EventId>().is_err(), "{bad:?}");
        }
    }
}
