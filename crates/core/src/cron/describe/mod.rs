//! Describes an expression in English, so that a person sees what it means before production does.

pub(super) mod days;
pub(super) mod numbers;
mod times;

use super::calendar::CalendarFields;
use super::expression::{Expression, Recurrence};
use super::interval::FixedInterval;
use numbers::format_count_with_unit;

impl Expression {
    /// Describes the expression in plain English: `at 03:00 every day`, `at 10:15 on the last Friday of every month`.
    pub fn describe(&self) -> String {
        match self.recurrence() {
            Recurrence::Interval(interval) => {
                format!("every {}, counted from 1970 in UTC", interval.describe())
            }
            Recurrence::Calendar(calendar) => describe_calendar(calendar, self.has_seconds_field()),
        }
    }

    /// Whether the text has a field for the second.
    pub(super) fn has_seconds_field(&self) -> bool {
        matches!(self.recurrence(), Recurrence::Calendar(_)) && self.as_str().split(' ').count() > 5
    }
}

fn describe_calendar(calendar: &CalendarFields, with_seconds: bool) -> String {
    let times = times::describe_times(&calendar.times, with_seconds);
    let days = days::describe_days(calendar);
    let separator = if times.lists_clock_times { " " } else { ", " };
    match (days.is_empty(), times.recurs_all_day) {
        (true, true) => times.text,
        (true, false) => format!("{}{separator}every day", times.text),
        (false, _) => format!("{}{separator}{days}", times.text),
    }
}

impl FixedInterval {
    /// Describes the interval as it follows `every`: `minute`, `90 seconds`, `1 hour 30 minutes`.
    pub(super) fn describe(self) -> String {
        const UNITS: [(i64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
        if let Some((_, unit)) = UNITS.iter().find(|(seconds, _)| *seconds == self.seconds) {
            return (*unit).to_owned();
        }
        if self.seconds < 120 {
            return format_count_with_unit(self.seconds, "second");
        }
        let mut rest = self.seconds;
        let mut parts = Vec::new();
        for (seconds, unit) in UNITS {
            if rest >= seconds {
                parts.push(format_count_with_unit(rest / seconds, unit));
                rest %= seconds;
            }
        }
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use crate::cron::{Dialect, Expression};

    #[test]
    fn expressions_are_described_in_english() {
        for (text, description) in [
            ("0 3 * * *", "at 03:00 every day"),
            ("0 3,15 * * *", "at 03:00 and 15:00 every day"),
            ("*/5 * * * *", "every 5 minutes"),
            ("0 0/5 * * * ?", "every 5 minutes, at second 0"),
            ("0 0/1 * ? * * *", "every minute, at second 0"),
            ("0/1 * 0 ? * * *", "every second between 00:00 and 00:59, every day"),
            ("0 15 10 ? * 6L", "at 10:15 on the last Friday of every month"),
            ("0 15 10 ? * 6#3", "at 10:15 on the third Friday of every month"),
            ("0 15 10 L * ?", "at 10:15 on the last day of every month"),
            ("0 15 10 L-3 * ?", "at 10:15 on the third day before the last day of every month"),
            (
                "30 15 10 15W 1,6 ?",
                "at 10:15:30 on the working day (Monday to Friday) nearest to day 15 of January and June",
            ),
            ("0 9 * * 1-5", "at 09:00 from Monday to Friday"),
            ("0 9 * * FRI-MON", "at 09:00 from Friday to Monday"),
            ("0 9 * * 1,5", "at 09:00 every Monday and Friday"),
            ("0 9 * 3 1", "at 09:00 every Monday in March"),
            ("0 0 13 * 5", "at 00:00 on day 13 of every month or every Friday"),
            ("0 0 */2 * 1", "at 00:00 every Monday, but only on days 1 to 31 in steps of 2 of every month"),
            ("*/10 9-17 * * 1-5", "every 10 minutes between 09:00 and 17:59, from Monday to Friday"),
            ("0 22-2 * * *", "at 00:00, 01:00, 02:00, 22:00 and 23:00 every day"),
            ("0 * * * *", "every hour at minute 0"),
            ("0 */2 * * *", "every 2 hours at minute 0"),
            ("5,7 * * * *", "at minutes 5 and 7 of every hour"),
            ("*/7 * * * *", "at minutes 0 to 56 in steps of 7 of every hour"),
            ("0 9-17 * * *", "every hour between 09:00 and 17:59 at minute 0, every day"),
            ("* * * * * ?", "every second"),
            ("*/10 * * * * ?", "every 10 seconds"),
            ("* 30 * * * ?", "every second of minute 30"),
            ("0 0 0 1 1 ? 2030", "at 00:00 on day 1 of January in 2030"),
            ("0 0 0 ? * * 2030-2033", "at 00:00 every day from 2030 to 2033"),
            ("@yearly", "at 00:00 on day 1 of January"),
            ("@weekly", "at 00:00 every Sunday"),
            ("Fortnightly", "at 00:00 every second Sunday"),
            ("every 90s", "every 90 seconds, counted from 1970 in UTC"),
            ("every 1h30m", "every 1 hour 30 minutes, counted from 1970 in UTC"),
            ("Every 12hrs", "every 12 hours, counted from 1970 in UTC"),
            ("Every minute", "every minute, counted from 1970 in UTC"),
        ] {
            let expression = Expression::parse(text, Dialect::Auto).unwrap();
            assert_eq!(expression.describe(), description, "{text}");
        }
    }
}
