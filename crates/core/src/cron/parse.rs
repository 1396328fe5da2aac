//! From a text to a plan: which of the three forms it has, and its fields in order.

use super::bits::{Bits, Way};
use super::calendar::{Calendar, Manner, Times};
use super::days::{Days, WeekDays, WeekMark};
use super::every::Every;
use super::expression::Plan;
use super::field::{self, Field, Years, shown};
use super::text::Part;
use super::{BadExpression, Dialect, quartz, vixie};

/// The longest text, in characters.
const MAX_TEXT: usize = 256;

pub(super) fn plan(text: &str, dialect: Dialect) -> Result<(Plan, Dialect), BadExpression> {
    if text.chars().count() > MAX_TEXT {
        return Err(BadExpression::new(
            MAX_TEXT + 1,
            format!("an expression has at most {MAX_TEXT} characters"),
        ));
    }
    let words: Vec<Part<'_>> = Part::whole(text).words().collect();
    let Some(first) = words.first() else {
        return Err(empty());
    };
    if first.text.starts_with('@') || first.text.starts_with(|c: char| c.is_alphabetic()) {
        return Ok((in_words(text, &words)?, Dialect::Auto));
    }
    let dialect = match dialect {
        Dialect::Auto if words.len() == 5 => Dialect::Vixie,
        Dialect::Auto => Dialect::Quartz,
        chosen => chosen,
    };
    Ok((Plan::Calendar(fields(&words, dialect)?), dialect))
}

fn fields(words: &[Part<'_>], dialect: Dialect) -> Result<Calendar, BadExpression> {
    let (second, [minute, hour, of_month, month, of_week], year) = match *words {
        [a, b, c, d, e] => (None, [a, b, c, d, e], None),
        [second, a, b, c, d, e] => (Some(second), [a, b, c, d, e], None),
        [second, a, b, c, d, e, year] => (Some(second), [a, b, c, d, e], Some(year)),
        [.., last] => return Err(wrong_count(words.len(), last)),
        [] => return Err(empty()),
    };
    let times = times(second, minute, hour, dialect)?;
    let months = field::values(Field::Month, month, dialect)?.set;
    let days = match dialect {
        Dialect::Quartz => quartz::days(of_month, of_week)?,
        Dialect::Vixie | Dialect::Auto => vixie::days(of_month, of_week)?,
    };
    let years = year.map_or(Ok(Years::Every), |year| Years::parse(year, dialect))?;
    let calendar = Calendar { times, days, months, years };
    if calendar.seek(0, Way::Forward).is_none() {
        return Err(never(calendar, of_month, year));
    }
    Ok(calendar)
}

fn times(
    second: Option<Part<'_>>,
    minute: Part<'_>,
    hour: Part<'_>,
    dialect: Dialect,
) -> Result<Times, BadExpression> {
    let zero = field::Values { set: Bits::of([0]), named_singly: true };
    let seconds = second.map_or(Ok(zero), |part| field::values(Field::Second, part, dialect))?;
    let minutes = field::values(Field::Minute, minute, dialect)?;
    let hours = field::values(Field::Hour, hour, dialect)?;
    let fixed = seconds.named_singly && minutes.named_singly && hours.named_singly;
    let manner = if fixed { Manner::Fixed } else { Manner::Interval };
    Ok(Times { seconds: seconds.set, minutes: minutes.set, hours: hours.set, manner })
}

fn empty() -> BadExpression {
    BadExpression::new(1, "the expression is empty; write one like `0 3 * * *` or `every 90s`")
}

fn wrong_count(count: usize, last: Part<'_>) -> BadExpression {
    BadExpression::new(
        last.column,
        format!(
            "an expression has five fields (minute, hour, day of month, month, day of week), six with the second \
             first, or seven with the year last; this one has {count}"
        ),
    )
}

/// Why a calendar without a single day is one: the days of its months, or those of its years.
fn never(calendar: Calendar, of_month: Part<'_>, year: Option<Part<'_>>) -> BadExpression {
    let some_year = Calendar { years: Years::Every, ..calendar };
    match year {
        Some(year) if some_year.seek(0, Way::Forward).is_some() => {
            Field::Year.bad(year.column, format!("never fires: no such day comes in {}", shown(year)))
        }
        _ => Field::DayOfMonth.bad(
            of_month.column,
            "never fires: none of the chosen months has such a day (April, June, September and November have 30, \
             February has 28 or 29)",
        ),
    }
}

/// Names for expressions, and the fields they stand for.
const PRESETS: [(&[&str], &str); 5] = [
    (&["@yearly", "@annually", "yearly", "annually", "every year"], "0 0 1 1 *"),
    (&["@monthly", "monthly", "every month"], "0 0 1 * *"),
    (&["@weekly", "weekly", "every week"], "0 0 * * 0"),
    (&["@daily", "@midnight", "daily", "midnight", "every day"], "0 0 * * *"),
    (&["@hourly", "hourly", "every hour"], "0 * * * *"),
];

fn in_words(text: &str, words: &[Part<'_>]) -> Result<Plan, BadExpression> {
    let plain = words.iter().map(|word| word.text.to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
    for (names, fields) in PRESETS {
        if names.contains(&plain.as_str()) {
            return preset(fields).map(Plan::Calendar);
        }
    }
    match (plain.as_str(), words) {
        ("@fortnightly" | "fortnightly" | "every fortnight", _) => fortnightly().map(Plan::Calendar),
        ("every minute", _) => Ok(Plan::Every(Every::MINUTE)),
        ("every second", _) => Ok(Plan::Every(Every::SECOND)),
        (_, [every, rest, ..]) if every.is("every") || every.is("@every") => {
            let from = text.char_indices().nth(rest.column - 1).map_or(text.len(), |(at, _)| at);
            Every::parse(Part { text: &text[from..], column: rest.column }).map(Plan::Every)
        }
        (_, [first, ..]) => Err(unknown_words(*first)),
        (_, []) => Err(empty()),
    }
}

fn unknown_words(first: Part<'_>) -> BadExpression {
    if first.is("@reboot") {
        return BadExpression::new(first.column, "`@reboot` is no time; a schedule needs one");
    }
    BadExpression::new(
        first.column,
        format!(
            "{} is not known; write `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`, `fortnightly` or an \
             interval like `every 90s`",
            shown(first)
        ),
    )
}

fn preset(fields_in_vixie: &str) -> Result<Calendar, BadExpression> {
    let words: Vec<Part<'_>> = Part::whole(fields_in_vixie).words().collect();
    fields(&words, Dialect::Vixie)
}

/// Midnight of every second Sunday.
fn fortnightly() -> Result<Calendar, BadExpression> {
    let calendar = preset("0 0 * * *")?;
    let of_week = WeekDays {
        listed: Bits::default(),
        marked: [WeekMark::Alternate { weekday: 0 }].into(),
        star: false,
    };
    Ok(Calendar { days: Days { of_week, ..calendar.days }, ..calendar })
}

#[cfg(test)]
mod tests {
    use crate::cron::{BadExpression, Dialect, Expression};

    fn bad(text: &str) -> String {
        Expression::parse(text, Dialect::Auto).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_field_and_the_column() {
        assert_eq!(bad("0 75 * * * ?"), "column 3 (minute): minutes are 0 to 59, got `75`");
        assert_eq!(bad("  75 * * * *"), "column 3 (minute): minutes are 0 to 59, got `75`");
        assert_eq!(bad("0 24 * * *"), "column 3 (hour): hours are 0 to 23, got `24`");
        assert!(bad("0 0 1 FOO *").starts_with("column 7 (month): months are 1 to 12 or JAN to DEC"));
        assert!(
            bad("0 0 0 ? * 0").starts_with("column 11 (day of week): days of the week are 1 to 7 in Quartz")
        );
        assert!(bad("0 0 0 ? * * 2200").starts_with("column 13 (year): years are 1970 to 2199"));
        assert!(bad("0 0 0 ? * * 2030-2020").contains("runs backwards"));
    }

    #[test]
    fn the_number_of_fields_is_five_to_seven() {
        assert!(bad("").contains("empty"));
        assert!(bad(" \t ").contains("empty"));
        assert!(bad("* * * *").ends_with("this one has 4"));
        assert!(bad("0 0 0 ? * * * *").ends_with("this one has 8"));
        assert!(bad(&"* ".repeat(200)).contains("at most 256 characters"));
    }

    #[test]
    fn what_never_fires_is_refused() {
        for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 29 2 ? 2027", "0 0 0 31 4 ?", "0 0 0 30W 2 ?"]
        {
            assert!(bad(text).contains("never fires"), "{text}");
        }
        for text in ["0 0 29 2 *", "0 0 31 * *", "0 0 30 2 1", "0 0 0 29 2 ? 2028", "0 0 0 ? 2 2#5"] {
            assert!(Expression::parse(text, Dialect::Auto).is_ok(), "{text}");
        }
    }

    #[test]
    fn names_and_intervals_in_any_case() {
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
        assert!(bad("@reboot").contains("no time"));
        assert!(bad("sometimes").contains("`sometimes` is not known"));
        assert!(bad("every").contains("not known"));
        assert!(bad("  every 90").starts_with("column 9: the interval needs a unit"));
    }

    #[test]
    fn a_chosen_dialect_goes_before_the_number_of_fields() {
        let days = |text, dialect| Expression::parse(text, dialect).unwrap().describe();
        assert!(days("0 0 * * 1", Dialect::Auto).contains("Monday"));
        assert!(days("0 0 * * 1", Dialect::Quartz).contains("Sunday"));
        assert!(days("0 0 0 * * 1", Dialect::Auto).contains("Sunday"));
        assert!(days("0 0 0 * * 1", Dialect::Vixie).contains("Monday"));
    }

    #[test]
    fn the_text_is_kept_with_even_spaces() -> Result<(), BadExpression> {
        let parsed = Expression::parse(" 0\t3  * * *", Dialect::Auto)?;
        assert_eq!(parsed.to_string(), "0 3 * * *");
        assert_eq!(parsed, Expression::parse(&parsed.to_string(), parsed.dialect())?);
        Ok(())
    }
}
