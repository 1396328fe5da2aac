//! Runs the statements of a unit of work.

use pointsman_store::sql::{CommentNesting, SqlError, SqlRow, SqlTransaction, SqlValue, parse_first_keyword};
use tokio::runtime::Handle;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use super::value::{BoundValue, read_sql_value, unspecified_type};
use crate::error::DriverError;
use crate::session::Session;

/// The keywords that a statement may start with: those of statements that neither end the transaction nor change the
/// session.
const ALLOWED_FIRST_KEYWORDS: [&str; 20] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE", "CREATE", "ALTER", "DROP",
    "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "LOCK", "CALL", "DO", "REFRESH", "ANALYZE",
];
/// The keywords of statements that only read, and therefore may name the store's tables.
const READ_ONLY_FIRST_KEYWORDS: [&str; 3] = ["SELECT", "TABLE", "VALUES"];

/// A transaction whose statements block the thread that runs the unit of work.
pub(super) struct BlockingTransaction<'a> {
    session: &'a Session,
    runtime: &'a Handle,
    has_failed: bool,
}

impl<'a> BlockingTransaction<'a> {
    pub(super) fn new(session: &'a Session, runtime: &'a Handle) -> Self {
        Self { session, runtime, has_failed: false }
    }

    /// True after a failed statement: the database rejects all further statements of this transaction.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Blocks until the database has responded; records a failure.
    fn block_on<T>(&mut self, response: impl Future<Output = Result<T, Error>>) -> Result<T, SqlError> {
        self.runtime.block_on(response).map_err(|error| {
            self.has_failed = true;
            SqlError::StatementFailed(DriverError(error).into())
        })
    }

    /// Rejects statements that would end the transaction or write to the store's tables, and all after a failure.
    fn check_statement(&self, sql: &str) -> Result<(), SqlError> {
        if self.has_failed {
            return Err(SqlError::RolledBack);
        }
        let keyword = parse_first_keyword(sql, CommentNesting::Nested);
        if !ALLOWED_FIRST_KEYWORDS.contains(&keyword.as_str()) {
            return Err(SqlError::TransactionControl(if keyword.is_empty() {
                "this".into()
            } else {
                keyword
            }));
        }
        if !READ_ONLY_FIRST_KEYWORDS.contains(&keyword.as_str()) && mentions_store_schema(sql) {
            return Err(SqlError::StoreTablesReadOnly);
        }
        Ok(())
    }
}

impl SqlTransaction for BlockingTransaction<'_> {
    fn execute(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<usize, SqlError> {
        self.check_statement(sql)?;
        let (session, bound) = (self.session, bind_values(parameters));
        let affected_rows =
            self.block_on(session.execute_unprepared(sql, &with_unspecified_types(&bound)))?;
        Ok(usize::try_from(affected_rows).unwrap_or(usize::MAX))
    }

    fn query(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<Vec<SqlRow>, SqlError> {
        self.check_statement(sql)?;
        let (session, bound) = (self.session, bind_values(parameters));
        let rows = self.block_on(session.query_unprepared(sql, &with_unspecified_types(&bound)))?;
        let to_sql_row = |row: &tokio_postgres::Row| {
            let values =
                row.columns().iter().enumerate().map(|(index, column)| read_sql_value(row, index, column));
            values.collect::<Result<_, _>>().map(SqlRow::new)
        };
        rows.iter().map(to_sql_row).collect()
    }
}

fn bind_values(parameters: &[SqlValue]) -> Vec<BoundValue<'_>> {
    parameters.iter().map(BoundValue).collect()
}

fn with_unspecified_types<'a>(bound: &'a [BoundValue<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    bound.iter().map(|value| (value as &(dyn ToSql + Sync), unspecified_type())).collect()
}

/// True if the statement names the schema `pointsman`: the word, quoted or not, followed by a dot.
fn mentions_store_schema(sql: &str) -> bool {
    const SCHEMA_NAME: &str = "pointsman";
    let sql = sql.to_ascii_lowercase();
    let is_named = |(at, _): (usize, &str)| {
        let before = sql.get(..at).and_then(|before| before.chars().next_back());
        let rest = sql.get(at + SCHEMA_NAME.len()..).unwrap_or_default();
        let rest = rest.strip_prefix('"').unwrap_or(rest).trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') && rest.starts_with('.')
    };
    let has_qualified_name = sql.match_indices(SCHEMA_NAME).any(is_named);
    has_qualified_name || (sql.contains("schema") && sql.contains(SCHEMA_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_schema_is_recognized_by_its_name() {
        for sql in [
            "DELETE FROM pointsman.task",
            "DELETE FROM \"pointsman\".\"task\"",
            "UPDATE Pointsman . task SET phase = 3",
            "DROP SCHEMA pointsman CASCADE",
        ] {
            assert!(mentions_store_schema(sql), "{sql}");
        }
        for sql in
            ["INSERT INTO t VALUES ('pointsman')", "DELETE FROM my_pointsman.task", "DROP SCHEMA other"]
        {
            assert!(!mentions_store_schema(sql), "{sql}");
        }
    }
}
