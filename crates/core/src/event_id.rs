//! EventIds: 53 bits, microseconds since 1970, strictly increasing whatever the clock does.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The position of an event in the journal. It contains the time of the append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(u64);

impl EventId {
    /// The position before every event.
    pub const ZERO: Self = Self(0);
    /// The largest id: 53 bits, so that it fits a JavaScript number. Reached in the year 2255.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The id with this number; None above [`EventId::MAX`].
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The id as a number, below 2^53.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// When the event was appended.
    pub const fn timestamp(self) -> Timestamp {
        Timestamp::from_millis((self.0 / 1000) as i64)
    }

    /// The id as a signed integer, for stores that have no unsigned ones; 53 bits always fit.
    pub const fn as_i64(self) -> i64 {
        self.0 as i64
    }

    /// The id with this number, read from a store; for a number out of range, the nearest id.
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

/// The error of a text that is no [`EventId`].
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

/// The longest time by which ids may be ahead of the capped clock time, and by which an observation advances it.
const MAX_CLOCK_JUMP: Duration = Duration::from_secs(3600);

/// Generates ids: `max(now_ms * 1000, last + 1)`.
///
/// A clock that steps back never makes an id smaller, because `last` is read from the store. A clock that jumps far
/// ahead must not advance ids for ever, so ids are at most an hour ahead of the last observation of the clock, and each
/// observation (one in each sweep) moves that limit by at most an hour. If the clock is corrected soon after, ids are a
/// few hours ahead at most; if the jump was genuine (a machine that slept), ids catch up within minutes.
#[derive(Clone, Copy, Debug)]
pub struct EventIdGenerator {
    last_id: EventId,
    /// Ids up to this one may have been assigned to events that are not journaled yet.
    reserved_up_to: EventId,
    observed_time: Timestamp,
}

impl EventIdGenerator {
    /// Creates a generator that continues after `last`. It trusts the clock's time `now`.
    pub fn new(last: EventId, now: Timestamp) -> Self {
        Self { last_id: last, reserved_up_to: EventId::ZERO, observed_time: now.max(last.timestamp()) }
    }

    /// The clock's time at the latest observation, capped at an hour after the previous one.
    pub fn observed_time(&self) -> Timestamp {
        self.observed_time
    }

    /// The last generated id.
    pub fn last_id(&self) -> EventId {
        self.last_id
    }

    /// Continues after `last`, which another node has generated.
    pub fn advance_past(&mut self, last: EventId) {
        self.last_id = self.last_id.max(last);
    }

    /// Reserves ids up to this one, which may belong to events that are not journaled yet: new ids are greater.
    pub fn reserve_up_to(&mut self, up_to: EventId) {
        self.reserved_up_to = self.reserved_up_to.max(up_to);
    }

    /// Records the clock's time, capped at an hour after the previous observation. Every sweep calls this.
    pub fn observe_clock(&mut self, now: Timestamp) {
        self.observed_time = now.max(self.observed_time).min(self.observed_time.plus(MAX_CLOCK_JUMP));
    }

    /// Returns the preassigned id, unless a greater one was generated meanwhile or it is from a clock that ran ahead;
    /// then generates the next id.
    pub fn use_preassigned_or_next(&mut self, preassigned: Option<EventId>, now: Timestamp) -> EventId {
        let last = self.last_id;
        let next = self.next(now);
        let farthest = EventId(next.0.saturating_add(MAX_CLOCK_JUMP.as_micros() as u64));
        self.last_id =
            preassigned.filter(|preassigned| *preassigned > last && *preassigned <= farthest).unwrap_or(next);
        self.last_id
    }

    /// Generates the next id.
    pub fn next(&mut self, now: Timestamp) -> EventId {
        let now = now.min(self.observed_time.plus(MAX_CLOCK_JUMP));
        let id_of_now = u64::try_from(now.millis()).unwrap_or(0).saturating_mul(1000);
        let last_taken = self.last_id.max(self.reserved_up_to);
        self.last_id = EventId(id_of_now.max(last_taken.0 + 1).min(EventId::MAX.0));
        self.last_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MICROS: u64 = 3_600_000_000;

    fn timestamp_from_millis(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_preassigned_id_is_used_while_it_is_the_greatest() {
        let now = Timestamp::from_millis(1_000_000);
        let mut ids = EventIdGenerator::new(EventId(5), now);
        let preassigned = |id: u64| Some(EventId(id));
        assert_eq!(ids.use_preassigned_or_next(preassigned(7), now), EventId(7));
        assert_eq!(
            ids.use_preassigned_or_next(preassigned(7), now),
            EventId(1_000_000_000),
            "it was generated already"
        );
        assert_eq!(ids.use_preassigned_or_next(preassigned(1_000_000_900), now), EventId(1_000_000_900));
        assert_eq!(ids.use_preassigned_or_next(None, now), EventId(1_000_000_901));
        assert_eq!(
            ids.use_preassigned_or_next(preassigned(u64::MAX >> 11), now),
            EventId(1_000_000_902),
            "it is from a clock that ran ahead"
        );
    }

    #[test]
    fn reserved_ids_are_not_generated_again() {
        let now = Timestamp::from_millis(1_000_000);
        let mut ids = EventIdGenerator::new(EventId(5), now);
        ids.reserve_up_to(EventId(1_000_000_007));
        assert_eq!(ids.last_id(), EventId(5), "none of them is journaled");
        assert_eq!(ids.use_preassigned_or_next(Some(EventId(1_000_000_003)), now), EventId(1_000_000_003));
        assert_eq!(ids.next(now), EventId(1_000_000_008));
        assert_eq!(ids.use_preassigned_or_next(Some(EventId(1_000_000_007)), now), EventId(1_000_000_009));
    }

    #[test]
    fn an_id_is_the_millisecond_times_1000() {
        let mut ids = EventIdGenerator::new(EventId::ZERO, timestamp_from_millis(1_478_257_655_827));
        assert_eq!(ids.next(timestamp_from_millis(1_478_257_655_827)).get(), 1_478_257_655_827_000);
        assert_eq!(ids.next(timestamp_from_millis(1_478_257_655_827)).get(), 1_478_257_655_827_001);
        assert_eq!(ids.next(timestamp_from_millis(1_478_257_655_828)).get(), 1_478_257_655_828_000);
    }

    #[test]
    fn a_clock_that_steps_back_never_makes_an_id_smaller() {
        let mut ids = EventIdGenerator::new(EventId::ZERO, timestamp_from_millis(5_000));
        let first = ids.next(timestamp_from_millis(5_000));
        assert_eq!(ids.next(timestamp_from_millis(1_000)).get(), first.get() + 1);
        let mut restarted = EventIdGenerator::new(ids.last_id(), timestamp_from_millis(500));
        assert_eq!(restarted.next(timestamp_from_millis(500)).get(), first.get() + 2);
    }

    #[test]
    fn ids_continue_after_those_of_other_nodes() {
        let mut ids = EventIdGenerator::new(EventId::ZERO, timestamp_from_millis(5_000));
        let own = ids.next(timestamp_from_millis(5_000));
        ids.advance_past(EventId(own.get() + 10));
        assert_eq!(ids.next(timestamp_from_millis(5_000)).get(), own.get() + 11);
        ids.advance_past(own);
        assert_eq!(ids.next(timestamp_from_millis(5_000)).get(), own.get() + 12);
        assert_eq!(ids.observed_time(), timestamp_from_millis(5_000));
    }

    #[test]
    fn a_clock_jump_moves_ids_ahead_by_at_most_an_hour_per_observation() {
        let start = 1_700_000_000_000;
        let ten_years = 10 * 365 * 86_400_000;
        let mut ids = EventIdGenerator::new(EventId::ZERO, timestamp_from_millis(start));
        for _ in 0..10_000 {
            assert!(
                ids.next(timestamp_from_millis(start + ten_years)).get()
                    <= start as u64 * 1000 + HOUR_MICROS + 10_000
            );
        }
        ids.observe_clock(timestamp_from_millis(start + ten_years));
        assert!(
            ids.next(timestamp_from_millis(start + ten_years)).get()
                <= start as u64 * 1000 + 2 * HOUR_MICROS + 10_000
        );
        // Corrected: after two hours at the most, ids follow the time again.
        let later = start + 3 * 3_600_000;
        ids.observe_clock(timestamp_from_millis(later));
        assert_eq!(ids.next(timestamp_from_millis(later)).timestamp(), timestamp_from_millis(later));
    }

    #[test]
    fn ids_catch_up_after_a_genuine_clock_jump() {
        let mut ids = EventIdGenerator::new(EventId::ZERO, timestamp_from_millis(0));
        let two_days = 48 * 3_600_000;
        for _ in 0..48 {
            ids.observe_clock(timestamp_from_millis(two_days));
        }
        assert_eq!(ids.next(timestamp_from_millis(two_days)).timestamp(), timestamp_from_millis(two_days));
    }

    #[test]
    fn only_plain_digits_are_parsed_as_ids() {
        assert_eq!("42".parse::<EventId>().unwrap().get(), 42);
        for bad in ["", "-1", "+1", "1.0", "9007199254740992", "x", " 1"] {
            assert!(bad.parse::<EventId>().is_err(), "{bad:?}");
        }
    }
}
