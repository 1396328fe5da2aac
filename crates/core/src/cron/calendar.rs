//! An expression of fields, and the search for its nearest local time.
//!
//! Local time is counted here in seconds as if the clock on the wall had never been moved: no zone, no gaps, no
//! folds. The zone comes in later, in [`super::schedule`].

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::bits::{Bits, Way};
use super::days::Days;
use super::field::{YEARS, Years};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) times: Times,
    pub(super) days: Days,
    /// From 1 to 12.
    pub(super) months: Bits,
    pub(super) years: Years,
}

/// The times of a day: every combination of these hours, minutes and seconds. None of the sets is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) seconds: Bits,
    pub(super) minutes: Bits,
    pub(super) hours: Bits,
    pub(super) manner: Manner,
}

/// How an expression treats the hour that summer time takes away or gives twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Every second, minute and hour is named on its own: the person means these times of day, once each.
    Fixed,
    /// A `*`, a range or a step stands among them: the person means a rhythm.
    Interval,
}

/// A local time taken apart.
#[derive(Clone, Copy)]
struct Civil {
    year: i16,
    month: u8,
    day: u8,
    time: Time,
}

#[derive(Clone, Copy)]
struct Time {
    hour: u8,
    minute: u8,
    second: u8,
}

/// A local time, from seconds. Those that come here lie between 1970 and 2200, a day more or less, which the
/// library can always show.
pub(super) fn civil(local: i64) -> DateTime {
    let instant = jiff::Timestamp::from_second(local).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Offset::UTC.to_datetime(instant)
}

impl Calendar {
    /// The nearest local time that matches, `from` itself or further along.
    pub(super) fn seek(&self, from: i64, way: Way) -> Option<i64> {
        let start = Civil::new(from);
        if self.has_day(start)
            && let Some(time) = self.times.seek(start.time, way)
        {
            return Civil { time, ..start }.seconds();
        }
        let (year, month, day) = self.day_beyond(start, way)?;
        Civil { year, month, day, time: self.times.edge(way) }.seconds()
    }

    fn has_day(&self, at: Civil) -> bool {
        self.months.contains(at.month)
            && self.years.seek(at.year, Way::Forward) == Some(at.year)
            && self.days.in_month(at.year, at.month).contains(at.day)
    }

    fn day_beyond(&self, start: Civil, way: Way) -> Option<(i16, u8, u8)> {
        if self.years.seek(start.year, way)? == start.year && self.months.contains(start.month) {
            let days = self.days.in_month(start.year, start.month);
            if let Some(day) = days.beyond(start.day, way) {
                return Some((start.year, start.month, day));
            }
        }
        let mut year = self.years.seek(start.year, way)?;
        let mut month = if year == start.year {
            self.months.beyond(start.month, way)
        } else {
            Some(self.months.edge(way))
        };
        loop {
            while let Some(current) = month {
                let days = self.days.in_month(year, current);
                if !days.is_empty() {
                    return Some((year, current, days.edge(way)));
                }
                month = self.months.beyond(current, way);
            }
            year = self.years.seek(year + way.start(1, -1), way)?;
            month = Some(self.months.edge(way));
        }
    }
}

impl Years {
    fn seek(&self, from: i16, way: Way) -> Option<i16> {
        match (self, way) {
            (Self::Every, Way::Forward) => Some(from.max(YEARS.0 as i16)).filter(|y| *y <= YEARS.1 as i16),
            (Self::Every, Way::Backward) => Some(from.min(YEARS.1 as i16)).filter(|y| *y >= YEARS.0 as i16),
            (Self::Listed(years), Way::Forward) => years.iter().copied().find(|year| *year >= from),
            (Self::Listed(years), Way::Backward) => years.iter().rev().copied().find(|year| *year <= from),
        }
    }
}

impl Times {
    fn seek(&self, from: Time, way: Way) -> Option<Time> {
        if self.hours.contains(from.hour) {
            if self.minutes.contains(from.minute)
                && let Some(second) = self.seconds.seek(from.second, way)
            {
                return Some(Time { second, ..from });
            }
            if let Some(minute) = self.minutes.beyond(from.minute, way) {
                return Some(Time { minute, second: self.seconds.edge(way), ..from });
            }
        }
        let hour = self.hours.beyond(from.hour, way)?;
        Some(Time { hour, ..self.edge(way) })
    }

    fn edge(&self, way: Way) -> Time {
        Time { hour: self.hours.edge(way), minute: self.minutes.edge(way), second: self.seconds.edge(way) }
    }

    /// How often a day holds one of these times.
    pub(super) fn a_day(&self) -> u32 {
        self.hours.len() * self.minutes.len() * self.seconds.len()
    }
}

impl Civil {
    fn new(local: i64) -> Self {
        let at = civil(local);
        Self {
            year: at.year(),
            month: at.month() as u8,
            day: at.day() as u8,
            time: Time { hour: at.hour() as u8, minute: at.minute() as u8, second: at.second() as u8 },
        }
    }

    fn seconds(self) -> Option<i64> {
        let Time { hour, minute, second } = self.time;
        let date = jiff::civil::date(self.year, self.month as i8, self.day as i8);
        let at = date.at(hour as i8, minute as i8, second as i8, 0);
        Offset::UTC.to_timestamp(at).ok().map(jiff::Timestamp::as_second)
    }
}
