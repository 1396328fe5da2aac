//! Time zones: local times, and the changes of the UTC offset.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use super::calendar::to_civil_datetime;
use super::number_set::Direction;

/// A time zone by its name in the IANA database. The system's copy of the database is used first, so that it
/// can be updated without a new release; the one in the binary is for machines that have none.
#[derive(Clone)]
pub struct Zone {
    name: Arc<str>,
    time_zone: TimeZone,
}

/// The error of a text that is no time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time zone; write one like `UTC`, `Europe/Berlin` or `America/New_York`")]
pub struct BadZone(String);

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self { name: "UTC".into(), time_zone: TimeZone::UTC }
    }

    /// The zone of this name, in any case.
    pub fn from_name(name: &str) -> Result<Self, BadZone> {
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::utc());
        }
        let rules = TimeZone::get(name)
            .or_else(|_| TimeZoneDatabase::bundled().get(name))
            .ok()
            .filter(|rules| !rules.is_unknown())
            .ok_or_else(|| BadZone(name.chars().take(64).collect()))?;
        Ok(Self { name: rules.iana_name().unwrap_or(name).into(), time_zone: rules })
    }

    /// The zone's name in the IANA database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Formats an instant as local time, to the second, with its offset from UTC:
    /// `2026-03-29 03:00:00 +02:00`.
    pub fn format_local(&self, instant: crate::Timestamp) -> String {
        match Timestamp::from_second(instant.millis().div_euclid(1000)) {
            Ok(instant) => {
                instant.to_zoned(self.time_zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
            }
            Err(_) => instant.to_string(),
        }
    }

    /// The UTC offset at an instant, in seconds.
    pub(super) fn offset_seconds_at(&self, instant: i64) -> i64 {
        offset_seconds(self.time_zone.to_offset(to_timestamp(instant)))
    }

    /// Resolves a local time to the instants at which it occurs.
    pub(super) fn resolve_local(&self, local: i64) -> LocalTimeResolution {
        match self.time_zone.to_ambiguous_timestamp(to_civil_datetime(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                LocalTimeResolution::Once(local - offset_seconds(offset))
            }
            AmbiguousOffset::Gap { before, after } => {
                LocalTimeResolution::Gap(self.find_offset_change(local, before, after))
            }
            AmbiguousOffset::Fold { before, after } => {
                LocalTimeResolution::Fold(self.find_offset_change(local, before, after))
            }
        }
    }

    /// The offset change that skips or repeats a local time. The search starts at the instant that the local time would
    /// have with the larger of the two offsets.
    fn find_offset_change(&self, local: i64, before: Offset, after: Offset) -> OffsetChange {
        let (before, after) = (offset_seconds(before), offset_seconds(after));
        let earliest = local - before.max(after);
        let at = self
            .time_zone
            .following(to_timestamp(earliest))
            .find(|transition| offset_seconds(transition.offset()) == after)
            .map_or(earliest, |transition| transition.timestamp().as_second());
        OffsetChange { at, offset_before: before, offset_after: after }
    }

    /// The offset changes in `from..until`, in order.
    pub(super) fn offset_changes(&self, from: i64, until: i64) -> impl Iterator<Item = OffsetChange> {
        let instants = self.time_zone.following(to_timestamp(from)).map(|t| t.timestamp().as_second());
        instants
            .take_while(move |at| *at < until)
            .map(|at| OffsetChange {
                at,
                offset_before: self.offset_seconds_at(at - 1),
                offset_after: self.offset_seconds_at(at),
            })
            .filter(|change| change.offset_before != change.offset_after)
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
        Self::from_name(text)
    }
}

fn offset_seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

fn to_timestamp(instant: i64) -> Timestamp {
    Timestamp::from_second(instant).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The instants at which a local time occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalTimeResolution {
    Once(i64),
    /// The clock was set forward over this local time: it does not occur.
    Gap(OffsetChange),
    /// The clock was set back over this local time: it occurs twice.
    Fold(OffsetChange),
}

/// A change of the UTC offset: its instant, and the offsets before and after it, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OffsetChange {
    pub(super) at: i64,
    pub(super) offset_before: i64,
    pub(super) offset_after: i64,
}

impl OffsetChange {
    /// The range of local times that are skipped or repeated: its start, and its end, which is not affected.
    pub(super) fn affected_local_range(self) -> (i64, i64) {
        let (before, after) = (self.at + self.offset_before, self.at + self.offset_after);
        (before.min(after), before.max(after))
    }

    pub(super) fn affects_local_time(self, local: i64) -> bool {
        let (from, to) = self.affected_local_range();
        (from..to).contains(&local)
    }

    /// The first affected local time in this direction.
    pub(super) fn first_affected(self, direction: Direction) -> i64 {
        let (from, to) = self.affected_local_range();
        direction.select(from, to - 1)
    }

    /// The first local time after the affected ones in this direction.
    pub(super) fn first_unaffected(self, direction: Direction) -> i64 {
        let (from, to) = self.affected_local_range();
        direction.select(to, from - 1)
    }

    /// The offsets of the first and the second pass through the repeated local times, in the order of this direction.
    pub(super) fn fold_offsets(self, direction: Direction) -> (i64, i64) {
        match direction {
            Direction::Forward => (self.offset_before, self.offset_after),
            Direction::Backward => (self.offset_after, self.offset_before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_local_seconds(text: &str) -> i64 {
        let at: jiff::civil::DateTime = text.parse().unwrap();
        Offset::UTC.to_timestamp(at).unwrap().as_second()
    }

    #[test]
    fn a_local_time_occurs_once_never_or_twice() {
        let berlin = Zone::from_name("europe/berlin").unwrap();
        assert_eq!(berlin.name(), "Europe/Berlin");
        assert_eq!(
            berlin.resolve_local(parse_local_seconds("2026-01-01T12:00")),
            LocalTimeResolution::Once(parse_local_seconds("2026-01-01T11:00"))
        );
        let forward = OffsetChange {
            at: parse_local_seconds("2026-03-29T01:00"),
            offset_before: 3600,
            offset_after: 7200,
        };
        assert_eq!(
            berlin.resolve_local(parse_local_seconds("2026-03-29T02:00")),
            LocalTimeResolution::Gap(forward)
        );
        assert_eq!(
            berlin.resolve_local(parse_local_seconds("2026-03-29T02:59:59")),
            LocalTimeResolution::Gap(forward)
        );
        assert_eq!(
            forward.affected_local_range(),
            (parse_local_seconds("2026-03-29T02:00"), parse_local_seconds("2026-03-29T03:00"))
        );
        let back = OffsetChange {
            at: parse_local_seconds("2026-10-25T01:00"),
            offset_before: 7200,
            offset_after: 3600,
        };
        assert_eq!(
            berlin.resolve_local(parse_local_seconds("2026-10-25T02:00")),
            LocalTimeResolution::Fold(back)
        );
        assert_eq!(
            berlin.resolve_local(parse_local_seconds("2026-10-25T02:59:59")),
            LocalTimeResolution::Fold(back)
        );
        assert_eq!(
            back.affected_local_range(),
            (parse_local_seconds("2026-10-25T02:00"), parse_local_seconds("2026-10-25T03:00"))
        );
    }

    #[test]
    fn the_time_zone_database_is_bundled_with_the_binary() {
        let bundled = TimeZoneDatabase::bundled();
        for name in ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"] {
            assert!(bundled.get(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_are_not_a_zone_are_rejected() {
        for name in ["", "Mars/Olympus", "../etc/passwd", "Etc/Unknown", "local"] {
            let error = Zone::from_name(name).unwrap_err().to_string();
            assert!(error.contains("is not a time zone"), "{name}: {error}");
        }
    }
}
