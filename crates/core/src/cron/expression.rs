//! A parsed expression.

use std::fmt;
use std::sync::Arc;

use super::calendar::Calendar;
use super::every::Every;
use super::parse;
use super::{BadExpression, Dialect};

/// When something recurs, apart from any time zone. It remembers its text, white space made even.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: Arc<str>,
    dialect: Dialect,
    plan: Plan,
}

/// What a text came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Local times that match a set of fields.
    Calendar(Calendar),
    /// Instants that are multiples of a duration.
    Every(Every),
}

impl Expression {
    /// Reads an expression: five to seven fields, `@daily` and its like, or an interval in words.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, BadExpression> {
        let (plan, dialect) = parse::plan(text, dialect)?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { text: text.into(), dialect, plan })
    }

    /// The dialect it was read in. [`Dialect::Auto`] for what has no fields; the text and this, parsed again,
    /// give the same expression.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
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
