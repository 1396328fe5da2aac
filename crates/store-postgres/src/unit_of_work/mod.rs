//! Units of work: a program's own writes and its events in one transaction, on a separate connection.
//!
//! The events are written to the outbox, as `pointsman.emit` does, so that a unit of work neither waits for the write
//! lock nor keeps it, however long it runs. The events get their ids when a node drains the outbox.

mod events;
mod transaction;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::store::{StoreError, StoreResult};
use pointsman_core::{EventId, NewEvent};
use pointsman_store::sql::{BoxError, SqlError, SqlTransaction, TransactError, error_from_panic};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::Postgres;
use crate::connect::Endpoint;
use crate::error::{DriverError, to_store_error};
use crate::rows::read_column;
use crate::session::{Session, query};
use events::EmitReceipts;
use transaction::BlockingTransaction;

/// Limit of concurrent units of work.
const MAX_CONCURRENT_UNITS: usize = 8;
/// For this long the outcome of a commit is queried whose reply was lost.
const COMMIT_CHECK_TIMEOUT: Duration = Duration::from_secs(10);
const COMMIT_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Resets a session as `DISCARD ALL` does, but keeps its prepared statements.
const RESET_SESSION_SQL: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD SEQUENCES; DISCARD TEMP";

/// Makes the commit durable whatever the server's default is, as the writer's commits are.
const BEGIN_DURABLE: &str = "BEGIN; SELECT set_config('synchronous_commit', 'on', true) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// The result of a program's work: the events to emit.
type UnitOfWorkResult = Result<Vec<NewEvent>, BoxError>;

/// A pool of connections for units of work, with a limit of concurrent ones. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct UnitOfWorkPool {
    endpoint: Arc<Endpoint>,
    idle_sessions: Arc<Mutex<Vec<Session>>>,
    permits: Arc<Semaphore>,
}

impl Postgres {
    /// Runs `work` and emits the events that it returns, in one transaction; returns a receipt for each event. If
    /// `work` fails or panics, nothing is stored.
    pub async fn transact<F>(&self, work: F) -> Result<Vec<Uuid>, TransactError>
    where
        F: FnOnce(&mut dyn SqlTransaction) -> UnitOfWorkResult + Send + 'static,
    {
        self.unit_of_work_pool.clone().transact(work).await
    }

    /// Returns the id of the event of a receipt; none while the row is in the outbox, or if it was set aside.
    pub async fn find_event_of_receipt(&self, receipt: Uuid) -> StoreResult<Option<EventId>> {
        let read = self.session_pool.run_single_statement(receipt, |session, receipt| {
            Box::pin(async move {
                let rows = session.query(query!("outbox/find_event_of_receipt", UUID), &[receipt]).await?;
                let id: Option<i64> = rows.first().map_or(Ok(None), |row| read_column(row, 0))?;
                Ok(id.map(EventId::from_i64))
            })
        });
        read.await
    }
}

impl UnitOfWorkPool {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            idle_sessions: Arc::default(),
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_UNITS)),
        }
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        self.lock_idle_sessions().clear();
    }

    async fn transact<F>(self, work: F) -> Result<Vec<Uuid>, TransactError>
    where
        F: FnOnce(&mut dyn SqlTransaction) -> UnitOfWorkResult + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let session = self.take_session_and_begin().await?;
        let pool = self.clone();
        // The work blocks on its statements, which a future of the runtime must not do.
        let (runtime, work_runtime) = (Handle::current(), Handle::current());
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let result = run_work_and_catch_panic(&session, &work_runtime, work);
            runtime.block_on(pool.finish_transaction(session, result))
        });
        done.await.unwrap_or_else(|error| Err(TransactError::WorkFailed(error.into())))
    }

    /// Commits a successful unit of work and rolls back a failed one.
    async fn finish_transaction(
        &self,
        session: Session,
        result: Result<Vec<NewEvent>, TransactError>,
    ) -> Result<Vec<Uuid>, TransactError> {
        let events = match result {
            Ok(events) => events,
            Err(error) => {
                self.return_session(session, "ROLLBACK").await;
                return Err(error);
            }
        };
        let EmitReceipts { receipts, transaction_id } = match events::write_to_outbox(&session, &events).await
        {
            Ok(emitted) => emitted,
            Err(error) => {
                self.return_session(session, "ROLLBACK").await;
                return Err(TransactError::Store(to_store_error(error.into())));
            }
        };
        match session.execute_batch("COMMIT").await {
            Ok(()) => {
                // The caller need not wait for the cleanup.
                let pool = self.clone();
                tokio::spawn(async move { pool.return_session(session, "").await });
                Ok(receipts)
            }
            // The database has rejected the commit, for instance because of a deferred constraint.
            Err(error) if !session.is_closed() && error.code().is_some() => {
                Err(TransactError::WorkFailed(SqlError::StatementFailed(DriverError(error).into()).into()))
            }
            Err(error) => self
                .wait_for_outcome_of_lost_commit(transaction_id, DriverError(error))
                .await
                .map(|()| receipts),
        }
    }

    /// Queries the outcome of a commit whose reply was lost, on other connections, until it is known.
    async fn wait_for_outcome_of_lost_commit(
        &self,
        transaction_id: Option<String>,
        cause: DriverError,
    ) -> Result<(), TransactError> {
        let Some(transaction_id) = transaction_id else { return Ok(()) };
        let poll_until_known = async {
            loop {
                match self.read_transaction_status(&transaction_id).await.as_deref() {
                    Some("committed") => return true,
                    Some("aborted") => return false,
                    _ => tokio::time::sleep(COMMIT_CHECK_INTERVAL).await,
                }
            }
        };
        match tokio::time::timeout(COMMIT_CHECK_TIMEOUT, poll_until_known).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::unavailable(cause).into()),
            Err(_) => Err(TransactError::OutcomeUnknown(cause.into())),
        }
    }

    async fn read_transaction_status(&self, transaction_id: &str) -> Option<String> {
        let session = self.endpoint.connect_with_timeout().await.ok()?;
        let rows = session
            .query(query!("unit_of_work/read_transaction_status", TEXT), &[&transaction_id])
            .await
            .ok()?;
        rows.first().and_then(|row| row.get(0))
    }

    /// Takes an idle connection, or opens one, and begins a transaction on it.
    async fn take_session_and_begin(&self) -> Result<Session, StoreError> {
        loop {
            let idle = {
                let mut idle = self.lock_idle_sessions();
                idle.retain(|session| !session.is_closed());
                idle.pop()
            };
            let (session, is_new) = match idle {
                Some(session) => (session, false),
                None => {
                    let connected = self.endpoint.connect_with_timeout().await;
                    (connected.map_err(StoreError::unavailable)?, true)
                }
            };
            match session.execute_batch(BEGIN_DURABLE).await {
                Ok(()) => return Ok(session),
                Err(error) if is_new => return Err(StoreError::unavailable(DriverError(error))),
                // The idle connection was closed; try another.
                Err(_) => {}
            }
        }
    }

    /// Runs `end_sql`, which ends the transaction if one is open, resets what the program changed in the session, and
    /// keeps the connection as an idle one. Drops the connection if that fails.
    async fn return_session(&self, session: Session, end_sql: &'static str) {
        let reset_sql = if session.is_behind_pooler() { "" } else { RESET_SESSION_SQL };
        for sql in [end_sql, reset_sql] {
            if !sql.is_empty() && session.execute_batch(sql).await.is_err() {
                return;
            }
        }
        if !self.permits.is_closed() {
            self.lock_idle_sessions().push(session);
        }
    }

    fn lock_idle_sessions(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the work, which blocks this thread, and turns a panic into an error.
fn run_work_and_catch_panic<F>(
    session: &Session,
    runtime: &Handle,
    work: F,
) -> Result<Vec<NewEvent>, TransactError>
where
    F: FnOnce(&mut dyn SqlTransaction) -> UnitOfWorkResult,
{
    let mut tx = BlockingTransaction::new(session, runtime);
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut tx)));
    let has_failed = tx.has_failed();
    let result = result.unwrap_or_else(|panic| Err(error_from_panic(panic.as_ref())));
    if session.is_closed() {
        return Err(StoreError::unavailable("the connection to PostgreSQL was lost").into());
    }
    match result {
        // The work ignored a failed statement, after which the database has aborted the transaction.
        Ok(_) if has_failed => Err(TransactError::WorkFailed(SqlError::RolledBack.into())),
        result => result.map_err(TransactError::WorkFailed),
    }
}
