//! What a program may do with its own tables inside a unit of work, whichever database they lie in.

use std::any::Any;
use std::error::Error;

use pointsman_core::store::StoreError;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a unit of work did not commit. Nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// The work itself failed, or gave up.
    #[error("the unit of work failed: {0}")]
    WorkFailed(#[source] BoxError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection broke while it was committed, and the database cannot be asked.
    #[error("whether the unit of work was committed is not known: {0}")]
    OutcomeUnknown(String),
}

/// A statement that the database refused.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("{0}")]
    Refused(String),
    #[error("a unit of work is one transaction; {0} is not for its statements")]
    TransactionControl(String),
    #[error("the store's own tables are not for others to write to; emit events instead")]
    StoreTablesReadOnly,
    /// Whatever came now would be committed by itself, or not at all.
    #[error("an earlier statement rolled the whole transaction back")]
    RolledBack,
}

/// A value of a statement or of a row.
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
    /// Runs a statement; answers how many rows it changed.
    fn execute(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<usize, SqlError>;

    /// Runs a query; answers all its rows.
    fn query(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<Vec<SqlRow>, SqlError>;
}

/// How a database reads a comment inside of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentNesting {
    /// As a part of it.
    Flat,
    /// As one of its own, which has an end of its own.
    Nested,
}

/// The first word of a statement in capitals, past blanks, semicolons and comments.
pub fn first_keyword(sql: &str, comments: CommentNesting) -> String {
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

/// What follows the comment at the beginning.
fn skip_comment(sql: &str, comments: CommentNesting) -> &str {
    let (mut depth, mut rest) = (0, sql);
    loop {
        let Some(at) = rest.find(['/', '*']) else { return "" };
        rest = &rest[at..];
        let (by, skip) = match rest.get(..2) {
            Some("/*") if depth == 0 || comments == CommentNesting::Nested => (1, 2),
            Some("*/") => (-1, 2),
            Some(_) | None => (0, 1),
        };
        (depth, rest) = (depth + by, &rest[skip..]);
        if depth == 0 {
            return rest;
        }
    }
}

/// Whether a word stands in a statement, wherever.
pub fn contains_word(sql: &str, word: &str) -> bool {
    sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found.eq_ignore_ascii_case(word))
}

/// What a unit of work that panicked said.
pub fn panic_error(panic: &(dyn Any + Send)) -> BoxError {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.as_deref().unwrap_or("no message")).into()
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
    fn from(yes: bool) -> Self {
        Self::Integer(yes.into())
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
    fn the_first_word_is_found_past_all_that_is_none() {
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
            assert_eq!(first_keyword(sql, CommentNesting::Flat), "COMMIT", "{sql}");
            assert_eq!(first_keyword(sql, CommentNesting::Nested), "COMMIT", "{sql}");
        }
        assert_eq!(first_keyword("INSERT INTO commits VALUES (1)", CommentNesting::Flat), "INSERT");
        assert_eq!(first_keyword("/* /* x */ insert */ commit", CommentNesting::Flat), "INSERT");
        assert_eq!(first_keyword("/* /* x */ insert */ commit", CommentNesting::Nested), "COMMIT");
        for none in ["-- only a comment", "/* open", "", "(SELECT 1)", "1"] {
            assert_eq!(first_keyword(none, CommentNesting::Flat), "", "{none}");
        }
    }
}
