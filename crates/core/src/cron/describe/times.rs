//! Describes the times of a day in English.

use super::numbers::{
    ValuePattern, describe_members, find_pattern, format_count_with_unit, format_ordinal, join_with_and,
};
use crate::cron::calendar::TimesOfDay;
use crate::cron::number_set::NumberSet;

/// The maximum number of times of day that a description lists one by one.
const MAX_LISTED_TIMES: u32 = 6;

/// The description of the times of a day.
pub(super) struct TimesDescription {
    pub(super) text: String,
    /// Whether the times recur throughout the day, so that the words `every day` are superfluous.
    pub(super) recurs_all_day: bool,
    /// Whether the text lists clock times; the days then follow without a comma.
    pub(super) lists_clock_times: bool,
}

pub(super) fn describe_times(times: &TimesOfDay, with_seconds: bool) -> TimesDescription {
    if times.count_per_day() <= MAX_LISTED_TIMES {
        return TimesDescription {
            text: format!("at {}", join_clock_times(times)),
            recurs_all_day: false,
            lists_clock_times: true,
        };
    }
    let covers_whole_day =
        matches!(find_pattern(times.hours, 0, 23), ValuePattern::All | ValuePattern::EvenSteps { .. });
    let text = match find_pattern(times.seconds, 0, 59) {
        ValuePattern::SingleValue(second) if with_seconds => {
            format!("{}, at second {second}", describe_minutes_and_hours(times))
        }
        ValuePattern::SingleValue(_) => describe_minutes_and_hours(times),
        seconds => describe_seconds_minutes_and_hours(times, seconds),
    };
    TimesDescription { text, recurs_all_day: covers_whole_day, lists_clock_times: false }
}

/// Formats every time of the day: `03:00 and 15:00`.
fn join_clock_times(times: &TimesOfDay) -> String {
    let seconds_matter = times.seconds != NumberSet::from_members([0]);
    let mut parts = Vec::new();
    for hour in times.hours.iter() {
        for minute in times.minutes.iter() {
            for second in times.seconds.iter() {
                parts.push(if seconds_matter {
                    format!("{hour:02}:{minute:02}:{second:02}")
                } else {
                    format!("{hour:02}:{minute:02}")
                });
            }
        }
    }
    join_with_and(parts)
}

/// Describes the seconds, minutes and hours of an expression that fires at several seconds of a minute.
fn describe_seconds_minutes_and_hours(times: &TimesOfDay, seconds: ValuePattern) -> String {
    let seconds_text = match seconds {
        ValuePattern::All => "every second".to_owned(),
        ValuePattern::EvenSteps { first: 0, step } => format!("every {step} seconds"),
        ValuePattern::EvenSteps { first, step } => format!("every {step} seconds from second {first}"),
        _ => format!("at seconds {}", describe_seconds_or_minutes(times.seconds)),
    };
    let minutes_text = match find_pattern(times.minutes, 0, 59) {
        ValuePattern::All if matches!(seconds, ValuePattern::All | ValuePattern::EvenSteps { .. }) => {
            String::new()
        }
        ValuePattern::All => " of every minute".into(),
        ValuePattern::SingleValue(minute) => format!(" of minute {minute}"),
        ValuePattern::EvenSteps { first: 0, step } => format!(" of every {} minute", format_ordinal(step)),
        _ => format!(" of minutes {}", describe_seconds_or_minutes(times.minutes)),
    };
    format!("{seconds_text}{minutes_text}{}", hours_suffix(times.hours))
}

/// Describes the minutes and hours of an expression that fires at only one second of a minute.
fn describe_minutes_and_hours(times: &TimesOfDay) -> String {
    let hours = hours_suffix(times.hours);
    match find_pattern(times.minutes, 0, 59) {
        ValuePattern::All => format!("every minute{hours}"),
        ValuePattern::EvenSteps { first: 0, step } => format!("every {step} minutes{hours}"),
        ValuePattern::EvenSteps { first, step } => format!("every {step} minutes from minute {first}{hours}"),
        ValuePattern::SingleValue(minute) => format!("{} at minute {minute}", describe_hours(times.hours)),
        _ => format!(
            "at minutes {}{}",
            describe_seconds_or_minutes(times.minutes),
            hours_or_every_hour_suffix(times.hours)
        ),
    }
}

/// Describes the hours of an expression that fires once in each of its hours: `every 2 hours`.
fn describe_hours(hours: NumberSet) -> String {
    match find_pattern(hours, 0, 23) {
        ValuePattern::EvenSteps { first: 0, step } => {
            format!("every {}", format_count_with_unit(i64::from(step), "hour"))
        }
        ValuePattern::EvenSteps { first, step } => format!("every {step} hours from {first:02}:00"),
        _ => format!("every hour{}", hours_suffix(hours)),
    }
}

/// Describes the hours as [`hours_suffix`] does, but all hours as `of every hour`.
fn hours_or_every_hour_suffix(hours: NumberSet) -> String {
    match find_pattern(hours, 0, 23) {
        ValuePattern::All => " of every hour".into(),
        _ => hours_suffix(hours),
    }
}

/// Describes the hours as the end of a description; empty for all hours.
fn hours_suffix(hours: NumberSet) -> String {
    match find_pattern(hours, 0, 23) {
        ValuePattern::All => String::new(),
        ValuePattern::SingleValue(hour) => format!(" between {hour:02}:00 and {hour:02}:59"),
        ValuePattern::Range(first, last) => format!(" between {first:02}:00 and {last:02}:59"),
        ValuePattern::EvenSteps { first: 0, step } => format!(" of every {} hour", format_ordinal(step)),
        _ => format!(" in the hours {}", describe_members(hours, 0, 23, |hour| format!("{hour:02}"))),
    }
}

fn describe_seconds_or_minutes(set: NumberSet) -> String {
    describe_members(set, 0, 59, |number| number.to_string())
}
