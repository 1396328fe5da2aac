//! The writer's connection: driven by the writer's own thread, with pipelined statements.

use std::future::Future;
use std::time::Duration;

use futures::future::{BoxFuture, try_join_all};
use pointsman_store::columns::Columns;
use pointsman_store::error::{Fault, TableResult};
use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::column_arrays::ColumnArrays;
use crate::pool::SessionPool;
use crate::session::{Query, Session};

/// An owned statement parameter.
pub(crate) type BoxedParam = Box<dyn ToSql + Sync + Send>;

/// A command of the writer.
pub(crate) enum SqlCommand {
    /// Statements without parameters and results, separated by semicolons.
    Batch(&'static str),
    /// A prepared query with its parameters.
    Query(&'static Query, Vec<BoxedParam>),
}

impl SqlCommand {
    /// A query whose last parameters are the arrays of the columns of these rows.
    pub(crate) fn query_with_rows<'a, C: Columns<'a>>(
        query: &'static Query,
        mut params: Vec<BoxedParam>,
        rows: impl IntoIterator<Item = C>,
    ) -> Self {
        let mut arrays = ColumnArrays::new(C::COLUMNS, query.array_columns);
        rows.into_iter().for_each(|row| row.write_cells(&mut arrays));
        params.extend(arrays.into_params());
        Self::Query(query, params)
    }
}

/// Boxes the parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::writer_connection::BoxedParam),*] };
}
pub(crate) use params;

/// Response timeout, after which statements fail. Longer than the wait for the write lock, and shorter than a
/// node's lease.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// The connection of the writer, opened when it is needed. Its methods block until the server has responded.
pub(crate) struct WriterConnection {
    runtime: Runtime,
    pool: SessionPool,
    session: Option<Session>,
}

impl WriterConnection {
    pub(crate) fn new(pool: SessionPool) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, pool, session: None })
    }

    /// Opens a connection if there is none; returns whether it was opened by this call.
    pub(crate) fn ensure_open(&mut self) -> TableResult<bool> {
        let is_open = self.session.as_ref().is_some_and(|session| !session.is_closed());
        if !is_open {
            self.session = Some(self.block_on_with_timeout(self.pool.connect_writer())?);
        }
        Ok(!is_open)
    }

    /// True if each transaction may get another connection.
    pub(crate) fn is_behind_pooler(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_behind_pooler)
    }

    /// Closes the connection, if there is one, which aborts its transaction. Waits until the server is informed:
    /// nothing drives the I/O until the next statement, and other nodes may wait for the transaction's locks.
    pub(crate) fn disconnect(&mut self) {
        if let Some(session) = self.session.take() {
            self.runtime.block_on(session.close());
        }
    }

    /// Sends all commands at once and returns their results. The first failure fails all.
    pub(crate) fn send_commands(&self, commands: &[SqlCommand]) -> TableResult<Vec<Vec<Row>>> {
        let session = self.session.as_ref().ok_or_else(|| Fault::from(NotConnectedError))?;
        self.block_on_with_timeout::<_, Error>(async {
            for command in commands {
                if let SqlCommand::Query(query, _) = command {
                    session.prepare(query).await?;
                }
            }
            // A command is sent when its future is first polled, and the futures are polled in their order.
            try_join_all(commands.iter().map(|command| execute_command(session, command))).await
        })
    }

    /// Runs a future that sends statements one after the other.
    pub(crate) fn run_on_session<T>(
        &self,
        work: impl for<'s> FnOnce(&'s Session) -> BoxFuture<'s, TableResult<T>>,
    ) -> TableResult<T> {
        let session = self.session.as_ref().ok_or_else(|| Fault::from(NotConnectedError))?;
        self.block_on_with_timeout(work(session))
    }

    fn block_on_with_timeout<T, E: Into<Fault>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> TableResult<T> {
        self.runtime.block_on(async {
            match tokio::time::timeout(RESPONSE_TIMEOUT, work).await {
                Ok(done) => done.map_err(Into::into),
                Err(_) => Err(Fault::from(ResponseTimeoutError)),
            }
        })
    }
}

fn execute_command<'a>(
    session: &'a Session,
    command: &'a SqlCommand,
) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
    Box::pin(async move {
        match command {
            SqlCommand::Batch(sql) => session.execute_batch(sql).await.map(|()| Vec::new()),
            SqlCommand::Query(query, params) => {
                let params: Vec<&(dyn ToSql + Sync)> =
                    params.iter().map(|param| param.as_ref() as &(dyn ToSql + Sync)).collect();
                session.query(query, &params).await
            }
        }
    })
}

#[derive(Debug, thiserror::Error)]
#[error("not connected to PostgreSQL")]
struct NotConnectedError;

#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL did not respond within {} s", RESPONSE_TIMEOUT.as_secs())]
struct ResponseTimeoutError;
