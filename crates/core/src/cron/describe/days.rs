//! Describes days, months and years in English.

use super::numbers::{ValuePattern, describe_members, find_pattern, format_ordinal, join_with_and};
use crate::cron::calendar::CalendarFields;
use crate::cron::days::{DayFieldMatch, MonthDayField, SpecialMonthDay, SpecialWeekday, WeekdayField};
use crate::cron::field::Years;
use crate::cron::number_set::NumberSet;

const WEEKDAY_NAMES: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(in crate::cron) fn weekday_name(number: u8) -> String {
    WEEKDAY_NAMES[usize::from(number) % 7].into()
}

pub(in crate::cron) fn month_name(number: u8) -> String {
    MONTH_NAMES[(usize::from(number) + 11) % 12].into()
}

/// Describes the days that match; empty when all days of all months and years do.
pub(super) fn describe_days(calendar: &CalendarFields) -> String {
    let days = &calendar.days;
    let all_months = find_pattern(calendar.months, 1, 12) == ValuePattern::All;
    let (month_restricted, week_restricted) =
        (!days.day_of_month.is_unrestricted(), !days.day_of_week.is_unrestricted());
    let in_months =
        if all_months { String::new() } else { format!(" in {}", describe_month_names(calendar.months)) };
    let parts = match (month_restricted, week_restricted, days.day_match) {
        (false, false, _) if all_months => String::new(),
        (false, false, _) | (false, true, DayFieldMatch::Either) | (true, false, DayFieldMatch::Either) => {
            format!("every day{in_months}")
        }
        (true, false, DayFieldMatch::Both) => describe_month_days(&days.day_of_month, calendar.months),
        (false, true, DayFieldMatch::Both) => describe_weekdays(&days.day_of_week, calendar.months),
        (true, true, DayFieldMatch::Either) => format!(
            "{} or {}",
            describe_month_days(&days.day_of_month, calendar.months),
            describe_weekdays(&days.day_of_week, calendar.months)
        ),
        (true, true, DayFieldMatch::Both) => format!(
            "{}, but only {}",
            describe_weekdays(&days.day_of_week, calendar.months),
            describe_month_days(&days.day_of_month, calendar.months)
        ),
    };
    match &calendar.years {
        Years::All => parts,
        Years::Listed(years) if parts.is_empty() => {
            format!("every day {}", describe_years(years))
        }
        Years::Listed(years) => format!("{parts} {}", describe_years(years)),
    }
}

fn describe_month_names(set: NumberSet) -> String {
    describe_members(set, 1, 12, month_name)
}

fn describe_months(set: NumberSet) -> String {
    if find_pattern(set, 1, 12) == ValuePattern::All {
        "every month".into()
    } else {
        describe_month_names(set)
    }
}

fn describe_month_days(days: &MonthDayField, months: NumberSet) -> String {
    let mut parts = Vec::new();
    if !days.listed_days.is_empty() {
        let noun = if days.listed_days.len() == 1 { "day" } else { "days" };
        parts.push(format!("{noun} {}", describe_members(days.listed_days, 1, 31, |day| day.to_string())));
    }
    parts.extend(days.special_days.iter().map(|special_day| describe_special_month_day(*special_day)));
    format!("on {} of {}", join_with_and(parts), describe_months(months))
}

fn describe_special_month_day(special_day: SpecialMonthDay) -> String {
    match special_day {
        SpecialMonthDay::Last { days_before: 0 } => "the last day".into(),
        SpecialMonthDay::Last { days_before: 1 } => "the day before the last day".into(),
        SpecialMonthDay::Last { days_before } => {
            format!("the {} day before the last day", format_ordinal(days_before))
        }
        SpecialMonthDay::LastWorkingDay { days_before: 0 } => {
            "the last working day (Monday to Friday)".into()
        }
        SpecialMonthDay::LastWorkingDay { days_before } => {
            format!(
                "the working day (Monday to Friday) nearest to {}",
                describe_special_month_day(SpecialMonthDay::Last { days_before })
            )
        }
        SpecialMonthDay::NearestWorkingDay { day } => {
            format!("the working day (Monday to Friday) nearest to day {day}")
        }
    }
}

fn describe_weekdays(days: &WeekdayField, months: NumberSet) -> String {
    let mut parts = Vec::new();
    let all_months = find_pattern(months, 1, 12) == ValuePattern::All;
    let in_months = if all_months { String::new() } else { format!(" in {}", describe_month_names(months)) };
    match find_weekday_range(days.listed_days) {
        None => {}
        Some((first, last)) => {
            parts.push(format!("from {} to {}{in_months}", weekday_name(first), weekday_name(last)))
        }
    }
    if parts.is_empty() && !days.listed_days.is_empty() {
        parts.push(format!(
            "every {}{in_months}",
            join_with_and(days.listed_days.iter().map(weekday_name).collect())
        ));
    }
    for special_day in &days.special_days {
        parts.push(match *special_day {
            SpecialWeekday::Nth { weekday, nth } => {
                format!(
                    "on the {} {} of {}",
                    format_ordinal(nth),
                    weekday_name(weekday),
                    describe_months(months)
                )
            }
            SpecialWeekday::Last { weekday } => {
                format!("on the last {} of {}", weekday_name(weekday), describe_months(months))
            }
            SpecialWeekday::EverySecondWeek { weekday } => {
                format!("every second {}{in_months}", weekday_name(weekday))
            }
        });
    }
    join_with_and(parts)
}

/// The first and the last of a range of at least three weekdays.
fn find_weekday_range(set: NumberSet) -> Option<(u8, u8)> {
    if set.len() < 3 {
        return None;
    }
    match find_pattern(set, 0, 6) {
        ValuePattern::Range(first, last) => Some((first, last)),
        ValuePattern::All => Some((1, 0)),
        _ => None,
    }
}

fn describe_years(years: &[i16]) -> String {
    match years {
        [first, .., last] if usize::from(first.abs_diff(*last)) + 1 == years.len() && years.len() > 2 => {
            format!("from {first} to {last}")
        }
        _ => format!("in {}", join_with_and(years.iter().map(i16::to_string).collect())),
    }
}
