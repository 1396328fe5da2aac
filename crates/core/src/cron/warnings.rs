//! Warnings about expressions that may not mean what their author intended.

use super::calendar::{CalendarFields, DstHandling, to_civil_datetime};
use super::days::{DayFieldMatch, SpecialMonthDay, SpecialWeekday};
use super::describe::days::{month_name, weekday_name};
use super::describe::numbers::{ValuePattern, find_pattern, format_thousands, join_with_and};
use super::expression::{Expression, Recurrence};
use super::interval::FixedInterval;
use super::number_set::{Direction, NumberSet};
use super::schedule::{Schedule, to_clamped_unix_second};
use super::zone::OffsetChange;
use crate::Timestamp;

/// How far ahead clock changes are searched for: two years.
const DST_LOOKAHEAD_SECONDS: i64 = 731 * 86_400;

impl Schedule {
    /// Warnings about fires after `after` that the author of the schedule may not expect, one sentence each.
    pub fn warnings(&self, after: Timestamp) -> Vec<String> {
        if self.next(after).is_none() {
            return vec![format!("never fires after {after}: {}", self.expression().describe())];
        }
        match self.expression().recurrence() {
            Recurrence::Interval(interval) => frequent_interval_warning(*interval).into_iter().collect(),
            Recurrence::Calendar(calendar) => {
                let mut warnings = Vec::new();
                warnings.extend(several_seconds_per_minute_warning(self.expression(), calendar));
                warnings.extend(uneven_steps_warnings(calendar));
                warnings.extend(either_day_field_warning(calendar));
                warnings.extend(missing_days_warnings(calendar));
                warnings.extend(self.dst_warnings(calendar, after));
                warnings
            }
        }
    }

    /// Warnings about the first skipped and the first repeated time of the next two years.
    fn dst_warnings(&self, calendar: &CalendarFields, after: Timestamp) -> Vec<String> {
        // An expression that recurs throughout the day is expected to continue through a clock change.
        let all_day = find_pattern(calendar.times.hours, 0, 23) == ValuePattern::All;
        if calendar.times.dst_handling == DstHandling::SkipAndRepeat && all_day {
            return Vec::new();
        }
        let from = to_clamped_unix_second(after);
        let (mut skipped, mut repeated) = (None, None);
        for change in self.zone().offset_changes(from, from + DST_LOOKAHEAD_SECONDS) {
            let warning =
                if change.offset_before < change.offset_after { &mut skipped } else { &mut repeated };
            if warning.is_none() {
                let (start, _) = change.affected_local_range();
                let affected = calendar
                    .find_time_at_or_beyond(start, Direction::Forward)
                    .filter(|local| change.affects_local_time(*local));
                *warning = affected.map(|local| self.dst_warning(calendar.times.dst_handling, change, local));
            }
        }
        skipped.into_iter().chain(repeated).collect()
    }

    fn dst_warning(&self, dst_handling: DstHandling, change: OffsetChange, local: i64) -> String {
        let (from, to) = (
            to_civil_datetime(change.at + change.offset_before),
            to_civil_datetime(change.at + change.offset_after),
        );
        let effect = match (change.offset_before < change.offset_after, dst_handling) {
            (true, DstHandling::FireOnce) => {
                format!("does not exist and fires at {} instead", to.strftime("%H:%M"))
            }
            (true, DstHandling::SkipAndRepeat) => "does not exist and is left out".into(),
            (false, DstHandling::FireOnce) => "occurs twice and fires the first time only".into(),
            (false, DstHandling::SkipAndRepeat) => "occurs twice and fires both times".into(),
        };
        format!(
            "the clocks of {} go from {} to {} on {}: {} {effect}",
            self.zone(),
            from.strftime("%H:%M"),
            to.strftime("%H:%M"),
            from.date(),
            to_civil_datetime(local).strftime("%H:%M"),
        )
    }
}

/// Warns about an interval of less than a minute.
fn frequent_interval_warning(interval: FixedInterval) -> Option<String> {
    (interval.seconds < 60).then(|| {
        let per_day = 86_400 / interval.seconds;
        format!("fires {} times a day: every {}", format_thousands(per_day as u32), interval.describe())
    })
}

/// Warns about several seconds in a minute: rarely intended, and easily written by mistaking the first field for the
/// minute.
fn several_seconds_per_minute_warning(expression: &Expression, calendar: &CalendarFields) -> Option<String> {
    let times = &calendar.times;
    if times.seconds.len() == 1 {
        return None;
    }
    let fields: Vec<&str> = expression.as_str().split(' ').collect();
    let (remedy, meaning) =
        if times.seconds == NumberSet::from_range(0, 59) && times.minutes == NumberSet::from_range(0, 59) {
            // Most likely one fire a minute was intended, with the first field mistaken for the minute.
            let rest = fields.get(3..).unwrap_or_default().join(" ");
            (format!("0 0/1 * {rest}"), "once a minute".to_owned())
        } else {
            let rest = fields.get(1..).unwrap_or_default().join(" ");
            (format!("0 {rest}"), "once in each of those minutes".to_owned())
        };
    Some(format!(
        "fires {} times a day, {} times a minute: {}. The first field is the second; `{remedy}` fires {meaning}",
        format_thousands(times.count_per_day()),
        times.seconds.len(),
        expression.describe(),
    ))
}

/// Warns about a step that does not divide its field, so that the last gap is shorter: `*/7` fires at 56 and then at 0.
fn uneven_steps_warnings(calendar: &CalendarFields) -> Vec<String> {
    let times = &calendar.times;
    let fields = [
        (times.seconds, 59, "second", "minute"),
        (times.minutes, 59, "minute", "hour"),
        (times.hours, 23, "hour", "day"),
    ];
    let uneven = fields.into_iter().filter_map(|(set, high, unit, whole)| match find_pattern(set, 0, high) {
        ValuePattern::Steps { first, last, step } if first < step && last + step > high && step > 1 => Some(format!(
            "steps of {step} {unit}s do not fill the {whole} evenly: after {unit} {last} comes {unit} {first} of \
             the next {whole}"
        )),
        _ => None,
    });
    uneven.collect()
}

/// Warns if a day has to match only one of the two day fields.
fn either_day_field_warning(calendar: &CalendarFields) -> Option<String> {
    let days = &calendar.days;
    (days.day_match == DayFieldMatch::Either).then(|| {
        "both day fields are restricted, and in a crontab either is enough: it fires on the days of the month and \
         also on the days of the week"
            .to_owned()
    })
}

/// Warns about days that some of the months do not have.
fn missing_days_warnings(calendar: &CalendarFields) -> Vec<String> {
    let mut warnings = Vec::new();
    for day in listed_days_from_29(calendar) {
        let months_without_day: Vec<u8> =
            calendar.months.iter().filter(|month| max_days_in_month(*month) < day).collect();
        if !months_without_day.is_empty() {
            let names = join_with_and(months_without_day.into_iter().map(month_name).collect());
            warnings.push(format!(
                "day {day} does not occur in {names}; the last day of a month is `L` in Quartz"
            ));
        } else if day == 29 && calendar.months.contains(2) {
            warnings.push("February has a day 29 in leap years only".to_owned());
        }
    }
    for special_day in &calendar.days.day_of_week.special_days {
        if let SpecialWeekday::Nth { weekday, nth: 5 } = special_day {
            let name = weekday_name(*weekday);
            warnings.push(format!("most months have no fifth {name}; the last one is `{}L`", weekday + 1));
        }
    }
    warnings
}

/// The days of the month from 29 on that the field lists singly, not as the end of a longer range or by a `*`.
fn listed_days_from_29(calendar: &CalendarFields) -> Vec<u8> {
    let days = &calendar.days.day_of_month;
    if days.is_star {
        return Vec::new();
    }
    let in_longer_run = |day: u8| (28..=day).all(|earlier| days.listed_days.contains(earlier));
    let listed_days = (29..=31).filter(|day| days.listed_days.contains(*day) && !in_longer_run(*day));
    let nearest_working_days = days.special_days.iter().filter_map(|special_day| match special_day {
        SpecialMonthDay::NearestWorkingDay { day } if *day >= 29 => Some(*day),
        _ => None,
    });
    listed_days.chain(nearest_working_days).collect()
}

/// The number of days of a month, in a leap year.
fn max_days_in_month(month: u8) -> u8 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use crate::Timestamp;
    use crate::cron::{Dialect, Expression, Schedule, Zone};

    fn warnings(text: &str, zone: &str) -> Vec<String> {
        let expression = Expression::parse(text, Dialect::Auto).unwrap();
        let after: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Schedule::new(expression, Zone::from_name(zone).unwrap()).warnings(after)
    }

    #[track_caller]
    fn assert_warnings_contain(text: &str, zone: &str, parts: &[&str]) {
        let all = warnings(text, zone).join("\n");
        for part in parts {
            assert!(all.contains(part), "{text}: {part:?} is not in {all:?}");
        }
    }

    #[test]
    fn plain_expressions_have_no_warnings() {
        for text in [
            "0 3 * * *",
            "*/5 * * * *",
            "0 0/1 * ? * * *",
            "@daily",
            "every 90s",
            "Fortnightly",
            "0 9-17 * * 1-5",
            "0 0 1-31 * *",
            "0 0 0 L * ?",
            "0 0 */2 * *",
            "0 */2 * * *",
        ] {
            assert_eq!(warnings(text, "UTC"), Vec::<String>::new(), "{text}");
        }
        assert_eq!(warnings("*/5 * * * *", "Europe/Berlin"), Vec::<String>::new());
        assert_eq!(warnings("0 5 * * *", "Europe/Berlin"), Vec::<String>::new());
    }

    #[test]
    fn firing_more_than_once_a_minute_is_warned_about() {
        assert_warnings_contain(
            "0/1 * 0 ? * * *",
            "UTC",
            &["3,600 times a day", "every second between 00:00", "`0 0/1 * ? * * *`"],
        );
        assert_warnings_contain("* 30 3 * * ?", "UTC", &["60 times a day", "`0 30 3 * * ?`"]);
        assert_warnings_contain("every 10s", "UTC", &["8,640 times a day"]);
    }

    #[test]
    fn expressions_that_never_fire_again_are_warned_about() {
        assert_warnings_contain("0 0 0 1 1 ? 2020", "UTC", &["never fires after 2026-01-01"]);
    }

    #[test]
    fn skipped_and_repeated_times_are_warned_about() {
        assert_warnings_contain(
            "30 2 * * *",
            "Europe/Berlin",
            &[
                "the clocks of Europe/Berlin go from 02:00 to 03:00 on 2026-03-29: 02:30 does not exist and fires at \
             03:00 instead",
                "go from 03:00 to 02:00 on 2026-10-25: 02:30 occurs twice and fires the first time only",
            ],
        );
        assert_warnings_contain(
            "*/20 2 * * *",
            "Europe/Berlin",
            &["02:00 does not exist and is left out", "fires both times"],
        );
        assert_eq!(warnings("30 2 * 7 *", "Europe/Berlin"), Vec::<String>::new());
    }

    #[test]
    fn missing_days_either_day_field_and_uneven_steps_are_warned_about() {
        assert_warnings_contain(
            "0 0 31 * *",
            "UTC",
            &["day 31 does not occur in February, April, June, September and November"],
        );
        assert_warnings_contain("0 0 29 2 *", "UTC", &["leap years only"]);
        assert_warnings_contain("0 0 0 ? * 6#5", "UTC", &["no fifth Friday", "`6L`"]);
        assert_warnings_contain("0 0 13 * 5", "UTC", &["either is enough"]);
        assert_warnings_contain("*/7 * * * *", "UTC", &["after minute 56 comes minute 0 of the next hour"]);
    }
}
