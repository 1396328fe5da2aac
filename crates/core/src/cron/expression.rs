//! A parsed cron expression.

use std::fmt;
use std::sync::Arc;

use super::calendar::CalendarFields;
use super::interval::FixedInterval;
use super::parse;
use super::{BadExpression, Dialect};

/// A parsed cron expression, without a time zone. It keeps its text, with white space normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: Arc<str>,
    dialect: Dialect,
    recurrence: Recurrence,
}

/// The meaning of a cron expression: when it fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recurrence {
    /// Local times that match a set of fields.
    Calendar(CalendarFields),
    /// Instants that are multiples of a duration.
    Interval(FixedInterval),
}

impl Expression {
    /// Parses an expression: five to seven fields, `@daily` and its like, or an interval in words.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, BadExpression> {
        let (recurrence, dialect) = parse::parse_expression(text, dialect)?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { text: text.into(), dialect, recurrence })
    }

    /// The dialect in which the expression was parsed; [`Dialect::Auto`] for a text without fields. Parsing the text
    /// again in this dialect gives the same expression.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn recurrence(&self) -> &Recurrence {
        &self.recurrence
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Expression {
    type Err = BadExpression;
    fn from_str(text: &str) -> Result<Self, BadExpression> {
        Self::parse(text, Dialect::Auto)
    }
}
