//! The day fields of an expression, and which days of a month match them.
//!
//! The result for a month is a set of its days, worked out from the month's length and the weekday of its first
//! day; so `L`, `W` and `#` cost no more than a plain list.

use jiff::civil::Date;

use super::number_set::NumberSet;

/// Both day fields of an expression and how they are combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DayFields {
    pub(super) day_of_month: MonthDayField,
    pub(super) day_of_week: WeekdayField,
    pub(super) day_match: DayFieldMatch,
}

/// Which of the two day fields a day must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayFieldMatch {
    /// A day must match both fields.
    Both,
    /// A day must match one of the fields: Vixie's rule when both fields are restricted.
    Either,
}

/// The day-of-month field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MonthDayField {
    /// The listed days of the month, from 1 to 31.
    pub(super) listed_days: NumberSet,
    pub(super) special_days: Box<[SpecialMonthDay]>,
    /// Whether the field is written as `?`, or begins with `*`.
    pub(super) is_star: bool,
}

/// A day of the month whose number depends on the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpecialMonthDay {
    /// `L`, `L-3`: the day this many days before the last day of the month.
    Last { days_before: u8 },
    /// `LW`, `L-3W`: the day from Monday to Friday nearest to the day this many days before the last day of the month.
    LastWorkingDay { days_before: u8 },
    /// `15W`: the day from Monday to Friday nearest to this day, in the same month.
    NearestWorkingDay { day: u8 },
}

/// The day-of-week field. Weekdays are counted from Sunday, 0, in both dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeekdayField {
    /// The listed weekdays, from 0 (Sunday) to 6.
    pub(super) listed_days: NumberSet,
    pub(super) special_days: Box<[SpecialWeekday]>,
    pub(super) is_star: bool,
}

/// A weekday that does not match every week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpecialWeekday {
    /// `6#3`: the `nth` of this weekday in the month.
    Nth { weekday: u8, nth: u8 },
    /// `6L`: the last of this weekday in the month.
    Last { weekday: u8 },
    /// This weekday in every second week, counted from the first such day of 1970.
    EverySecondWeek { weekday: u8 },
}

/// One month of one year.
#[derive(Clone, Copy)]
struct MonthOfYear {
    day_count: u8,
    /// The weekday of the month's first day.
    first_weekday: u8,
    /// The number of days from 1970-01-01 to the month's first day.
    days_since_1970: i64,
}

impl DayFields {
    /// The days of this month that match the day fields.
    pub(super) fn matching_days(&self, year: i16, month: u8) -> NumberSet {
        let month = MonthOfYear::new(year, month);
        let all_days = NumberSet::from_range(1, month.day_count);
        if self.day_of_month.is_unrestricted() && self.day_of_week.is_unrestricted() {
            return all_days;
        }
        let (by_month, by_week) =
            (self.day_of_month.matching_days(month), self.day_of_week.matching_days(month));
        let matching = match self.day_match {
            DayFieldMatch::Both => by_month.intersection(by_week),
            DayFieldMatch::Either => by_month.union(by_week),
        };
        matching.intersection(all_days)
    }
}

impl MonthOfYear {
    fn new(year: i16, month: u8) -> Self {
        let first = jiff::civil::date(year, month as i8, 1);
        Self {
            day_count: first.days_in_month() as u8,
            first_weekday: first.weekday().to_sunday_zero_offset() as u8,
            days_since_1970: days_since_1970(first),
        }
    }

    fn weekday_of(self, day: u8) -> u8 {
        (self.first_weekday + day - 1) % 7
    }

    /// The first day of the month that is this weekday.
    fn first_day_on_weekday(self, weekday: u8) -> u8 {
        1 + (weekday + 7 - self.first_weekday) % 7
    }

    /// The day from Monday to Friday nearest to `day`, without leaving the month.
    fn nearest_working_day(self, day: u8) -> u8 {
        match self.weekday_of(day) {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.day_count => day - 2,
            0 => day + 1,
            _ => day,
        }
    }
}

fn days_since_1970(date: Date) -> i64 {
    let midnight = jiff::tz::Offset::UTC.to_timestamp(date.at(0, 0, 0, 0));
    midnight.map_or(0, |midnight| midnight.as_second().div_euclid(86_400))
}

impl MonthDayField {
    pub(super) fn is_unrestricted(&self) -> bool {
        self.listed_days == NumberSet::from_range(1, 31)
    }

    fn matching_days(&self, month: MonthOfYear) -> NumberSet {
        let mut days = self.listed_days;
        for special_day in &self.special_days {
            let day = match *special_day {
                SpecialMonthDay::Last { days_before } => {
                    month.day_count.checked_sub(days_before).filter(|day| *day > 0)
                }
                SpecialMonthDay::LastWorkingDay { days_before } => {
                    let day = month.day_count.checked_sub(days_before).filter(|day| *day > 0);
                    day.map(|day| month.nearest_working_day(day))
                }
                SpecialMonthDay::NearestWorkingDay { day } => {
                    (day <= month.day_count).then(|| month.nearest_working_day(day))
                }
            };
            day.into_iter().for_each(|day| days.insert(day));
        }
        days
    }
}

impl WeekdayField {
    pub(super) fn is_unrestricted(&self) -> bool {
        self.listed_days == NumberSet::from_range(0, 6)
    }

    fn matching_days(&self, month: MonthOfYear) -> NumberSet {
        let mut days = NumberSet::default();
        for weekday in self.listed_days.iter() {
            let first = month.first_day_on_weekday(weekday);
            days = days.union(NumberSet::from_bits(WEEKLY_BITS << first));
        }
        for special_day in &self.special_days {
            match *special_day {
                SpecialWeekday::Nth { weekday, nth } => {
                    days.insert(month.first_day_on_weekday(weekday) + (nth - 1) * 7)
                }
                SpecialWeekday::Last { weekday } => {
                    let days_before_last = (month.weekday_of(month.day_count) + 7 - weekday) % 7;
                    days.insert(month.day_count - days_before_last);
                }
                SpecialWeekday::EverySecondWeek { weekday } => {
                    let first = month.first_day_on_weekday(weekday);
                    let week = (month.days_since_1970 + i64::from(first) - 1).div_euclid(7);
                    let first = if week % 2 == 0 { first } else { first + 7 };
                    days = days.union(NumberSet::from_bits(FORTNIGHTLY_BITS << first));
                }
            }
        }
        days
    }
}

/// Bits 0, 7, 14, 21, 28: one day of each week.
const WEEKLY_BITS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
/// Bits 0, 14 and 28: one day of every second week.
const FORTNIGHTLY_BITS: u64 = 1 | 1 << 14 | 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    fn day_fields(month: MonthDayField, week: WeekdayField, day_match: DayFieldMatch) -> DayFields {
        DayFields { day_of_month: month, day_of_week: week, day_match }
    }

    fn star_month_day_field() -> MonthDayField {
        MonthDayField { listed_days: NumberSet::from_range(1, 31), special_days: [].into(), is_star: true }
    }

    fn star_weekday_field() -> WeekdayField {
        WeekdayField { listed_days: NumberSet::from_range(0, 6), special_days: [].into(), is_star: true }
    }

    fn days_by_special_month_day(special_day: SpecialMonthDay, year: i16, month: u8) -> Vec<u8> {
        let field = MonthDayField {
            listed_days: NumberSet::default(),
            special_days: [special_day].into(),
            is_star: false,
        };
        day_fields(field, star_weekday_field(), DayFieldMatch::Both)
            .matching_days(year, month)
            .iter()
            .collect()
    }

    fn days_by_special_weekday(special_day: SpecialWeekday, year: i16, month: u8) -> Vec<u8> {
        let field = WeekdayField {
            listed_days: NumberSet::default(),
            special_days: [special_day].into(),
            is_star: false,
        };
        day_fields(star_month_day_field(), field, DayFieldMatch::Both)
            .matching_days(year, month)
            .iter()
            .collect()
    }

    #[test]
    fn special_days_before_the_last_day_of_a_month_match() {
        assert_eq!(days_by_special_month_day(SpecialMonthDay::Last { days_before: 0 }, 2024, 2), [29]);
        assert_eq!(days_by_special_month_day(SpecialMonthDay::Last { days_before: 3 }, 2025, 2), [25]);
        assert_eq!(days_by_special_month_day(SpecialMonthDay::Last { days_before: 30 }, 2025, 1), [1]);
        assert!(days_by_special_month_day(SpecialMonthDay::Last { days_before: 30 }, 2025, 4).is_empty());
    }

    #[test]
    fn the_nearest_working_day_stays_in_its_month() {
        // 1 November 2025 is a Saturday, 31 May 2026 a Sunday, 15 March 2026 a Sunday.
        assert_eq!(days_by_special_month_day(SpecialMonthDay::NearestWorkingDay { day: 1 }, 2025, 11), [3]);
        assert_eq!(days_by_special_month_day(SpecialMonthDay::NearestWorkingDay { day: 31 }, 2026, 5), [29]);
        assert_eq!(days_by_special_month_day(SpecialMonthDay::NearestWorkingDay { day: 15 }, 2026, 3), [16]);
        assert_eq!(
            days_by_special_month_day(SpecialMonthDay::LastWorkingDay { days_before: 0 }, 2026, 5),
            [29]
        );
        assert!(
            days_by_special_month_day(SpecialMonthDay::NearestWorkingDay { day: 31 }, 2026, 4).is_empty()
        );
    }

    #[test]
    fn nth_and_last_weekdays_match_at_most_once_a_month() {
        assert_eq!(days_by_special_weekday(SpecialWeekday::Nth { weekday: 5, nth: 3 }, 2026, 5), [15]);
        assert_eq!(days_by_special_weekday(SpecialWeekday::Nth { weekday: 5, nth: 5 }, 2026, 5), [29]);
        assert!(days_by_special_weekday(SpecialWeekday::Nth { weekday: 1, nth: 5 }, 2026, 2).is_empty());
        assert_eq!(days_by_special_weekday(SpecialWeekday::Last { weekday: 5 }, 2026, 2), [27]);
    }

    #[test]
    fn alternate_weekdays_are_fourteen_days_apart_across_months_and_years() {
        let mut matching = Vec::new();
        for year in 1970..1980 {
            for month in 1..=12 {
                for day in
                    days_by_special_weekday(SpecialWeekday::EverySecondWeek { weekday: 0 }, year, month)
                {
                    matching.push(days_since_1970(jiff::civil::date(year, month as i8, day as i8)));
                }
            }
        }
        assert_eq!(matching[0], 3, "4 January 1970 was the first Sunday");
        assert!(matching.windows(2).all(|pair| pair[1] - pair[0] == 14));
    }
}
