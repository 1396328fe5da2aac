//! The parsed fields of an expression, and the search for the nearest local time that matches them.
//!
//! Local time is counted here in seconds as if the local clock had never been changed: no zone, no gaps, no folds.
//! [`super::schedule`] adds the zone.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::days::DayFields;
use super::field::{YEAR_RANGE, Years};
use super::number_set::{Direction, NumberSet};

/// The parsed fields of an expression. A local time matches if all of them match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CalendarFields {
    pub(super) times: TimesOfDay,
    pub(super) days: DayFields,
    /// The matching months, from 1 to 12.
    pub(super) months: NumberSet,
    pub(super) years: Years,
}

/// The times of a day: every combination of these hours, minutes and seconds. None of the sets is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimesOfDay {
    pub(super) seconds: NumberSet,
    pub(super) minutes: NumberSet,
    pub(super) hours: NumberSet,
    pub(super) dst_handling: DstHandling,
}

/// How an expression treats the hour that daylight saving time skips or repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DstHandling {
    /// All seconds, minutes and hours are listed singly: each time fires once, even where it is skipped or repeated.
    FireOnce,
    /// A time field contains a `*`, a range or a step: skipped times do not fire, repeated ones fire twice.
    SkipAndRepeat,
}

/// A local date and time of day.
#[derive(Clone, Copy)]
struct LocalDateTime {
    year: i16,
    month: u8,
    day: u8,
    time: TimeOfDay,
}

#[derive(Clone, Copy)]
struct TimeOfDay {
    hour: u8,
    minute: u8,
    second: u8,
}

/// Converts local seconds to a date and time. The seconds are between 1970 and 2200, a day more or less, all of which
/// `jiff` accepts.
pub(super) fn to_civil_datetime(local: i64) -> DateTime {
    let instant = jiff::Timestamp::from_second(local).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Offset::UTC.to_datetime(instant)
}

impl CalendarFields {
    /// The matching local time that is nearest to `from` in this direction, `from` included. None: there is none.
    pub(super) fn find_time_at_or_beyond(&self, from: i64, direction: Direction) -> Option<i64> {
        let start = LocalDateTime::from_local_seconds(from);
        if self.matches_day(start)
            && let Some(time) = self.times.find_time_at_or_beyond(start.time, direction)
        {
            return LocalDateTime { time, ..start }.to_local_seconds();
        }
        let (year, month, day) = self.find_day_beyond(start, direction)?;
        LocalDateTime { year, month, day, time: self.times.first_in_direction(direction) }.to_local_seconds()
    }

    fn matches_day(&self, at: LocalDateTime) -> bool {
        self.months.contains(at.month)
            && self.years.find_year_at_or_beyond(at.year, Direction::Forward) == Some(at.year)
            && self.days.matching_days(at.year, at.month).contains(at.day)
    }

    fn find_day_beyond(&self, start: LocalDateTime, direction: Direction) -> Option<(i16, u8, u8)> {
        if self.years.find_year_at_or_beyond(start.year, direction)? == start.year
            && self.months.contains(start.month)
        {
            let days = self.days.matching_days(start.year, start.month);
            if let Some(day) = days.find_beyond(start.day, direction) {
                return Some((start.year, start.month, day));
            }
        }
        let mut year = self.years.find_year_at_or_beyond(start.year, direction)?;
        let mut month = if year == start.year {
            self.months.find_beyond(start.month, direction)
        } else {
            Some(self.months.first_in_direction(direction))
        };
        loop {
            while let Some(current) = month {
                let days = self.days.matching_days(year, current);
                if !days.is_empty() {
                    return Some((year, current, days.first_in_direction(direction)));
                }
                month = self.months.find_beyond(current, direction);
            }
            year = self.years.find_year_at_or_beyond(year + direction.select(1, -1), direction)?;
            month = Some(self.months.first_in_direction(direction));
        }
    }
}

impl Years {
    fn find_year_at_or_beyond(&self, from: i16, direction: Direction) -> Option<i16> {
        match (self, direction) {
            (Self::All, Direction::Forward) => {
                Some(from.max(YEAR_RANGE.0 as i16)).filter(|y| *y <= YEAR_RANGE.1 as i16)
            }
            (Self::All, Direction::Backward) => {
                Some(from.min(YEAR_RANGE.1 as i16)).filter(|y| *y >= YEAR_RANGE.0 as i16)
            }
            (Self::Listed(years), Direction::Forward) => years.iter().copied().find(|year| *year >= from),
            (Self::Listed(years), Direction::Backward) => {
                years.iter().rev().copied().find(|year| *year <= from)
            }
        }
    }
}

impl TimesOfDay {
    fn find_time_at_or_beyond(&self, from: TimeOfDay, direction: Direction) -> Option<TimeOfDay> {
        if self.hours.contains(from.hour) {
            if self.minutes.contains(from.minute)
                && let Some(second) = self.seconds.find_at_or_beyond(from.second, direction)
            {
                return Some(TimeOfDay { second, ..from });
            }
            if let Some(minute) = self.minutes.find_beyond(from.minute, direction) {
                return Some(TimeOfDay {
                    minute,
                    second: self.seconds.first_in_direction(direction),
                    ..from
                });
            }
        }
        let hour = self.hours.find_beyond(from.hour, direction)?;
        Some(TimeOfDay { hour, ..self.first_in_direction(direction) })
    }

    fn first_in_direction(&self, direction: Direction) -> TimeOfDay {
        TimeOfDay {
            hour: self.hours.first_in_direction(direction),
            minute: self.minutes.first_in_direction(direction),
            second: self.seconds.first_in_direction(direction),
        }
    }

    /// The number of times of day that match: at most 86,400.
    pub(super) fn count_per_day(&self) -> u32 {
        self.hours.len() * self.minutes.len() * self.seconds.len()
    }
}

impl LocalDateTime {
    fn from_local_seconds(local: i64) -> Self {
        let at = to_civil_datetime(local);
        Self {
            year: at.year(),
            month: at.month() as u8,
            day: at.day() as u8,
            time: TimeOfDay { hour: at.hour() as u8, minute: at.minute() as u8, second: at.second() as u8 },
        }
    }

    fn to_local_seconds(self) -> Option<i64> {
        let TimeOfDay { hour, minute, second } = self.time;
        let date = jiff::civil::date(self.year, self.month as i8, self.day as i8);
        let at = date.at(hour as i8, minute as i8, second as i8, 0);
        Offset::UTC.to_timestamp(at).ok().map(jiff::Timestamp::as_second)
    }
}
