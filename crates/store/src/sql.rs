//! SQL that a program may run on its own tables inside a unit of work, with any database.

use std::any::Any;

use pointsman_core::store::StoreError;

pub use crate::error::BoxError;
use crate::error::panic_message;

/// Why a unit of work did not commit. Nothing of it was stored, except possibly with [`TransactError::OutcomeUnknown`].
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// The work itself returned an error.
    #[error("the unit of work failed")]
    WorkFailed(#[source] BoxError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection broke during the commit, and the database cannot be queried for the outcome.
    #[error("it is unknown whether the unit of work was committed")]
    OutcomeUnknown(#[source] BoxError),
}

/// Why a statement was refused.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error(transparent)]
    StatementFailed(BoxError),
    #[error("a unit of work is one transaction; {0} is not allowed in it")]
    TransactionControl(String),
    #[error("a unit of work cannot write to the store's own tables; emit events instead")]
    StoreTablesReadOnly,
    /// Further statements would be committed on their own, or not at all.
    #[error("an earlier statement rolled the whole transaction back")]
    RolledBack,
}

/// A parameter of a statement, or a value of a result row.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// A row of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlRow(Vec<SqlValue>);

impl SqlRow {
    pub fn new(values: Vec<SqlValue>) -> Self {
        Self(values)
    }

    pub fn get(&self, column: usize) -> Option<&SqlValue> {
        self.0.get(column)
    }
}

/// The transaction of a unit of work.
pub trait SqlTransaction {
    /// Runs a statement; returns the number of changed rows.
    fn execute(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<usize, SqlError>;

    /// Runs a query; returns all rows.
    fn query(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<Vec<SqlRow>, SqlError>;
}

/// How a database parses a comment inside a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentNesting {
    /// As part of the outer comment.
    Flat,
    /// As a comment with its own end.
    Nested,
}

/// Returns the first keyword of a statement, in capitals; skips blanks, semicolons and comments before it. Returns an
/// empty text if the statement begins with anything else.
pub fn parse_first_keyword(sql: &str, comments: CommentNesting) -> String {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '\u{feff}');
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if rest.starts_with("/*") {
            skip_comment(rest, comments)
        } else {
            let word = rest.chars().take_while(char::is_ascii_alphabetic);
            return word.collect::<String>().to_ascii_uppercase();
        };
    }
}

/// Returns the text after the comment that `sql` begins with.
fn skip_comment(sql: &str, comments: CommentNesting) -> &str {
    let (mut depth, mut rest) = (0, sql);
    loop {
        let Some(at) = rest.find(['/', '*']) else { return "" };
        rest = &rest[at..];
        let (depth_change, length) = match rest.get(..2) {
            Some("/*") if depth == 0 || comments == CommentNesting::Nested => (1, 2),
            Some("*/") => (-1, 2),
            Some(_) | None => (0, 1),
        };
        (depth, rest) = (depth + depth_change, &rest[length..]);
        if depth == 0 {
            return rest;
        }
    }
}

/// Returns whether a statement contains a word, in any case.
pub fn contains_word(sql: &str, word: &str) -> bool {
    sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found.eq_ignore_ascii_case(word))
}

/// Builds the error of a unit of work that panicked, with the panic message.
pub fn error_from_panic(panic: &(dyn Any + Send)) -> BoxError {
    format!("the unit of work panicked: {}", panic_message(panic)).into()
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for SqlValue {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Integer(value.into())
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_keyword_is_found_after_blanks_and_comments() {
        for sql in [
            "COMMIT",
            "  commit",
            ";commit immediate",
            "/* x */ COMMIT",
            "-- x\n;/**/ -- y\n Commit x",
            "/*/ */commit",
            "/* * / **/ commit",
            "\u{feff}commit",
        ] {
            assert_eq!(parse_first_keyword(sql, CommentNesting::Flat), "COMMIT", "{sql}");
            assert_eq!(parse_first_keyword(sql, CommentNesting::Nested), "COMMIT", "{sql}");
        }
        assert_eq!(parse_first_keyword("INSERT INTO commits VALUES (1)", CommentNesting::Flat), "INSERT");
        assert_eq!(parse_first_keyword("/* /* x */ insert */ commit", CommentNesting::Flat), "INSERT");
        assert_eq!(parse_first_keyword("/* /* x */ insert */ commit", CommentNesting::Nested), "COMMIT");
        for none in ["-- only a comment", "/* open", "", "(SELECT 1)", "1"] {
            assert_eq!(parse_first_keyword(none, CommentNesting::Flat), "", "{none}");
        }
    }
}
