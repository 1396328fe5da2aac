//! The statements of a unit of work.

use pointsman_store::sql::{Comments, Sql, SqlError, SqlRow, Value, first_word};
use tokio::runtime::Handle;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use super::value::{Bound, anything, value_of};
use crate::error::reason;
use crate::session::Session;

/// What a statement of a unit of work may begin with: whatever neither ends the transaction nor changes the connection.
const STATEMENTS: [&str; 20] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE", "CREATE", "ALTER", "DROP",
    "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "LOCK", "CALL", "DO", "REFRESH", "ANALYZE",
];
/// Those of them that only read.
const READING: [&str; 3] = ["SELECT", "TABLE", "VALUES"];

/// A transaction on a connection, waited for by the thread that the operations run on.
pub(super) struct Tx<'a> {
    session: &'a Session,
    runtime: &'a Handle,
    broken: bool,
}

impl<'a> Tx<'a> {
    pub(super) fn new(session: &'a Session, runtime: &'a Handle) -> Self {
        Self { session, runtime, broken: false }
    }

    /// A statement has failed, after which the database does nothing more in this transaction.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    fn wait<T>(&mut self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, SqlError> {
        self.runtime.block_on(answer).map_err(|error| {
            self.broken = true;
            SqlError::Refused(reason(&error))
        })
    }

    fn check(&self, sql: &str) -> Result<(), SqlError> {
        if self.broken {
            return Err(SqlError::RolledBack);
        }
        let word = first_word(sql, Comments::Nested);
        if !STATEMENTS.contains(&word.as_str()) {
            return Err(SqlError::TransactionControl(if word.is_empty() { "this".into() } else { word }));
        }
        if !READING.contains(&word.as_str()) && names_our_schema(sql) {
            return Err(SqlError::OurTables);
        }
        Ok(())
    }
}

impl Sql for Tx<'_> {
    fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<usize, SqlError> {
        self.check(sql)?;
        let (session, bound) = (self.session, bound(parameters));
        let changed = self.wait(session.execute_whole(sql, &typed(&bound)))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<SqlRow>, SqlError> {
        self.check(sql)?;
        let (session, bound) = (self.session, bound(parameters));
        let rows = self.wait(session.query_whole(sql, &typed(&bound)))?;
        let row_of = |row: &tokio_postgres::Row| {
            let values = row.columns().iter().enumerate().map(|(index, column)| value_of(row, index, column));
            values.collect::<Result<_, _>>().map(SqlRow::new)
        };
        rows.iter().map(row_of).collect()
    }
}

fn bound(parameters: &[Value]) -> Vec<Bound<'_>> {
    parameters.iter().map(Bound).collect()
}

fn typed<'a>(bound: &'a [Bound<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    bound.iter().map(|value| (value as &(dyn ToSql + Sync), anything())).collect()
}

/// Whether the schema `pointsman` is named: the word, in quotes or not, and a dot behind it.
fn names_our_schema(sql: &str) -> bool {
    const NAME: &str = "pointsman";
    let sql = sql.to_ascii_lowercase();
    let is_named = |(at, _): (usize, &str)| {
        let before = sql.get(..at).and_then(|before| before.chars().next_back());
        let behind = sql.get(at + NAME.len()..).unwrap_or_default();
        let behind = behind.strip_prefix('"').unwrap_or(behind).trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') && behind.starts_with('.')
    };
    let named = sql.match_indices(NAME).any(is_named);
    named || (sql.contains("schema") && sql.contains(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_schema_is_known_by_its_name() {
        for sql in [
            "DELETE FROM pointsman.task",
            "DELETE FROM \"pointsman\".\"task\"",
            "UPDATE Pointsman . task SET phase = 3",
            "DROP SCHEMA pointsman CASCADE",
        ] {
            assert!(names_our_schema(sql), "{sql}");
        }
        for sql in
            ["INSERT INTO t VALUES ('pointsman')", "DELETE FROM my_pointsman.task", "DROP SCHEMA other"]
        {
            assert!(!names_our_schema(sql), "{sql}");
        }
    }
}
