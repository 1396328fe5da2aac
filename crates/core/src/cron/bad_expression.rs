//! The error of parsing a cron expression.

use super::field::CronField;

/// A mistake in a cron expression: where it is and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}{}: {problem}", format_field_suffix(.field))]
pub struct BadExpression {
    /// The field with the mistake, if it is in one.
    pub field: Option<CronField>,
    /// The column of the mistake, counted in characters from 1 over the whole text.
    pub column: usize,
    /// The mistake and the remedy, for people.
    pub problem: String,
}

impl BadExpression {
    pub(super) fn new(column: usize, problem: impl Into<String>) -> Self {
        Self { field: None, column, problem: problem.into() }
    }

    pub(super) fn with_field(field: CronField, column: usize, problem: impl Into<String>) -> Self {
        Self { field: Some(field), column, problem: problem.into() }
    }
}

fn format_field_suffix(field: &Option<CronField>) -> String {
    field.map_or_else(String::new, |field| format!(" ({field})"))
}
