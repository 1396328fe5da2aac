//! The times of a day in words.

use super::numbers::{Pattern, list, members, ordinal, pattern, plural};
use crate::cron::bits::Bits;
use crate::cron::calendar::Times;

/// Up to this many times a day are told one by one.
const TOLD_SINGLY: u32 = 6;

/// The times of a day in words.
pub(super) struct Told {
    pub(super) words: String,
    /// Whether they hold the whole day through, so that `every day` need not be said.
    pub(super) all_day: bool,
    /// Whether they are times of day, after which the day follows without a comma.
    pub(super) clock: bool,
}

pub(super) fn times(times: &Times, with_seconds: bool) -> Told {
    if times.a_day() <= TOLD_SINGLY {
        return Told { words: format!("at {}", clock(times)), all_day: false, clock: true };
    }
    let all_day = matches!(pattern(times.hours, 0, 23), Pattern::All | Pattern::Even { .. });
    let words = match pattern(times.seconds, 0, 59) {
        Pattern::One(second) if with_seconds => format!("{}, at second {second}", by_minutes(times)),
        Pattern::One(_) => by_minutes(times),
        seconds => by_seconds(times, seconds),
    };
    Told { words, all_day, clock: false }
}

/// Every time of the day, one by one.
fn clock(times: &Times) -> String {
    let seconds_matter = times.seconds != Bits::of([0]);
    let mut told = Vec::new();
    for hour in times.hours.iter() {
        for minute in times.minutes.iter() {
            for second in times.seconds.iter() {
                told.push(if seconds_matter {
                    format!("{hour:02}:{minute:02}:{second:02}")
                } else {
                    format!("{hour:02}:{minute:02}")
                });
            }
        }
    }
    list(told)
}

fn by_seconds(times: &Times, seconds: Pattern) -> String {
    let rhythm = match seconds {
        Pattern::All => "every second".to_owned(),
        Pattern::Even { first: 0, step } => format!("every {step} seconds"),
        Pattern::Even { first, step } => format!("every {step} seconds from second {first}"),
        _ => format!("at seconds {}", numbers(times.seconds)),
    };
    let minutes = match pattern(times.minutes, 0, 59) {
        Pattern::All if matches!(seconds, Pattern::All | Pattern::Even { .. }) => String::new(),
        Pattern::All => " of every minute".into(),
        Pattern::One(minute) => format!(" of minute {minute}"),
        Pattern::Even { first: 0, step } => format!(" of every {} minute", ordinal(step)),
        _ => format!(" of minutes {}", numbers(times.minutes)),
    };
    format!("{rhythm}{minutes}{}", in_hours(times.hours))
}

fn by_minutes(times: &Times) -> String {
    let hours = in_hours(times.hours);
    match pattern(times.minutes, 0, 59) {
        Pattern::All => format!("every minute{hours}"),
        Pattern::Even { first: 0, step } => format!("every {step} minutes{hours}"),
        Pattern::Even { first, step } => format!("every {step} minutes from minute {first}{hours}"),
        Pattern::One(minute) => format!("{} at minute {minute}", by_hours(times.hours)),
        _ => format!("at minutes {}{}", numbers(times.minutes), of_hours(times.hours)),
    }
}

/// For expressions that fire once an hour.
fn by_hours(hours: Bits) -> String {
    match pattern(hours, 0, 23) {
        Pattern::Even { first: 0, step } => format!("every {}", plural(i64::from(step), "hour")),
        Pattern::Even { first, step } => format!("every {step} hours from {first:02}:00"),
        _ => format!("every hour{}", in_hours(hours)),
    }
}

fn of_hours(hours: Bits) -> String {
    match pattern(hours, 0, 23) {
        Pattern::All => " of every hour".into(),
        _ => in_hours(hours),
    }
}

fn in_hours(hours: Bits) -> String {
    match pattern(hours, 0, 23) {
        Pattern::All => String::new(),
        Pattern::One(hour) => format!(" between {hour:02}:00 and {hour:02}:59"),
        Pattern::Run(first, last) => format!(" between {first:02}:00 and {last:02}:59"),
        Pattern::Even { first: 0, step } => format!(" of every {} hour", ordinal(step)),
        _ => format!(" in the hours {}", members(hours, 0, 23, |hour| format!("{hour:02}"))),
    }
}

fn numbers(set: Bits) -> String {
    members(set, 0, 59, |number| number.to_string())
}
