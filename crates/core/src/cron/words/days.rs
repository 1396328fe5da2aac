//! Days, months and years in words.

use super::numbers::{Pattern, list, members, ordinal, pattern};
use crate::cron::bits::Bits;
use crate::cron::calendar::Calendar;
use crate::cron::days::{Join, MonthDays, MonthMark, WeekDays, WeekMark};
use crate::cron::field::Years;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
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

pub(in crate::cron) fn weekday(number: u8) -> String {
    WEEKDAYS[usize::from(number) % 7].into()
}

pub(in crate::cron) fn month(number: u8) -> String {
    MONTHS[(usize::from(number) + 11) % 12].into()
}

/// The days of a calendar; empty when they are all days of all months and years.
pub(super) fn days(calendar: &Calendar) -> String {
    let days = &calendar.days;
    let all_months = pattern(calendar.months, 1, 12) == Pattern::All;
    let (by_month, by_week) = (!days.of_month.is_every(), !days.of_week.is_every());
    let in_months = if all_months { String::new() } else { format!(" in {}", months(calendar.months)) };
    let told = match (by_month, by_week, days.join) {
        (false, false, _) if all_months => String::new(),
        (false, false, _) | (false, true, Join::Either) | (true, false, Join::Either) => {
            format!("every day{in_months}")
        }
        (true, false, Join::Both) => of_month(&days.of_month, calendar.months),
        (false, true, Join::Both) => of_week(&days.of_week, calendar.months),
        (true, true, Join::Either) => format!(
            "{} or {}",
            of_month(&days.of_month, calendar.months),
            of_week(&days.of_week, calendar.months)
        ),
        (true, true, Join::Both) => format!(
            "{}, but only {}",
            of_week(&days.of_week, calendar.months),
            of_month(&days.of_month, calendar.months)
        ),
    };
    match &calendar.years {
        Years::Every => told,
        Years::Listed(listed) if told.is_empty() => format!("every day {}", years(listed)),
        Years::Listed(listed) => format!("{told} {}", years(listed)),
    }
}

fn months(set: Bits) -> String {
    members(set, 1, 12, month)
}

fn of_months(set: Bits) -> String {
    if pattern(set, 1, 12) == Pattern::All { "every month".into() } else { months(set) }
}

fn of_month(days: &MonthDays, months: Bits) -> String {
    let mut told = Vec::new();
    if !days.listed.is_empty() {
        let noun = if days.listed.len() == 1 { "day" } else { "days" };
        told.push(format!("{noun} {}", members(days.listed, 1, 31, |day| day.to_string())));
    }
    told.extend(days.marked.iter().map(|mark| month_mark(*mark)));
    format!("on {} of {}", list(told), of_months(months))
}

fn month_mark(mark: MonthMark) -> String {
    match mark {
        MonthMark::Last { before: 0 } => "the last day".into(),
        MonthMark::Last { before: 1 } => "the day before the last day".into(),
        MonthMark::Last { before } => format!("the {} day before the last day", ordinal(before)),
        MonthMark::LastWeekday { before: 0 } => "the last working day (Monday to Friday)".into(),
        MonthMark::LastWeekday { before } => {
            format!(
                "the working day (Monday to Friday) nearest to {}",
                month_mark(MonthMark::Last { before })
            )
        }
        MonthMark::NearestWeekday { day } => {
            format!("the working day (Monday to Friday) nearest to day {day}")
        }
    }
}

fn of_week(days: &WeekDays, months: Bits) -> String {
    let mut told = Vec::new();
    let all_months = pattern(months, 1, 12) == Pattern::All;
    let in_months = if all_months { String::new() } else { format!(" in {}", self::months(months)) };
    match pattern_of_week(days.listed) {
        None => {}
        Some((first, last)) => told.push(format!("from {} to {}{in_months}", weekday(first), weekday(last))),
    }
    if told.is_empty() && !days.listed.is_empty() {
        told.push(format!("every {}{in_months}", list(days.listed.iter().map(weekday).collect())));
    }
    for mark in &days.marked {
        told.push(match *mark {
            WeekMark::Nth { weekday: day, nth } => {
                format!("on the {} {} of {}", ordinal(nth), weekday(day), of_months(months))
            }
            WeekMark::Last { weekday: day } => {
                format!("on the last {} of {}", weekday(day), of_months(months))
            }
            WeekMark::Alternate { weekday: day } => format!("every second {}{in_months}", weekday(day)),
        });
    }
    list(told)
}

/// The first and the last of a run of at least three weekdays.
fn pattern_of_week(set: Bits) -> Option<(u8, u8)> {
    if set.len() < 3 {
        return None;
    }
    match pattern(set, 0, 6) {
        Pattern::Run(first, last) => Some((first, last)),
        Pattern::All => Some((1, 0)),
        _ => None,
    }
}

fn years(listed: &[i16]) -> String {
    match listed {
        [first, .., last] if usize::from(first.abs_diff(*last)) + 1 == listed.len() && listed.len() > 2 => {
            format!("from {first} to {last}")
        }
        _ => format!("in {}", list(listed.iter().map(i16::to_string).collect())),
    }
}
