//! The unit of work: a program's own writes and its events in one transaction.

use std::error::Error;
use std::panic::AssertUnwindSafe;

use pointsman_core::store::{Receipt, StoreError};
use pointsman_core::{NewEvent, Timestamp};
use pointsman_store::{Room, Txn};
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::Sqlite;
use crate::error::Result;
use crate::tables::SqliteTables;

type BoxError = Box<dyn Error + Send + Sync>;

/// Why a unit of work did not commit. Nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// The work itself failed, or gave up.
    #[error("the unit of work failed: {0}")]
    Work(#[source] BoxError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A statement that the database refused.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("{0}")]
    Refused(String),
    #[error("a unit of work is one transaction; {0} is not for its statements")]
    TransactionControl(String),
    #[error(
        "tables whose names begin with pointsman_ are the store's own; emit events instead of writing to them"
    )]
    OurTables,
    /// A trigger or a table's own conflict clause can do that. Whatever came now would be committed by itself.
    #[error("an earlier statement rolled the whole transaction back")]
    RolledBack,
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A value of a statement or of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// A row of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlRow(Vec<Value>);

impl SqlRow {
    pub fn get(&self, column: usize) -> Option<&Value> {
        self.0.get(column)
    }
}

/// The store's own transaction. Programs may keep their tables in the same file, under any name that does not
/// begin with `pointsman_`.
pub struct Tx<'a> {
    conn: &'a Connection,
}

impl Tx<'_> {
    /// Runs a statement; answers how many rows it changed.
    pub fn execute(&mut self, sql: &str, params: &[Value]) -> std::result::Result<usize, SqlError> {
        Ok(self.statement(sql)?.execute(rusqlite::params_from_iter(params))?)
    }

    pub fn query(&mut self, sql: &str, params: &[Value]) -> std::result::Result<Vec<SqlRow>, SqlError> {
        let mut statement = self.statement(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| row.get_ref(column).map(Value::from));
            found.push(SqlRow(values.collect::<rusqlite::Result<_>>()?));
        }
        Ok(found)
    }

    /// Others share the transaction, and the store's tables are the store's: neither is for programs to touch.
    fn statement(&self, sql: &str) -> std::result::Result<rusqlite::CachedStatement<'_>, SqlError> {
        let word = first_word(sql);
        if CONTROL.contains(&word.as_str()) {
            return Err(SqlError::TransactionControl(word));
        }
        if self.conn.is_autocommit() {
            return Err(SqlError::RolledBack);
        }
        let statement = self.conn.prepare_cached(sql)?;
        if !statement.readonly() {
            if sql.to_ascii_lowercase().contains("pointsman_") {
                return Err(SqlError::OurTables);
            }
            // As a conflict clause it would undo what others put into the same transaction.
            if has_word(sql, "rollback") {
                return Err(SqlError::TransactionControl("ROLLBACK".into()));
            }
        }
        Ok(statement)
    }
}

/// Statements that would end the shared transaction or change the connection.
const CONTROL: [&str; 10] =
    ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "ATTACH", "DETACH", "VACUUM"];

/// The first word of a statement in capitals, past blanks, semicolons and comments.
fn first_word(sql: &str) -> String {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '\u{feff}');
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return rest
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .collect::<String>()
                .to_ascii_uppercase();
        };
    }
}

fn has_word(sql: &str, word: &str) -> bool {
    sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found.eq_ignore_ascii_case(word))
}

impl Sqlite {
    /// Runs `work` and journals the events it returns, in one transaction. If it fails or panics, nothing has
    /// happened.
    pub async fn transact<F>(&self, work: F, now: Timestamp) -> std::result::Result<Receipt, TransactError>
    where
        F: FnOnce(&mut Tx<'_>) -> std::result::Result<Vec<NewEvent>, BoxError> + Send + 'static,
    {
        let outcome = self.writer.run(move |txn| transact(txn, work, now)).await?;
        outcome.map_err(TransactError::Work)
    }
}

/// The work runs in a savepoint, so that its failure does not undo what others put into the same transaction.
fn transact<F>(
    txn: &mut Txn<'_, SqliteTables>,
    work: F,
    now: Timestamp,
) -> Result<std::result::Result<Receipt, BoxError>>
where
    F: FnOnce(&mut Tx<'_>) -> std::result::Result<Vec<NewEvent>, BoxError>,
{
    let conn = txn.tables.conn();
    conn.execute_batch("SAVEPOINT unit")?;
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| work(&mut Tx { conn })));
    let done = done.unwrap_or_else(|panic| Err(panic_message(panic.as_ref()).into()));
    match done {
        Ok(events) => {
            conn.execute_batch("RELEASE unit")?;
            let events = txn.journal(events, &mut Room::default(), now)?;
            Ok(Ok(Receipt { events, repeated: false }))
        }
        Err(error) => {
            conn.execute_batch("ROLLBACK TO unit; RELEASE unit")?;
            Ok(Err(error))
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.as_deref().unwrap_or("no message"))
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Integer(yes.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tx")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_cannot_end_the_transaction_it_shares() {
        for sql in [
            "COMMIT",
            "  rollback",
            ";begin immediate",
            "/* x */ COMMIT",
            "-- x\n;/**/ -- y\n SAVEPOINT x",
            "\u{feff}pragma synchronous=off",
        ] {
            assert!(CONTROL.contains(&first_word(sql).as_str()), "{sql}");
        }
        assert_eq!(first_word("INSERT INTO commits VALUES (1)"), "INSERT");
        assert_eq!(first_word("-- only a comment"), "");
    }
}
