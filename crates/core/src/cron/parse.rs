//! Parses an expression: decides which of the three forms it has, and parses its fields in order.

use super::calendar::{CalendarFields, DstHandling, TimesOfDay};
use super::days::{DayFields, SpecialWeekday, WeekdayField};
use super::expression::Recurrence;
use super::field::{self, CronField, Years, quote_shortened};
use super::interval::FixedInterval;
use super::number_set::{Direction, NumberSet};
use super::text_span::TextSpan;
use super::{BadExpression, Dialect, quartz, vixie};

/// The length of the longest accepted expression, in characters.
const MAX_EXPRESSION_CHARS: usize = 256;

/// Parses an expression; also returns the dialect in which its fields were parsed, or [`Dialect::Auto`] if it has none.
pub(super) fn parse_expression(text: &str, dialect: Dialect) -> Result<(Recurrence, Dialect), BadExpression> {
    if text.chars().count() > MAX_EXPRESSION_CHARS {
        return Err(BadExpression::new(
            MAX_EXPRESSION_CHARS + 1,
            format!("an expression has at most {MAX_EXPRESSION_CHARS} characters"),
        ));
    }
    let words: Vec<TextSpan<'_>> = TextSpan::from_text(text).split_words().collect();
    let Some(first) = words.first() else {
        return Err(empty_error());
    };
    if first.text.starts_with('@') || first.text.starts_with(|c: char| c.is_alphabetic()) {
        return Ok((parse_preset_or_interval(text, &words)?, Dialect::Auto));
    }
    let dialect = match dialect {
        Dialect::Auto if words.len() == 5 => Dialect::Vixie,
        Dialect::Auto => Dialect::Quartz,
        chosen => chosen,
    };
    Ok((Recurrence::Calendar(parse_fields(&words, dialect)?), dialect))
}

fn parse_fields(words: &[TextSpan<'_>], dialect: Dialect) -> Result<CalendarFields, BadExpression> {
    let (second, [minute, hour, month_field, month, week_field], year) = match *words {
        [a, b, c, d, e] => (None, [a, b, c, d, e], None),
        [second, a, b, c, d, e] => (Some(second), [a, b, c, d, e], None),
        [second, a, b, c, d, e, year] => (Some(second), [a, b, c, d, e], Some(year)),
        [.., last] => return Err(field_count_error(words.len(), last)),
        [] => return Err(empty_error()),
    };
    let times = parse_times(second, minute, hour, dialect)?;
    let months = field::parse_values(CronField::Month, month, dialect)?.set;
    let days = match dialect {
        Dialect::Quartz => quartz::parse_days(month_field, week_field)?,
        Dialect::Vixie | Dialect::Auto => vixie::parse_days(month_field, week_field)?,
    };
    let years = year.map_or(Ok(Years::All), |year| Years::parse(year, dialect))?;
    let calendar = CalendarFields { times, days, months, years };
    if calendar.find_time_at_or_beyond(0, Direction::Forward).is_none() {
        return Err(never_fires_error(calendar, month_field, year));
    }
    Ok(calendar)
}

fn parse_times(
    second: Option<TextSpan<'_>>,
    minute: TextSpan<'_>,
    hour: TextSpan<'_>,
    dialect: Dialect,
) -> Result<TimesOfDay, BadExpression> {
    let second_zero =
        field::FieldValues { set: NumberSet::from_members([0]), each_value_listed_singly: true };
    let seconds =
        second.map_or(Ok(second_zero), |part| field::parse_values(CronField::Second, part, dialect))?;
    let minutes = field::parse_values(CronField::Minute, minute, dialect)?;
    let hours = field::parse_values(CronField::Hour, hour, dialect)?;
    let is_fixed = seconds.each_value_listed_singly
        && minutes.each_value_listed_singly
        && hours.each_value_listed_singly;
    let dst_handling = if is_fixed { DstHandling::FireOnce } else { DstHandling::SkipAndRepeat };
    Ok(TimesOfDay { seconds: seconds.set, minutes: minutes.set, hours: hours.set, dst_handling })
}

fn empty_error() -> BadExpression {
    BadExpression::new(1, "the expression is empty; write one like `0 3 * * *` or `every 90s`")
}

fn field_count_error(count: usize, last: TextSpan<'_>) -> BadExpression {
    BadExpression::new(
        last.column,
        format!(
            "an expression has five fields (minute, hour, day of month, month, day of week), six with the second \
             first, or seven with the year last; this one has {count}"
        ),
    )
}

/// Builds the error for an expression that never fires: none of its months has such a day, or none of its years does.
fn never_fires_error(
    calendar: CalendarFields,
    month_field: TextSpan<'_>,
    year: Option<TextSpan<'_>>,
) -> BadExpression {
    let in_any_year = CalendarFields { years: Years::All, ..calendar };
    match year {
        Some(year) if in_any_year.find_time_at_or_beyond(0, Direction::Forward).is_some() => {
            CronField::Year.error(year.column, format!("never fires: no such day occurs in {}", quote_shortened(year)))
        }
        _ => CronField::DayOfMonth.error(
            month_field.column,
            "never fires: none of the chosen months has such a day (April, June, September and November have 30, \
             February has 28 or 29)",
        ),
    }
}

/// The names that replace an expression, and the five fields of that expression in Vixie's dialect.
const PRESETS: [(&[&str], &str); 5] = [
    (&["@yearly", "@annually", "yearly", "annually", "every year"], "0 0 1 1 *"),
    (&["@monthly", "monthly", "every month"], "0 0 1 * *"),
    (&["@weekly", "weekly", "every week"], "0 0 * * 0"),
    (&["@daily", "@midnight", "daily", "midnight", "every day"], "0 0 * * *"),
    (&["@hourly", "hourly", "every hour"], "0 * * * *"),
];

/// Parses a preset (`@daily`) or an interval (`every 90s`).
fn parse_preset_or_interval(text: &str, words: &[TextSpan<'_>]) -> Result<Recurrence, BadExpression> {
    let normalized = words.iter().map(|word| word.text.to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
    for (names, fields) in PRESETS {
        if names.contains(&normalized.as_str()) {
            return parse_preset_fields(fields).map(Recurrence::Calendar);
        }
    }
    match (normalized.as_str(), words) {
        ("@fortnightly" | "fortnightly" | "every fortnight", _) => {
            fortnightly_calendar().map(Recurrence::Calendar)
        }
        ("every minute", _) => Ok(Recurrence::Interval(FixedInterval::MINUTE)),
        ("every second", _) => Ok(Recurrence::Interval(FixedInterval::SECOND)),
        (_, [every, rest, ..]) if every.eq_ignore_case("every") || every.eq_ignore_case("@every") => {
            let from = text.char_indices().nth(rest.column - 1).map_or(text.len(), |(at, _)| at);
            FixedInterval::parse(TextSpan { text: &text[from..], column: rest.column })
                .map(Recurrence::Interval)
        }
        (_, [first, ..]) => Err(unknown_name_error(*first)),
        (_, []) => Err(empty_error()),
    }
}

fn unknown_name_error(first: TextSpan<'_>) -> BadExpression {
    if first.eq_ignore_case("@reboot") {
        return BadExpression::new(first.column, "`@reboot` names no time; write `@daily` or `every 90s`");
    }
    BadExpression::new(
        first.column,
        format!(
            "{} is not known; write `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`, `fortnightly` or an \
             interval like `every 90s`",
            quote_shortened(first)
        ),
    )
}

fn parse_preset_fields(fields_in_vixie: &str) -> Result<CalendarFields, BadExpression> {
    let words: Vec<TextSpan<'_>> = TextSpan::from_text(fields_in_vixie).split_words().collect();
    parse_fields(&words, Dialect::Vixie)
}

/// The calendar of `fortnightly`: midnight of every second Sunday.
fn fortnightly_calendar() -> Result<CalendarFields, BadExpression> {
    let calendar = parse_preset_fields("0 0 * * *")?;
    let week_field = WeekdayField {
        listed_days: NumberSet::default(),
        special_days: [SpecialWeekday::EverySecondWeek { weekday: 0 }].into(),
        is_star: false,
    };
    Ok(CalendarFields { days: DayFields { day_of_week: week_field, ..calendar.days }, ..calendar })
}

#[cfg(test)]
mod tests {
    use crate::cron::{BadExpression, Dialect, Expression};

    fn parse_error_text(text: &str) -> String {
        Expression::parse(text, Dialect::Auto).unwrap_err().to_string()
    }

    #[test]
    fn expression_errors_name_the_field_and_the_column() {
        assert_eq!(parse_error_text("0 75 * * * ?"), "column 3 (minute): minutes are 0 to 59, got `75`");
        assert_eq!(parse_error_text("  75 * * * *"), "column 3 (minute): minutes are 0 to 59, got `75`");
        assert_eq!(parse_error_text("0 24 * * *"), "column 3 (hour): hours are 0 to 23, got `24`");
        assert!(
            parse_error_text("0 0 1 FOO *").starts_with("column 7 (month): months are 1 to 12 or JAN to DEC")
        );
        assert!(
            parse_error_text("0 0 0 ? * 0")
                .starts_with("column 11 (day of week): days of the week are 1 to 7 in Quartz")
        );
        assert!(parse_error_text("0 0 0 ? * * 2200").starts_with("column 13 (year): years are 1970 to 2199"));
        assert!(parse_error_text("0 0 0 ? * * 2030-2020").contains("runs backwards"));
    }

    #[test]
    fn expressions_with_fewer_than_five_or_more_than_seven_fields_are_rejected() {
        assert!(parse_error_text("").contains("empty"));
        assert!(parse_error_text(" \t ").contains("empty"));
        assert!(parse_error_text("* * * *").ends_with("this one has 4"));
        assert!(parse_error_text("0 0 0 ? * * * *").ends_with("this one has 8"));
        assert!(parse_error_text(&"* ".repeat(200)).contains("at most 256 characters"));
    }

    #[test]
    fn expressions_that_never_fire_are_rejected() {
        for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 29 2 ? 2027", "0 0 0 31 4 ?", "0 0 0 30W 2 ?"]
        {
            assert!(parse_error_text(text).contains("never fires"), "{text}");
        }
        for text in ["0 0 29 2 *", "0 0 31 * *", "0 0 30 2 1", "0 0 0 29 2 ? 2028", "0 0 0 ? 2 2#5"] {
            assert!(Expression::parse(text, Dialect::Auto).is_ok(), "{text}");
        }
    }

    #[test]
    fn names_and_intervals_are_parsed_in_any_case() {
        for text in [
            "@yearly",
            "@annually",
            "@monthly",
            "@weekly",
            "@daily",
            "@midnight",
            "@hourly",
            "@DAILY",
            "Daily",
            "Weekly",
            "Fortnightly",
            "Every 1hr",
            "Every 12hrs",
            "Every minute",
            "every hour",
            "EVERY DAY",
            "every 90s",
            "every 1h30m",
            "every  5  minutes",
            "@every 10m",
            "Hourly",
        ] {
            assert!(Expression::parse(text, Dialect::Auto).is_ok(), "{text}");
            assert!(Expression::parse(text, Dialect::Quartz).is_ok(), "{text}");
        }
        assert!(parse_error_text("@reboot").contains("no time"));
        assert!(parse_error_text("sometimes").contains("`sometimes` is not known"));
        assert!(parse_error_text("every").contains("not known"));
        assert!(parse_error_text("  every 90").starts_with("column 9: the interval needs a unit"));
    }

    #[test]
    fn a_chosen_dialect_overrides_the_number_of_fields() {
        let days = |text, dialect| Expression::parse(text, dialect).unwrap().describe();
        assert!(days("0 0 * * 1", Dialect::Auto).contains("Monday"));
        assert!(days("0 0 * * 1", Dialect::Quartz).contains("Sunday"));
        assert!(days("0 0 0 * * 1", Dialect::Auto).contains("Sunday"));
        assert!(days("0 0 0 * * 1", Dialect::Vixie).contains("Monday"));
    }

    #[test]
    fn the_text_of_an_expression_is_kept_with_normalised_spaces() -> Result<(), BadExpression> {
        let parsed = Expression::parse(" 0\t3  * * *", Dialect::Auto)?;
        assert_eq!(parsed.to_string(), "0 3 * * *");
        assert_eq!(parsed, Expression::parse(&parsed.to_string(), parsed.dialect())?);
        Ok(())
    }
}
