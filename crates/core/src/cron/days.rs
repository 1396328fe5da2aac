//! Which days of a month an expression means.
//!
//! The answer for a month is a set of its days, worked out from the month's length and the weekday of its first
//! day; so `L`, `W` and `#` cost no more than a plain list.

use jiff::civil::Date;

use super::bits::Bits;

/// Both day fields of an expression and how they are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) of_month: MonthDays,
    pub(super) of_week: WeekDays,
    pub(super) join: Join,
}

/// What a day must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Both,
    /// Vixie's rule when both fields are restricted.
    Either,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MonthDays {
    /// From 1 to 31.
    pub(super) listed: Bits,
    pub(super) marked: Box<[MonthMark]>,
    /// Whether the field is written with `*` or `?`, perhaps with a step.
    pub(super) star: bool,
}

/// A day of the month that depends on the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MonthMark {
    /// `L`, `L-3`: so many days before the last.
    Last { before: u8 },
    /// `LW`, `L-3W`: the weekday nearest to that one.
    LastWeekday { before: u8 },
    /// `15W`: the day from Monday to Friday nearest to it, in the same month.
    NearestWeekday { day: u8 },
}

/// Weekdays are counted from Sunday, 0, in both dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeekDays {
    pub(super) listed: Bits,
    pub(super) marked: Box<[WeekMark]>,
    pub(super) star: bool,
}

/// A weekday that does not come every week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeekMark {
    /// `6#3`: the third in the month.
    Nth { weekday: u8, nth: u8 },
    /// `6L`: the last in the month.
    Last { weekday: u8 },
    /// Every second one, counted from the first of them in 1970.
    Alternate { weekday: u8 },
}

/// One month of one year.
#[derive(Clone, Copy)]
struct Month {
    length: u8,
    /// The weekday of its first day.
    first: u8,
    /// Days from 1970-01-01 to its first day.
    since_1970: i64,
}

impl Days {
    /// The days of this month that are meant.
    pub(super) fn in_month(&self, year: i16, month: u8) -> Bits {
        let month = Month::new(year, month);
        let all = Bits::span(1, month.length);
        if self.of_month.is_every() && self.of_week.is_every() {
            return all;
        }
        let (by_month, by_week) = (self.of_month.in_month(month), self.of_week.in_month(month));
        let chosen = match self.join {
            Join::Both => by_month.and(by_week),
            Join::Either => by_month.or(by_week),
        };
        chosen.and(all)
    }
}

impl Month {
    fn new(year: i16, month: u8) -> Self {
        let first = jiff::civil::date(year, month as i8, 1);
        Self {
            length: first.days_in_month() as u8,
            first: first.weekday().to_sunday_zero_offset() as u8,
            since_1970: days_since_1970(first),
        }
    }

    fn weekday(self, day: u8) -> u8 {
        (self.first + day - 1) % 7
    }

    /// The first such weekday of the month.
    fn first_on(self, weekday: u8) -> u8 {
        1 + (weekday + 7 - self.first) % 7
    }

    /// The day from Monday to Friday nearest to `day`, without leaving the month.
    fn nearest_weekday(self, day: u8) -> u8 {
        match self.weekday(day) {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.length => day - 2,
            0 => day + 1,
            _ => day,
        }
    }
}

fn days_since_1970(date: Date) -> i64 {
    let midnight = jiff::tz::Offset::UTC.to_timestamp(date.at(0, 0, 0, 0));
    midnight.map_or(0, |midnight| midnight.as_second().div_euclid(86_400))
}

impl MonthDays {
    pub(super) fn is_every(&self) -> bool {
        self.listed == Bits::span(1, 31)
    }

    fn in_month(&self, month: Month) -> Bits {
        let mut days = self.listed;
        for mark in &self.marked {
            let day = match *mark {
                MonthMark::Last { before } => month.length.checked_sub(before).filter(|day| *day > 0),
                MonthMark::LastWeekday { before } => {
                    let day = month.length.checked_sub(before).filter(|day| *day > 0);
                    day.map(|day| month.nearest_weekday(day))
                }
                MonthMark::NearestWeekday { day } => {
                    (day <= month.length).then(|| month.nearest_weekday(day))
                }
            };
            day.into_iter().for_each(|day| days.insert(day));
        }
        days
    }
}

impl WeekDays {
    pub(super) fn is_every(&self) -> bool {
        self.listed == Bits::span(0, 6)
    }

    fn in_month(&self, month: Month) -> Bits {
        let mut days = Bits::default();
        for weekday in self.listed.iter() {
            let first = month.first_on(weekday);
            days = days.or(Bits::from_raw(WEEKLY << first));
        }
        for mark in &self.marked {
            match *mark {
                WeekMark::Nth { weekday, nth } => days.insert(month.first_on(weekday) + (nth - 1) * 7),
                WeekMark::Last { weekday } => {
                    let back = (month.weekday(month.length) + 7 - weekday) % 7;
                    days.insert(month.length - back);
                }
                WeekMark::Alternate { weekday } => {
                    let first = month.first_on(weekday);
                    let week = (month.since_1970 + i64::from(first) - 1).div_euclid(7);
                    let first = if week % 2 == 0 { first } else { first + 7 };
                    days = days.or(Bits::from_raw(FORTNIGHTLY << first));
                }
            }
        }
        days
    }
}

/// Bits 0, 7, 14, 21, 28: one day of each week.
const WEEKLY: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
const FORTNIGHTLY: u64 = 1 | 1 << 14 | 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    fn days(month: MonthDays, week: WeekDays, join: Join) -> Days {
        Days { of_month: month, of_week: week, join }
    }

    fn every_day() -> MonthDays {
        MonthDays { listed: Bits::span(1, 31), marked: [].into(), star: true }
    }

    fn every_weekday() -> WeekDays {
        WeekDays { listed: Bits::span(0, 6), marked: [].into(), star: true }
    }

    fn by_month(mark: MonthMark, year: i16, month: u8) -> Vec<u8> {
        let field = MonthDays { listed: Bits::default(), marked: [mark].into(), star: false };
        days(field, every_weekday(), Join::Both).in_month(year, month).iter().collect()
    }

    fn by_week(mark: WeekMark, year: i16, month: u8) -> Vec<u8> {
        let field = WeekDays { listed: Bits::default(), marked: [mark].into(), star: false };
        days(every_day(), field, Join::Both).in_month(year, month).iter().collect()
    }

    #[test]
    fn the_last_day_and_those_before_it() {
        assert_eq!(by_month(MonthMark::Last { before: 0 }, 2024, 2), [29]);
        assert_eq!(by_month(MonthMark::Last { before: 3 }, 2025, 2), [25]);
        assert_eq!(by_month(MonthMark::Last { before: 30 }, 2025, 1), [1]);
        assert!(by_month(MonthMark::Last { before: 30 }, 2025, 4).is_empty());
    }

    #[test]
    fn the_nearest_weekday_stays_in_its_month() {
        // 1 November 2025 is a Saturday, 31 May 2026 a Sunday, 15 March 2026 a Sunday.
        assert_eq!(by_month(MonthMark::NearestWeekday { day: 1 }, 2025, 11), [3]);
        assert_eq!(by_month(MonthMark::NearestWeekday { day: 31 }, 2026, 5), [29]);
        assert_eq!(by_month(MonthMark::NearestWeekday { day: 15 }, 2026, 3), [16]);
        assert_eq!(by_month(MonthMark::LastWeekday { before: 0 }, 2026, 5), [29]);
        assert!(by_month(MonthMark::NearestWeekday { day: 31 }, 2026, 4).is_empty());
    }

    #[test]
    fn weekdays_that_do_not_come_every_week() {
        assert_eq!(by_week(WeekMark::Nth { weekday: 5, nth: 3 }, 2026, 5), [15]);
        assert_eq!(by_week(WeekMark::Nth { weekday: 5, nth: 5 }, 2026, 5), [29]);
        assert!(by_week(WeekMark::Nth { weekday: 1, nth: 5 }, 2026, 2).is_empty());
        assert_eq!(by_week(WeekMark::Last { weekday: 5 }, 2026, 2), [27]);
    }

    #[test]
    fn alternate_weekdays_are_fourteen_days_apart_across_months_and_years() {
        let mut seen = Vec::new();
        for year in 1970..1980 {
            for month in 1..=12 {
                for day in by_week(WeekMark::Alternate { weekday: 0 }, year, month) {
                    seen.push(days_since_1970(jiff::civil::date(year, month as i8, day as i8)));
                }
            }
        }
        assert_eq!(seen[0], 3, "4 January 1970 was the first Sunday");
        assert!(seen.windows(2).all(|pair| pair[1] - pair[0] == 14));
    }
}
