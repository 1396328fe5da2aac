//! The unit of work: a program's own writes and its events in one transaction.

use std::panic::AssertUnwindSafe;

use pointsman_core::store::EmitReceipt;
use pointsman_core::{NewEvent, Timestamp};
use pointsman_store::sql::{
    BoxError, CommentNesting, SqlError, SqlRow, SqlTransaction, SqlValue, TransactError, contains_word,
    error_from_panic, parse_first_keyword,
};
use pointsman_store::{PendingClaim, Txn};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use crate::Sqlite;
use crate::error::TableResult;
use crate::tables::SqliteTables;

/// The store's own transaction, as a program uses it. Programs may keep their tables in the same file, under any name
/// that does not begin with `pointsman_`.
struct UnitOfWorkTransaction<'a> {
    conn: &'a Connection,
}

impl SqlTransaction for UnitOfWorkTransaction<'_> {
    fn execute(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<usize, SqlError> {
        self.prepare_checked(sql)?.execute(bind_values(parameters)).map_err(to_sql_error)
    }

    fn query(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<Vec<SqlRow>, SqlError> {
        let mut statement = self.prepare_checked(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(bind_values(parameters)).map_err(to_sql_error)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(to_sql_error)? {
            let values = (0..columns).map(|column| row.get_ref(column).map(value_from_sqlite));
            found.push(SqlRow::new(values.collect::<rusqlite::Result<_>>().map_err(to_sql_error)?));
        }
        Ok(found)
    }
}

impl UnitOfWorkTransaction<'_> {
    /// Prepares a statement. Refuses statements that would end the shared transaction or change the store's tables.
    fn prepare_checked(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, SqlError> {
        let keyword = parse_first_keyword(sql, CommentNesting::Flat);
        if FORBIDDEN_STATEMENTS.contains(&keyword.as_str()) {
            return Err(SqlError::TransactionControl(keyword));
        }
        // The transaction has ended if a trigger or a table's conflict clause has rolled it back.
        if self.conn.is_autocommit() {
            return Err(SqlError::RolledBack);
        }
        let statement = self.conn.prepare_cached(sql).map_err(to_sql_error)?;
        if !statement.readonly() {
            if sql.to_ascii_lowercase().contains("pointsman_") {
                return Err(SqlError::StoreTablesReadOnly);
            }
            // As a conflict clause, ROLLBACK would undo the writes of other jobs in the same transaction.
            if contains_word(sql, "rollback") {
                return Err(SqlError::TransactionControl("ROLLBACK".into()));
            }
        }
        Ok(statement)
    }
}

/// Statements that would end the shared transaction or change the connection.
const FORBIDDEN_STATEMENTS: [&str; 10] =
    ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "ATTACH", "DETACH", "VACUUM"];

impl Sqlite {
    /// Runs `work` and journals the events it returns, in one transaction. If it fails or panics, nothing is written.
    pub async fn transact<F>(&self, work: F, now: Timestamp) -> Result<EmitReceipt, TransactError>
    where
        F: FnOnce(&mut dyn SqlTransaction) -> Result<Vec<NewEvent>, BoxError> + Send + 'static,
    {
        let outcome = self.writer.run_in_transaction(move |txn| run_unit_of_work(txn, work, now)).await?;
        outcome.map_err(TransactError::WorkFailed)
    }
}

/// Runs the work in a savepoint, so that its failure does not undo the writes of other jobs in the same transaction.
fn run_unit_of_work<F>(
    txn: &mut Txn<'_, SqliteTables>,
    work: F,
    now: Timestamp,
) -> TableResult<Result<EmitReceipt, BoxError>>
where
    F: FnOnce(&mut dyn SqlTransaction) -> Result<Vec<NewEvent>, BoxError>,
{
    let conn = txn.tables.conn();
    conn.execute_batch("SAVEPOINT unit")?;
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(&mut UnitOfWorkTransaction { conn })));
    let result = result.unwrap_or_else(|panic| Err(error_from_panic(panic.as_ref())));
    match result {
        Ok(events) => {
            conn.execute_batch("RELEASE unit")?;
            let events = txn.append_events(events, &mut PendingClaim::default(), now)?;
            Ok(Ok(EmitReceipt { events, repeated: false }))
        }
        Err(error) => {
            conn.execute_batch("ROLLBACK TO unit; RELEASE unit")?;
            Ok(Err(error))
        }
    }
}

fn to_sql_error(error: rusqlite::Error) -> SqlError {
    SqlError::StatementFailed(error.into())
}

/// A parameter of a statement.
struct BoundValue<'a>(&'a SqlValue);

impl ToSql for BoundValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Integer(number) => ValueRef::Integer(*number),
            SqlValue::Real(number) => ValueRef::Real(*number),
            SqlValue::Text(text) => ValueRef::Text(text.as_bytes()),
            SqlValue::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn bind_values(values: &[SqlValue]) -> impl rusqlite::Params {
    rusqlite::params_from_iter(values.iter().map(BoundValue))
}

fn value_from_sqlite(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}
