//! Time zones: what the clock on the wall says, and where it was moved.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use super::bits::Way;
use super::calendar::civil;

/// A time zone by its name in the IANA database. The system's copy of the database is asked first, so that it
/// can be brought up to date without a new release; the one in the binary serves machines that have none.
#[derive(Clone)]
pub struct Zone {
    name: Arc<str>,
    rules: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time zone; write one like `UTC`, `Europe/Berlin` or `America/New_York`")]
pub struct BadZone(String);

impl Zone {
    pub fn utc() -> Self {
        Self { name: "UTC".into(), rules: TimeZone::UTC }
    }

    /// The zone of this name, in any case.
    pub fn named(name: &str) -> Result<Self, BadZone> {
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::utc());
        }
        let rules = TimeZone::get(name)
            .or_else(|_| TimeZoneDatabase::bundled().get(name))
            .ok()
            .filter(|rules| !rules.is_unknown())
            .ok_or_else(|| BadZone(name.chars().take(64).collect()))?;
        Ok(Self { name: rules.iana_name().unwrap_or(name).into(), rules })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the clocks show at an instant, to the second, with how far they are from UTC:
    /// `2026-03-29 03:00:00 +02:00`.
    pub fn local(&self, instant: crate::Timestamp) -> String {
        match Timestamp::from_second(instant.millis().div_euclid(1000)) {
            Ok(instant) => instant.to_zoned(self.rules.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
            Err(_) => instant.to_string(),
        }
    }

    /// What is added to an instant to get the local time, in seconds.
    pub(super) fn offset(&self, instant: i64) -> i64 {
        seconds(self.rules.to_offset(timestamp(instant)))
    }

    /// Where a local time lies among the instants.
    pub(super) fn place(&self, local: i64) -> Place {
        match self.rules.to_ambiguous_timestamp(civil(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => Place::Once(local - seconds(offset)),
            AmbiguousOffset::Gap { before, after } => Place::Gap(self.shift(local, before, after)),
            AmbiguousOffset::Fold { before, after } => Place::Fold(self.shift(local, before, after)),
        }
    }

    /// The movement of the clock that a local time is lost or doubled by. It comes after the instant that the
    /// local time would be if the larger of the two offsets held.
    fn shift(&self, local: i64, before: Offset, after: Offset) -> Shift {
        let (before, after) = (seconds(before), seconds(after));
        let earliest = local - before.max(after);
        let at = self
            .rules
            .following(timestamp(earliest))
            .find(|transition| seconds(transition.offset()) == after)
            .map_or(earliest, |transition| transition.timestamp().as_second());
        Shift { at, before, after }
    }

    /// The movements of the clock in `from..until`, in order.
    pub(super) fn shifts(&self, from: i64, until: i64) -> impl Iterator<Item = Shift> {
        let instants = self.rules.following(timestamp(from)).map(|t| t.timestamp().as_second());
        instants
            .take_while(move |at| *at < until)
            .map(|at| Shift { at, before: self.offset(at - 1), after: self.offset(at) })
            .filter(|shift| shift.before != shift.after)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl std::str::FromStr for Zone {
    type Err = BadZone;
    fn from_str(text: &str) -> Result<Self, BadZone> {
        Self::named(text)
    }
}

fn seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

fn timestamp(instant: i64) -> Timestamp {
    Timestamp::from_second(instant).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Where a local time lies among the instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Once(i64),
    /// The clock was put forward over it.
    Gap(Shift),
    /// The clock was put back over it.
    Fold(Shift),
}

/// The instant at which the clock was moved, and the offsets before and from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) at: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Shift {
    /// The local times that are lost or doubled: from the first to just before the second.
    pub(super) fn span(self) -> (i64, i64) {
        let (before, after) = (self.at + self.before, self.at + self.after);
        (before.min(after), before.max(after))
    }

    pub(super) fn holds(self, local: i64) -> bool {
        let (from, to) = self.span();
        (from..to).contains(&local)
    }

    /// The local time in the span that a walk in this direction meets first.
    pub(super) fn entry(self, way: Way) -> i64 {
        let (from, to) = self.span();
        way.start(from, to - 1)
    }

    /// The first local time behind the span.
    pub(super) fn exit(self, way: Way) -> i64 {
        let (from, to) = self.span();
        way.start(to, from - 1)
    }

    /// The offsets of the two passes of a fold, in the order a walk in this direction meets them.
    pub(super) fn passes(self, way: Way) -> (i64, i64) {
        match way {
            Way::Forward => (self.before, self.after),
            Way::Backward => (self.after, self.before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> i64 {
        let at: jiff::civil::DateTime = text.parse().unwrap();
        Offset::UTC.to_timestamp(at).unwrap().as_second()
    }

    #[test]
    fn a_local_time_is_once_lost_or_doubled() {
        let berlin = Zone::named("europe/berlin").unwrap();
        assert_eq!(berlin.name(), "Europe/Berlin");
        assert_eq!(berlin.place(local("2026-01-01T12:00")), Place::Once(local("2026-01-01T11:00")));
        let forward = Shift { at: local("2026-03-29T01:00"), before: 3600, after: 7200 };
        assert_eq!(berlin.place(local("2026-03-29T02:00")), Place::Gap(forward));
        assert_eq!(berlin.place(local("2026-03-29T02:59:59")), Place::Gap(forward));
        assert_eq!(forward.span(), (local("2026-03-29T02:00"), local("2026-03-29T03:00")));
        let back = Shift { at: local("2026-10-25T01:00"), before: 7200, after: 3600 };
        assert_eq!(berlin.place(local("2026-10-25T02:00")), Place::Fold(back));
        assert_eq!(berlin.place(local("2026-10-25T02:59:59")), Place::Fold(back));
        assert_eq!(back.span(), (local("2026-10-25T02:00"), local("2026-10-25T03:00")));
    }

    #[test]
    fn zones_are_known_without_the_system() {
        let bundled = TimeZoneDatabase::bundled();
        for name in ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"] {
            assert!(bundled.get(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_not_a_zone_is_refused() {
        for name in ["", "Mars/Olympus", "../etc/passwd", "Etc/Unknown", "local"] {
            let refused = Zone::named(name).unwrap_err().to_string();
            assert!(refused.contains("is not a time zone"), "{name}: {refused}");
        }
    }
}
