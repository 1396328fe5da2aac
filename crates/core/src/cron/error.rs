//! Why an expression was refused.

use super::field::Field;

/// What is wrong with an expression, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}{}: {problem}", field_in_brackets(.field))]
pub struct BadExpression {
    /// The field it is about, where it is about one.
    pub field: Option<Field>,
    /// Counted in characters from 1, over the whole text.
    pub column: usize,
    /// In words, with the remedy.
    pub problem: String,
}

impl BadExpression {
    pub(super) fn new(column: usize, problem: impl Into<String>) -> Self {
        Self { field: None, column, problem: problem.into() }
    }

    pub(super) fn in_field(field: Field, column: usize, problem: impl Into<String>) -> Self {
        Self { field: Some(field), column, problem: problem.into() }
    }
}

fn field_in_brackets(field: &Option<Field>) -> String {
    field.map_or_else(String::new, |field| format!(" ({field})"))
}
