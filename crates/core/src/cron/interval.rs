//! `every 90s`: the multiples of a duration, counted from 1970-01-01 00:00 UTC. These instants do not
//! depend on a zone or on clock changes, and every node computes the same ones.

use super::bad_expression::BadExpression;
use super::number_set::Direction;
use super::text_span::TextSpan;
use crate::time::parse_config_duration;

/// An interval of whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FixedInterval {
    pub(super) seconds: i64,
}

/// The units of an interval from the largest to the smallest: an expression has them in this order, each at most once.
const INTERVAL_UNITS: [(i64, &[&str]); 5] = [
    (604_800, &["w", "week", "weeks"]),
    (86_400, &["d", "day", "days"]),
    (3_600, &["h", "hr", "hrs", "hour", "hours"]),
    (60, &["m", "min", "mins", "minute", "minutes"]),
    (1, &["s", "sec", "secs", "second", "seconds"]),
];

/// The longest interval: 100 years of 366 days.
const MAX_INTERVAL_SECONDS: i64 = 100 * 366 * 86_400;

impl FixedInterval {
    pub(super) const MINUTE: Self = Self { seconds: 60 };
    pub(super) const SECOND: Self = Self { seconds: 1 };

    /// Parses the text after the word `every`: `90s`, `1h30m`, `12hrs`, `5 minutes`, `PT90S`.
    pub(super) fn parse(rest: TextSpan<'_>) -> Result<Self, BadExpression> {
        let bad = |problem: &str| {
            let remedy = "write an interval like `every 90s`, `every 1h30m` or `every 12 hours`";
            BadExpression::new(rest.column, format!("{problem}; {remedy}"))
        };
        let text = rest.text.trim();
        let seconds = match parse_numbers_with_units(text) {
            Some(seconds) => seconds,
            None if text.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(bad("the interval needs a unit"));
            }
            None => {
                let duration = parse_config_duration(text).map_err(|_| bad("this is not an interval"))?;
                if duration.subsec_nanos() != 0 {
                    return Err(bad("an interval is a whole number of seconds"));
                }
                i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
            }
        };
        if (1..=MAX_INTERVAL_SECONDS).contains(&seconds) {
            Ok(Self { seconds })
        } else {
            Err(bad("an interval lasts from one second to 100 years"))
        }
    }

    /// The multiple of the interval that is nearest to `from` in this direction, `from` included.
    pub(super) fn find_multiple_at_or_beyond(self, from: i64, direction: Direction) -> Option<i64> {
        let multiple_below = from.div_euclid(self.seconds) * self.seconds;
        let found = if multiple_below == from || direction == Direction::Backward {
            multiple_below
        } else {
            multiple_below + self.seconds
        };
        Some(found)
    }
}

/// Parses numbers with units, with optional spaces between them, and returns the total in seconds.
fn parse_numbers_with_units(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total = 0i64;
    let mut units = INTERVAL_UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(letters);
        let (seconds, _) =
            units.find(|(_, names)| names.iter().any(|name| unit.eq_ignore_ascii_case(name)))?;
        total = total.checked_add(number.checked_mul(*seconds)?)?;
        rest = after.trim_start();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_parsed_in_many_spellings() {
        for (text, want) in [
            ("90s", Some(90)),
            ("1h30m", Some(5400)),
            ("1 hour 30 minutes", Some(5400)),
            ("12hrs", Some(43_200)),
            ("1hr", Some(3600)),
            ("2 Weeks", Some(1_209_600)),
            ("PT90S", Some(90)),
            ("1d12h", Some(129_600)),
            ("1.5h", None),
            ("0s", None),
            ("90", None),
            ("", None),
            ("250ms", None),
            ("1500ms", None),
            ("30m1h", None),
            ("1h1h", None),
            ("soon", None),
            ("-5m", None),
            ("99999999999999999999s", None),
            ("9999999999999999w", None),
        ] {
            let got = FixedInterval::parse(TextSpan { text, column: 7 });
            assert_eq!(got.as_ref().ok().map(|every| every.seconds), want, "{text:?}");
            assert!(got.is_ok() || got.is_err_and(|error| error.column == 7));
        }
    }
}
