//! The fields of an expression and the grammar that they share: lists of `*`, values and ranges, each with an optional
//! step.

use std::fmt;

use super::Dialect;
use super::bad_expression::BadExpression;
use super::number_set::NumberSet;
use super::text_span::TextSpan;

/// The years an expression may name, and beyond which no schedule fires.
pub(super) const YEAR_RANGE: (u16, u16) = (1970, 2199);

pub(super) const MONTH_ABBREVIATIONS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
pub(super) const WEEKDAY_ABBREVIATIONS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A field of a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CronField {
    /// The second, 0 to 59.
    Second,
    /// The minute, 0 to 59.
    Minute,
    /// The hour, 0 to 23.
    Hour,
    /// The day of the month, 1 to 31.
    DayOfMonth,
    /// The month, 1 to 12.
    Month,
    /// The day of the week.
    DayOfWeek,
    /// The year.
    Year,
}

impl fmt::Display for CronField {
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

impl CronField {
    /// The lowest and the highest value of this field. In Vixie's dialect, weekday 7 is another name for 0 (Sunday).
    pub(super) fn value_bounds(self, dialect: Dialect) -> (u16, u16) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek if dialect == Dialect::Quartz => (1, 7),
            Self::DayOfWeek => (0, 6),
            Self::Year => YEAR_RANGE,
        }
    }

    /// The allowed values, as a sentence for error messages.
    pub(super) fn describe_bounds(self, dialect: Dialect) -> &'static str {
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

    fn find_value_by_name(self, part: TextSpan<'_>, dialect: Dialect) -> Option<u16> {
        let names: &[&str] = match self {
            Self::Month => &MONTH_ABBREVIATIONS,
            Self::DayOfWeek => &WEEKDAY_ABBREVIATIONS,
            _ => return None,
        };
        let position = names.iter().position(|name| part.eq_ignore_case(name))?;
        Some(position as u16 + self.value_bounds(dialect).0)
    }

    /// Parses one value, a number or a name.
    pub(super) fn parse_value(self, part: TextSpan<'_>, dialect: Dialect) -> Result<u16, BadExpression> {
        let range = self.describe_bounds(dialect);
        if part.text.is_empty() {
            return Err(self.error(part.column, format!("a value is missing; {range}")));
        }
        let (low, mut high) = self.value_bounds(dialect);
        if self == Self::DayOfWeek {
            high = 7;
        }
        let value = part.parse_number().or_else(|| self.find_value_by_name(part, dialect));
        value
            .filter(|value| (low..=high).contains(value))
            .ok_or_else(|| self.error(part.column, format!("{range}, got {}", quote_shortened(part))))
    }

    pub(super) fn error(self, column: usize, problem: impl Into<String>) -> BadExpression {
        BadExpression::with_field(self, column, problem)
    }
}

/// Quotes a piece of the text for an error message, shortened if it is long.
pub(super) fn quote_shortened(part: TextSpan<'_>) -> String {
    match part.text.char_indices().nth(24) {
        None => format!("`{}`", part.text),
        Some((end, _)) => format!("`{}…`", &part.text[..end]),
    }
}

/// One item of a list: every `step`th value from `first` to `last`. If `last` is less than `first`, the range wraps
/// around the end of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueRange {
    first: u16,
    last: u16,
    step: u16,
    pub(super) form: ListItemForm,
}

/// How an item of a list was written: a single value, a range (or a value with a step), or `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListItemForm {
    Value,
    Range,
    Star,
}

impl ValueRange {
    fn parse_list_item(
        field: CronField,
        part: TextSpan<'_>,
        dialect: Dialect,
    ) -> Result<Self, BadExpression> {
        let (low, high) = field.value_bounds(dialect);
        let (body, step) = match part.split_once('/') {
            Some((body, step)) => (body, Some(Self::parse_step(field, step, dialect)?)),
            None => (part, None),
        };
        let (first, last, form) = if body.text == "*" {
            (low, high, ListItemForm::Star)
        } else if let Some((first, last)) = body.split_once('-') {
            let ends = (field.parse_value(first, dialect)?, field.parse_value(last, dialect)?);
            if field == CronField::Year && ends.0 > ends.1 {
                let problem =
                    format!("{} runs backwards; the earlier year comes first", quote_shortened(body));
                return Err(field.error(body.column, problem));
            }
            (ends.0, ends.1, ListItemForm::Range)
        } else {
            let value = field.parse_value(body, dialect)?;
            match step {
                Some(_) => (value, high.max(value), ListItemForm::Range),
                None => (value, value, ListItemForm::Value),
            }
        };
        Ok(Self { first, last, step: step.unwrap_or(1), form })
    }

    fn parse_step(field: CronField, part: TextSpan<'_>, dialect: Dialect) -> Result<u16, BadExpression> {
        let (low, high) = field.value_bounds(dialect);
        let max_step = high - low + 1;
        part.parse_number().filter(|step| (1..=max_step).contains(step)).ok_or_else(|| {
            field.error(part.column, format!("a step here is 1 to {max_step}, got {}", quote_shortened(part)))
        })
    }

    /// The values of the range, in its order.
    pub(super) fn values(self, field: CronField, dialect: Dialect) -> impl Iterator<Item = u16> {
        let (low, high) = field.value_bounds(dialect);
        let size = high - low + 1;
        let length =
            if self.last >= self.first { self.last - self.first } else { self.last + size - self.first };
        (0..=length).step_by(usize::from(self.step)).map(move |offset| {
            let value = self.first + offset;
            if value > high { value - size } else { value }
        })
    }
}

/// The values of a field without special days, and how they were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldValues {
    pub(super) set: NumberSet,
    /// Whether every value is listed singly: no `*`, no range, no step.
    pub(super) each_value_listed_singly: bool,
}

/// Parses the list of a field other than the year.
pub(super) fn parse_values(
    field: CronField,
    part: TextSpan<'_>,
    dialect: Dialect,
) -> Result<FieldValues, BadExpression> {
    let mut found = FieldValues { set: NumberSet::default(), each_value_listed_singly: true };
    for item in part.split_commas() {
        parse_list_item_into(&mut found, field, item, dialect)?;
    }
    Ok(found)
}

/// Parses one item of a list and adds its values to `found`.
pub(super) fn parse_list_item_into(
    found: &mut FieldValues,
    field: CronField,
    item: TextSpan<'_>,
    dialect: Dialect,
) -> Result<(), BadExpression> {
    let range = ValueRange::parse_list_item(field, item, dialect)?;
    found.each_value_listed_singly &= range.form == ListItemForm::Value;
    for value in range.values(field, dialect) {
        found.set.insert(value as u8);
    }
    Ok(())
}

/// The year field of a cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Years {
    All,
    /// The listed years, in order, each once.
    Listed(Box<[i16]>),
}

impl Years {
    pub(super) fn parse(part: TextSpan<'_>, dialect: Dialect) -> Result<Self, BadExpression> {
        if part.text == "*" {
            return Ok(Self::All);
        }
        let mut years = Vec::new();
        for item in part.split_commas() {
            let range = ValueRange::parse_list_item(CronField::Year, item, dialect)?;
            years.extend(range.values(CronField::Year, dialect).map(|year| year as i16));
        }
        years.sort_unstable();
        years.dedup();
        Ok(Self::Listed(years.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_set(field: CronField, text: &str, dialect: Dialect) -> Vec<u8> {
        parse_values(field, TextSpan::from_text(text), dialect).unwrap().set.iter().collect()
    }

    #[test]
    fn lists_ranges_steps_names_and_wrapping_ranges_are_parsed() {
        let (vixie, quartz) = (Dialect::Vixie, Dialect::Quartz);
        assert_eq!(parsed_set(CronField::Minute, "*/20", vixie), [0, 20, 40]);
        assert_eq!(parsed_set(CronField::Minute, "50/5", vixie), [50, 55]);
        assert_eq!(parsed_set(CronField::Minute, "1,3-5,10-20/5", vixie), [1, 3, 4, 5, 10, 15, 20]);
        assert_eq!(parsed_set(CronField::Hour, "22-2", vixie), [0, 1, 2, 22, 23]);
        assert_eq!(parsed_set(CronField::Hour, "22-4/2", vixie), [0, 2, 4, 22]);
        assert_eq!(parsed_set(CronField::Month, "nov-FEB", quartz), [1, 2, 11, 12]);
        assert_eq!(parsed_set(CronField::DayOfMonth, "30-2", quartz), [1, 2, 30, 31]);
        assert_eq!(parsed_set(CronField::DayOfWeek, "FRI-MON", quartz), [1, 2, 6, 7]);
        assert_eq!(parsed_set(CronField::DayOfWeek, "fri-mon", vixie), [0, 1, 5, 6]);
        assert_eq!(parsed_set(CronField::DayOfWeek, "5-7", vixie), [0, 5, 6]);
        assert_eq!(parsed_set(CronField::DayOfWeek, "7", vixie), [0]);
        assert_eq!(parsed_set(CronField::DayOfWeek, "7-2", vixie), [0, 1, 2]);
        assert_eq!(parsed_set(CronField::DayOfWeek, "1-7/2", vixie), [0, 1, 3, 5]);
    }

    #[test]
    fn errors_state_the_column_and_the_allowed_values() {
        let bad = |field, text| {
            let part = TextSpan { text, column: 10 };
            let error = parse_values(field, part, Dialect::Vixie).unwrap_err();
            (error.column, error.problem)
        };
        assert_eq!(bad(CronField::Minute, "75"), (10, "minutes are 0 to 59, got `75`".into()));
        assert_eq!(bad(CronField::Hour, "1,5-24"), (14, "hours are 0 to 23, got `24`".into()));
        assert_eq!(bad(CronField::Minute, "*/0"), (12, "a step here is 1 to 60, got `0`".into()));
        assert_eq!(bad(CronField::Minute, "*/61"), (12, "a step here is 1 to 60, got `61`".into()));
        assert_eq!(bad(CronField::Minute, "1,,2"), (12, "a value is missing; minutes are 0 to 59".into()));
        assert_eq!(bad(CronField::Minute, "-5"), (10, "a value is missing; minutes are 0 to 59".into()));
        assert_eq!(bad(CronField::Month, "JANUARY").0, 10);
        assert_eq!(bad(CronField::DayOfWeek, "8").0, 10);
    }
}
