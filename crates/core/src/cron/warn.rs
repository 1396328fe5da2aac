//! What would surprise the person who wrote an expression.

use super::bits::{Bits, Way};
use super::calendar::{Calendar, Manner, civil};
use super::days::{Join, MonthMark, WeekMark};
use super::every::Every;
use super::expression::{Expression, Plan};
use super::schedule::{Schedule, second_of};
use super::words::days::{month, weekday};
use super::words::numbers::{Pattern, list, pattern, thousands};
use super::zone::Shift;
use crate::Timestamp;

/// How far ahead movements of the clock are looked for: two years.
const AHEAD: i64 = 731 * 86_400;

impl Schedule {
    /// What this schedule does after `after` that its author may not expect, each in a sentence.
    pub fn warnings(&self, after: Timestamp) -> Vec<String> {
        if self.next(after).is_none() {
            return vec![format!("never fires after {after}: {}", self.expression().describe())];
        }
        match self.expression().plan() {
            Plan::Every(every) => often(*every).into_iter().collect(),
            Plan::Calendar(calendar) => {
                let mut warnings = Vec::new();
                warnings.extend(many_seconds(self.expression(), calendar));
                warnings.extend(uneven_steps(calendar));
                warnings.extend(either_day(calendar));
                warnings.extend(missing_days(calendar));
                warnings.extend(self.moved_clocks(calendar, after));
                warnings
            }
        }
    }

    /// The first lost and the first doubled time of the next two years.
    fn moved_clocks(&self, calendar: &Calendar, after: Timestamp) -> Vec<String> {
        // A rhythm that runs through the whole day is expected to run through a moved clock too.
        let all_day = pattern(calendar.times.hours, 0, 23) == Pattern::All;
        if calendar.times.manner == Manner::Interval && all_day {
            return Vec::new();
        }
        let from = second_of(after);
        let (mut lost, mut doubled) = (None, None);
        for shift in self.zone().shifts(from, from + AHEAD) {
            let slot = if shift.before < shift.after { &mut lost } else { &mut doubled };
            if slot.is_none() {
                let (start, _) = shift.span();
                let hit = calendar.seek(start, Way::Forward).filter(|local| shift.holds(*local));
                *slot = hit.map(|local| self.moved_clock(calendar.times.manner, shift, local));
            }
        }
        lost.into_iter().chain(doubled).collect()
    }

    fn moved_clock(&self, manner: Manner, shift: Shift, local: i64) -> String {
        let (from, to) = (civil(shift.at + shift.before), civil(shift.at + shift.after));
        let effect = match (shift.before < shift.after, manner) {
            (true, Manner::Fixed) => format!("does not exist and fires at {} instead", to.strftime("%H:%M")),
            (true, Manner::Interval) => "does not exist and is left out".into(),
            (false, Manner::Fixed) => "comes twice and fires the first time only".into(),
            (false, Manner::Interval) => "comes twice and fires both times".into(),
        };
        format!(
            "the clocks of {} go from {} to {} on {}: {} {effect}",
            self.zone(),
            from.strftime("%H:%M"),
            to.strftime("%H:%M"),
            from.date(),
            civil(local).strftime("%H:%M"),
        )
    }
}

fn often(every: Every) -> Option<String> {
    (every.seconds < 60).then(|| {
        let a_day = 86_400 / every.seconds;
        format!("fires {} times a day: every {}", thousands(a_day as u32), every.in_words())
    })
}

/// More than one second of a minute: seldom meant, and easily written by one who takes the first field for the
/// minute.
fn many_seconds(expression: &Expression, calendar: &Calendar) -> Option<String> {
    let times = &calendar.times;
    if times.seconds.len() == 1 {
        return None;
    }
    let fields: Vec<&str> = expression.as_str().split(' ').collect();
    let (remedy, meaning) = if times.seconds == Bits::span(0, 59) && times.minutes == Bits::span(0, 59) {
        // What was meant is most likely one firing a minute, with the first field taken for the minute.
        let rest = fields.get(3..).unwrap_or_default().join(" ");
        (format!("0 0/1 * {rest}"), "once a minute".to_owned())
    } else {
        let rest = fields.get(1..).unwrap_or_default().join(" ");
        (format!("0 {rest}"), "once in each of those minutes".to_owned())
    };
    Some(format!(
        "fires {} times a day, {} times a minute: {}. The first field is the second; `{remedy}` fires {meaning}",
        thousands(times.a_day()),
        times.seconds.len(),
        expression.describe(),
    ))
}

/// A step that does not divide its field starts anew each time: `*/7` fires at 56 and then at 0.
fn uneven_steps(calendar: &Calendar) -> Vec<String> {
    let times = &calendar.times;
    let fields = [
        (times.seconds, 59, "second", "minute"),
        (times.minutes, 59, "minute", "hour"),
        (times.hours, 23, "hour", "day"),
    ];
    let uneven = fields.into_iter().filter_map(|(set, high, unit, whole)| match pattern(set, 0, high) {
        Pattern::Steps { first, last, step } if first < step && last + step > high && step > 1 => Some(format!(
            "steps of {step} {unit}s do not fill the {whole} evenly: after {unit} {last} comes {unit} {first} of \
             the next {whole}"
        )),
        _ => None,
    });
    uneven.collect()
}

fn either_day(calendar: &Calendar) -> Option<String> {
    let days = &calendar.days;
    (days.join == Join::Either).then(|| {
        "both day fields are restricted, and in a crontab either is enough: it fires on the days of the month and \
         also on the days of the week"
            .to_owned()
    })
}

/// Days that some of the months do not have.
fn missing_days(calendar: &Calendar) -> Vec<String> {
    let mut warnings = Vec::new();
    for day in late_days(calendar) {
        let without: Vec<u8> = calendar.months.iter().filter(|month| longest(*month) < day).collect();
        if !without.is_empty() {
            let names = list(without.into_iter().map(month).collect());
            warnings.push(format!(
                "day {day} does not come in {names}; the last day of a month is `L` in Quartz"
            ));
        } else if day == 29 && calendar.months.contains(2) {
            warnings.push("February has a day 29 in leap years only".to_owned());
        }
    }
    for mark in &calendar.days.of_week.marked {
        if let WeekMark::Nth { weekday: day, nth: 5 } = mark {
            let name = weekday(*day);
            warnings.push(format!("most months have no fifth {name}; the last one is `{}L`", day + 1));
        }
    }
    warnings
}

/// The days from the 29th on that are named on their own, not at the end of a longer run or by a `*`.
fn late_days(calendar: &Calendar) -> Vec<u8> {
    let days = &calendar.days.of_month;
    if days.star {
        return Vec::new();
    }
    let in_longer_run = |day: u8| (28..=day).all(|earlier| days.listed.contains(earlier));
    let listed = (29..=31).filter(|day| days.listed.contains(*day) && !in_longer_run(*day));
    let nearest = days.marked.iter().filter_map(|mark| match mark {
        MonthMark::NearestWeekday { day } if *day >= 29 => Some(*day),
        _ => None,
    });
    listed.chain(nearest).collect()
}

fn longest(month: u8) -> u8 {
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
        Schedule::new(expression, Zone::named(zone).unwrap()).warnings(after)
    }

    #[track_caller]
    fn says(text: &str, zone: &str, parts: &[&str]) {
        let all = warnings(text, zone).join("\n");
        for part in parts {
            assert!(all.contains(part), "{text}: {part:?} is not in {all:?}");
        }
    }

    #[test]
    fn plain_expressions_are_quiet() {
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
    fn an_hour_of_seconds_is_noticed() {
        says(
            "0/1 * 0 ? * * *",
            "UTC",
            &["3,600 times a day", "every second between 00:00", "`0 0/1 * ? * * *`"],
        );
        says("* 30 3 * * ?", "UTC", &["60 times a day", "`0 30 3 * * ?`"]);
        says("every 10s", "UTC", &["8,640 times a day"]);
    }

    #[test]
    fn what_no_longer_fires_is_noticed() {
        says("0 0 0 1 1 ? 2020", "UTC", &["never fires after 2026-01-01"]);
    }

    #[test]
    fn moved_clocks_are_noticed() {
        says(
            "30 2 * * *",
            "Europe/Berlin",
            &[
                "the clocks of Europe/Berlin go from 02:00 to 03:00 on 2026-03-29: 02:30 does not exist and fires at \
             03:00 instead",
                "go from 03:00 to 02:00 on 2026-10-25: 02:30 comes twice and fires the first time only",
            ],
        );
        says("*/20 2 * * *", "Europe/Berlin", &["02:00 does not exist and is left out", "fires both times"]);
        assert_eq!(warnings("30 2 * 7 *", "Europe/Berlin"), Vec::<String>::new());
    }

    #[test]
    fn days_that_do_not_come_are_noticed() {
        says("0 0 31 * *", "UTC", &["day 31 does not come in February, April, June, September and November"]);
        says("0 0 29 2 *", "UTC", &["leap years only"]);
        says("0 0 0 ? * 6#5", "UTC", &["no fifth Friday", "`6L`"]);
        says("0 0 13 * 5", "UTC", &["either is enough"]);
        says("*/7 * * * *", "UTC", &["after minute 56 comes minute 0 of the next hour"]);
    }
}
