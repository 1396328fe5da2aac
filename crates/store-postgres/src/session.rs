//! A connection with its prepared statements.
//!
//! Statements are prepared once per connection. Behind a pooler in transaction mode each transaction may get another
//! connection, which lacks the prepared statements, so statements are sent unprepared there.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use pointsman_store::columns::Column;
use pointsman_store::expand_sql::is_text_at;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use crate::column_arrays::array_type_of_column;

/// A named query from a file in `sql/`, with the types of its parameters.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    /// The types of the first parameters.
    pub(crate) param_types: &'static [Type],
    /// The columns whose arrays are the other parameters.
    pub(crate) array_columns: &'static [Column],
}

/// Creates a [`Query`] for a named query: `query!("task/list_due_tasks", INT8, INT8)` is `list_due_tasks` in
/// `sql/task.sql`. The types of its parameters follow the name, in their order.
///
/// The last parameters may be the arrays of a row's columns: `query!("task/insert_tasks", ..ActiveTaskColumns)`, or
/// those of some columns, in the order in which the SQL numbers them:
/// `query!("task/lock_tasks", ..ActiveTaskColumns[seq, attempt, …])`.
macro_rules! query {
    ($name:literal $(, $param_type:ident)* $(, ..$columns:ident $([$($column:ident),* $(,)?])?)? $(,)?) => {{
        static QUERY: $crate::session::Query = $crate::session::Query {
            name: $name,
            sql: pointsman_store::expand_sql!($crate::queries::find_query($name)),
            param_types: &[$(tokio_postgres::types::Type::$param_type),*],
            array_columns: $crate::session::array_columns!($($columns $([$($column),*])?)?),
        };
        &QUERY
    }};
}
pub(crate) use query;

/// The columns whose arrays are parameters of a query.
macro_rules! array_columns {
    () => {
        &[]
    };
    ($columns:ident) => {
        <$columns as pointsman_store::columns::Columns>::COLUMNS
    };
    ($columns:ident [$($column:ident),*]) => {
        &$crate::session::select_columns(
            <$columns as pointsman_store::columns::Columns>::COLUMNS,
            [$(stringify!($column)),*],
        )
    };
}
pub(crate) use array_columns;

/// Returns the columns of these names. An unknown name is a compile error.
pub(crate) const fn select_columns<const N: usize>(columns: &[Column], names: [&str; N]) -> [Column; N] {
    let mut selected = [columns[0]; N];
    let mut index = 0;
    while index < N {
        let (name, mut at) = (names[index].as_bytes(), 0);
        while columns[at].name.len() != name.len() || !is_text_at(columns[at].name.as_bytes(), 0, name) {
            at += 1;
        }
        selected[index] = columns[at];
        index += 1;
    }
    selected
}

impl Query {
    fn all_param_types(&self) -> impl Iterator<Item = Type> {
        self.param_types.iter().cloned().chain(self.array_columns.iter().map(array_type_of_column))
    }

    /// Pairs each parameter with its type.
    pub(crate) fn with_param_types<'a>(
        &self,
        params: QueryParams<'a>,
    ) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
        params.iter().copied().zip(self.all_param_types()).collect()
    }
}

/// The parameters of a query.
pub(crate) type QueryParams<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Query parameters with their types.
pub(crate) type TypedParams<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// Timeout of closing a connection gracefully; then its I/O is aborted.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// A connection. Statements on it are prepared when they are first used.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    /// The spawned future that drives the connection's I/O; it ends when the client is dropped.
    io_handle: JoinHandle<()>,
    prepared_statements: Mutex<HashMap<&'static str, Statement>>,
    /// Statements must be sent unprepared.
    is_behind_pooler: bool,
}

impl Session {
    pub(crate) fn new(client: Client, io_handle: JoinHandle<()>, is_behind_pooler: bool) -> Self {
        Self { client, io_handle, prepared_statements: Mutex::default(), is_behind_pooler }
    }

    /// Closes the connection, which aborts its transaction, before it returns: the runtime that drives the connection
    /// may not run afterwards.
    pub(crate) async fn close(self) {
        let Self { client, mut io_handle, .. } = self;
        drop(client);
        // Without a timeout this would wait for a pending response, however long that takes.
        if tokio::time::timeout(CLOSE_TIMEOUT, &mut io_handle).await.is_err() {
            io_handle.abort();
            let _ = io_handle.await;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// True if statements must be sent unprepared, because the next transaction may get another connection.
    pub(crate) fn is_behind_pooler(&self) -> bool {
        self.is_behind_pooler
    }

    pub(crate) async fn query(
        &self,
        query: &'static Query,
        params: QueryParams<'_>,
    ) -> Result<Vec<Row>, Error> {
        if self.is_behind_pooler {
            return self.client.query_typed(query.sql, &query.with_param_types(params)).await;
        }
        let statement = self.get_or_prepare_statement(query).await?;
        self.client.query(&statement, params).await
    }

    pub(crate) async fn execute(&self, query: &'static Query, params: QueryParams<'_>) -> Result<u64, Error> {
        if self.is_behind_pooler {
            return self.client.execute_typed(query.sql, &query.with_param_types(params)).await;
        }
        let statement = self.get_or_prepare_statement(query).await?;
        self.client.execute(&statement, params).await
    }

    /// Runs a statement that is composed at run time, unprepared.
    pub(crate) async fn query_unprepared(
        &self,
        sql: &str,
        params: TypedParams<'_>,
    ) -> Result<Vec<Row>, Error> {
        self.client.query_typed(sql, params).await
    }

    pub(crate) async fn execute_unprepared(&self, sql: &str, params: TypedParams<'_>) -> Result<u64, Error> {
        self.client.execute_typed(sql, params).await
    }

    /// Prepares a statement ahead of its use; does nothing behind a pooler.
    pub(crate) async fn prepare(&self, query: &'static Query) -> Result<(), Error> {
        if !self.is_behind_pooler {
            self.get_or_prepare_statement(query).await?;
        }
        Ok(())
    }

    /// Executes statements without parameters, one after the other.
    pub(crate) async fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    async fn get_or_prepare_statement(&self, query: &'static Query) -> Result<Statement, Error> {
        let cached =
            self.prepared_statements.lock().unwrap_or_else(|e| e.into_inner()).get(query.name).cloned();
        if let Some(statement) = cached {
            return Ok(statement);
        }
        let param_types: Vec<Type> = query.all_param_types().collect();
        let statement = self.client.prepare_typed(query.sql, &param_types).await?;
        self.prepared_statements
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .insert(query.name, statement.clone());
        Ok(statement)
    }
}
