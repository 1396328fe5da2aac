//! The fields of an expression and the part of their grammar that all of them share: lists of `*`, values and
//! ranges, each with an optional step.

use std::fmt;

use super::Dialect;
use super::bits::Bits;
use super::error::BadExpression;
use super::text::Part;

/// The years an expression may name, and beyond which no schedule fires.
pub(super) const YEARS: (u16, u16) = (1970, 2199);

pub(super) const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
pub(super) const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One of the places of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
    Year,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        })
    }
}

impl Field {
    /// The lowest and the highest value there is. Vixie's 7 is only another name for its 0.
    pub(super) fn bounds(self, dialect: Dialect) -> (u16, u16) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek if dialect == Dialect::Quartz => (1, 7),
            Self::DayOfWeek => (0, 6),
            Self::Year => YEARS,
        }
    }

    /// What is allowed here, as a sentence.
    pub(super) fn range_in_words(self, dialect: Dialect) -> &'static str {
        match self {
            Self::Second => "seconds are 0 to 59",
            Self::Minute => "minutes are 0 to 59",
            Self::Hour => "hours are 0 to 23",
            Self::DayOfMonth => "days of the month are 1 to 31",
            Self::Month => "months are 1 to 12 or JAN to DEC",
            Self::DayOfWeek if dialect == Dialect::Quartz => {
                "days of the week are 1 to 7 in Quartz expressions (1 is Sunday) or SUN to SAT"
            }
            Self::DayOfWeek => "days of the week are 0 to 7 (0 and 7 are Sunday) or SUN to SAT",
            Self::Year => "years are 1970 to 2199",
        }
    }

    fn named(self, part: Part<'_>, dialect: Dialect) -> Option<u16> {
        let names: &[&str] = match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => return None,
        };
        let place = names.iter().position(|name| part.is(name))?;
        Some(place as u16 + self.bounds(dialect).0)
    }

    /// One value, as a number or a name.
    pub(super) fn value(self, part: Part<'_>, dialect: Dialect) -> Result<u16, BadExpression> {
        let range = self.range_in_words(dialect);
        if part.text.is_empty() {
            return Err(self.bad(part.column, format!("a value is missing; {range}")));
        }
        let (low, mut high) = self.bounds(dialect);
        if self == Self::DayOfWeek {
            high = 7;
        }
        let value = part.number().or_else(|| self.named(part, dialect));
        value
            .filter(|value| (low..=high).contains(value))
            .ok_or_else(|| self.bad(part.column, format!("{range}, got {}", shown(part))))
    }

    pub(super) fn bad(self, column: usize, problem: impl Into<String>) -> BadExpression {
        BadExpression::in_field(self, column, problem)
    }
}

/// A piece of the text in an error: quoted, and cut where it is long.
pub(super) fn shown(part: Part<'_>) -> String {
    match part.text.char_indices().nth(24) {
        None => format!("`{}`", part.text),
        Some((end, _)) => format!("`{}…`", &part.text[..end]),
    }
}

/// One item of a list: every `step`th value from `first` to `last`, which may lie before it: then the run goes
/// round the end of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    first: u16,
    last: u16,
    step: u16,
    pub(super) shape: Shape,
}

/// How an item was written. Only [`Shape::Value`] names the times one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Value,
    Range,
    Star,
}

impl Run {
    fn parse(field: Field, part: Part<'_>, dialect: Dialect) -> Result<Self, BadExpression> {
        let (low, high) = field.bounds(dialect);
        let (body, step) = match part.split_once('/') {
            Some((body, step)) => (body, Some(Self::step(field, step, dialect)?)),
            None => (part, None),
        };
        let (first, last, shape) = if body.text == "*" {
            (low, high, Shape::Star)
        } else if let Some((first, last)) = body.split_once('-') {
            let ends = (field.value(first, dialect)?, field.value(last, dialect)?);
            if field == Field::Year && ends.0 > ends.1 {
                let problem = format!("{} runs backwards; the earlier year comes first", shown(body));
                return Err(field.bad(body.column, problem));
            }
            (ends.0, ends.1, Shape::Range)
        } else {
            let value = field.value(body, dialect)?;
            match step {
                Some(_) => (value, high.max(value), Shape::Range),
                None => (value, value, Shape::Value),
            }
        };
        Ok(Self { first, last, step: step.unwrap_or(1), shape })
    }

    fn step(field: Field, part: Part<'_>, dialect: Dialect) -> Result<u16, BadExpression> {
        let (low, high) = field.bounds(dialect);
        let most = high - low + 1;
        part.number()
            .filter(|step| (1..=most).contains(step))
            .ok_or_else(|| field.bad(part.column, format!("a step here is 1 to {most}, got {}", shown(part))))
    }

    pub(super) fn values(self, field: Field, dialect: Dialect) -> impl Iterator<Item = u16> {
        let (low, high) = field.bounds(dialect);
        let size = high - low + 1;
        let length =
            if self.last >= self.first { self.last - self.first } else { self.last + size - self.first };
        (0..=length).step_by(usize::from(self.step)).map(move |walked| {
            let value = self.first + walked;
            if value > high { value - size } else { value }
        })
    }
}

/// What a field without special marks says: the set of its values and how they were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) set: Bits,
    /// Whether every value is named on its own: no `*`, no range, no step.
    pub(super) named_singly: bool,
}

/// Reads a list of runs for any field but the year.
pub(super) fn values(field: Field, part: Part<'_>, dialect: Dialect) -> Result<Values, BadExpression> {
    let mut found = Values { set: Bits::default(), named_singly: true };
    for item in part.list() {
        add(&mut found, field, item, dialect)?;
    }
    Ok(found)
}

/// Reads one run into `found`.
pub(super) fn add(
    found: &mut Values,
    field: Field,
    item: Part<'_>,
    dialect: Dialect,
) -> Result<(), BadExpression> {
    let run = Run::parse(field, item, dialect)?;
    found.named_singly &= run.shape == Shape::Value;
    for value in run.values(field, dialect) {
        found.set.insert(value as u8);
    }
    Ok(())
}

/// The years of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Years {
    Every,
    /// In order, each once.
    Listed(Box<[i16]>),
}

impl Years {
    pub(super) fn parse(part: Part<'_>, dialect: Dialect) -> Result<Self, BadExpression> {
        if part.text == "*" {
            return Ok(Self::Every);
        }
        let mut years = Vec::new();
        for item in part.list() {
            let run = Run::parse(Field::Year, item, dialect)?;
            years.extend(run.values(Field::Year, dialect).map(|year| year as i16));
        }
        years.sort_unstable();
        years.dedup();
        Ok(Self::Listed(years.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(field: Field, text: &str, dialect: Dialect) -> Vec<u8> {
        values(field, Part::whole(text), dialect).unwrap().set.iter().collect()
    }

    #[test]
    fn lists_ranges_steps_names_and_runs_round_the_end() {
        let (vixie, quartz) = (Dialect::Vixie, Dialect::Quartz);
        assert_eq!(set(Field::Minute, "*/20", vixie), [0, 20, 40]);
        assert_eq!(set(Field::Minute, "50/5", vixie), [50, 55]);
        assert_eq!(set(Field::Minute, "1,3-5,10-20/5", vixie), [1, 3, 4, 5, 10, 15, 20]);
        assert_eq!(set(Field::Hour, "22-2", vixie), [0, 1, 2, 22, 23]);
        assert_eq!(set(Field::Hour, "22-4/2", vixie), [0, 2, 4, 22]);
        assert_eq!(set(Field::Month, "nov-FEB", quartz), [1, 2, 11, 12]);
        assert_eq!(set(Field::DayOfMonth, "30-2", quartz), [1, 2, 30, 31]);
        assert_eq!(set(Field::DayOfWeek, "FRI-MON", quartz), [1, 2, 6, 7]);
        assert_eq!(set(Field::DayOfWeek, "fri-mon", vixie), [0, 1, 5, 6]);
        assert_eq!(set(Field::DayOfWeek, "5-7", vixie), [0, 5, 6]);
        assert_eq!(set(Field::DayOfWeek, "7", vixie), [0]);
        assert_eq!(set(Field::DayOfWeek, "7-2", vixie), [0, 1, 2]);
        assert_eq!(set(Field::DayOfWeek, "1-7/2", vixie), [0, 1, 3, 5]);
    }

    #[test]
    fn errors_point_at_their_column_and_say_what_would_be_right() {
        let bad = |field, text| {
            let part = Part { text, column: 10 };
            let error = values(field, part, Dialect::Vixie).unwrap_err();
            (error.column, error.problem)
        };
        assert_eq!(bad(Field::Minute, "75"), (10, "minutes are 0 to 59, got `75`".into()));
        assert_eq!(bad(Field::Hour, "1,5-24"), (14, "hours are 0 to 23, got `24`".into()));
        assert_eq!(bad(Field::Minute, "*/0"), (12, "a step here is 1 to 60, got `0`".into()));
        assert_eq!(bad(Field::Minute, "*/61"), (12, "a step here is 1 to 60, got `61`".into()));
        assert_eq!(bad(Field::Minute, "1,,2"), (12, "a value is missing; minutes are 0 to 59".into()));
        assert_eq!(bad(Field::Minute, "-5"), (10, "a value is missing; minutes are 0 to 59".into()));
        assert_eq!(bad(Field::Month, "JANUARY").0, 10);
        assert_eq!(bad(Field::DayOfWeek, "8").0, 10);
    }
}
