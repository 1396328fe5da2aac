//! The unit of work: a program's own writes and its events in one transaction, on a connection of its own.
//!
//! The events are left in the outbox, as `pointsman.emit` does it, so that a unit neither waits for the right to write
//! nor keeps others from it, however long it takes. They get their ids when a node sequences them.

mod events;
mod transaction;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::store::{self, StoreError};
use pointsman_core::{EventId, NewEvent};
use pointsman_store::sql::{BoxError, Sql, SqlError, TransactError, panicked};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::Postgres;
use crate::connect::Endpoint;
use crate::error::{error_text, to_store_error};
use crate::rows::read_column;
use crate::session::{Session, query};
use events::EmittedEvents;
use transaction::BlockingTransaction;

/// So many units of work at most run at a time.
const MAX_CONCURRENT: usize = 8;
/// How long it is tried to learn what became of a commit whose answer was lost.
const COMMIT_CHECK_TIMEOUT: Duration = Duration::from_secs(10);
const COMMIT_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// What `DISCARD ALL` does, but for the statements that are prepared.
const RESET_SESSION: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD SEQUENCES; DISCARD TEMP";

/// A commit is durable when it is answered, whatever the server's default, as the writer's are.
const BEGIN: &str = "BEGIN; SELECT set_config('synchronous_commit', 'on', true) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local')";

type WorkResult = std::result::Result<Vec<NewEvent>, BoxError>;

/// Connections for units of work.
#[derive(Clone, Debug)]
pub(crate) struct UnitOfWorkPool {
    endpoint: Arc<Endpoint>,
    idle: Arc<Mutex<Vec<Session>>>,
    permits: Arc<Semaphore>,
}

impl Postgres {
    /// Runs `work` and emits the events that it returns, in one transaction; answers with a receipt for each. If it fails
    /// or panics, nothing has happened.
    pub async fn transact<F>(&self, work: F) -> std::result::Result<Vec<Uuid>, TransactError>
    where
        F: FnOnce(&mut dyn Sql) -> WorkResult + Send + 'static,
    {
        self.units_of_work.clone().transact(work).await
    }

    /// The id of the event that a receipt stands for; none as long as it has none.
    pub async fn event_of(&self, receipt: Uuid) -> store::Result<Option<EventId>> {
        let read = self.pool.read_statement(receipt, |session, receipt| {
            Box::pin(async move {
                let rows = session.query(query!("read/event_of_receipt", UUID), &[receipt]).await?;
                let id: Option<i64> = rows.first().map_or(Ok(None), |row| read_column(row, 0))?;
                Ok(id.map(EventId::from_i64))
            })
        });
        read.await
    }
}

impl UnitOfWorkPool {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, idle: Arc::default(), permits: Arc::new(Semaphore::new(MAX_CONCURRENT)) }
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        self.lock_idle().clear();
    }

    async fn transact<F>(self, work: F) -> std::result::Result<Vec<Uuid>, TransactError>
    where
        F: FnOnce(&mut dyn Sql) -> WorkResult + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let session = self.take_session().await?;
        let units = self.clone();
        // Operations wait for their statements, as no task may.
        let (runtime, inner) = (Handle::current(), Handle::current());
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let result = run_work(&session, &inner, work);
            runtime.block_on(units.finish_transaction(session, result))
        });
        done.await.unwrap_or_else(|error| Err(TransactError::Work(error.into())))
    }

    /// Commits what went well, and rolls back what did not.
    async fn finish_transaction(
        &self,
        session: Session,
        result: std::result::Result<Vec<NewEvent>, TransactError>,
    ) -> std::result::Result<Vec<Uuid>, TransactError> {
        let events = match result {
            Ok(events) => events,
            Err(error) => {
                self.return_session(session, "ROLLBACK").await;
                return Err(error);
            }
        };
        let EmittedEvents { receipts, transaction_id } =
            match events::write_to_outbox(&session, &events).await {
                Ok(emitted) => emitted,
                Err(error) => {
                    self.return_session(session, "ROLLBACK").await;
                    return Err(TransactError::Store(to_store_error(&error.into())));
                }
            };
        match session.execute_batch("COMMIT").await {
            Ok(()) => {
                // Whoever waits need not wait for this.
                let units = self.clone();
                tokio::spawn(async move { units.return_session(session, "").await });
                Ok(receipts)
            }
            // Something that was put off to the end has failed, such as a constraint that is checked there.
            Err(error) if !session.is_closed() && error.code().is_some() => {
                Err(TransactError::Work(SqlError::Refused(error_text(&error)).into()))
            }
            Err(error) => {
                self.resolve_lost_commit(transaction_id, &error_text(&error)).await.map(|()| receipts)
            }
        }
    }

    /// The answer to a commit was lost: the database is asked what became of it.
    async fn resolve_lost_commit(
        &self,
        transaction_id: Option<String>,
        reason: &str,
    ) -> std::result::Result<(), TransactError> {
        let Some(transaction_id) = transaction_id else { return Ok(()) };
        let check = async {
            loop {
                match self.read_transaction_status(&transaction_id).await.as_deref() {
                    Some("committed") => return Ok(()),
                    Some("aborted") => return Err(StoreError::Unavailable(reason.into()).into()),
                    _ => tokio::time::sleep(COMMIT_CHECK_INTERVAL).await,
                }
            }
        };
        let unknown = |_| Err(TransactError::Unknown(reason.into()));
        tokio::time::timeout(COMMIT_CHECK_TIMEOUT, check).await.unwrap_or_else(unknown)
    }

    async fn read_transaction_status(&self, transaction_id: &str) -> Option<String> {
        let session = self.endpoint.connect_with_timeout().await.ok()?;
        let rows =
            session.query(query!("unit_of_work/transaction_status", TEXT), &[&transaction_id]).await.ok()?;
        rows.first().and_then(|row| row.get(0))
    }

    async fn take_session(&self) -> std::result::Result<Session, StoreError> {
        let unavailable = |reason: String| StoreError::Unavailable(reason);
        loop {
            let idle = {
                let mut idle = self.lock_idle();
                idle.retain(|session| !session.is_closed());
                idle.pop()
            };
            let (session, is_new) = match idle {
                Some(session) => (session, false),
                None => {
                    let connected = self.endpoint.connect_with_timeout().await;
                    (connected.map_err(|error| unavailable(error.to_string()))?, true)
                }
            };
            match session.execute_batch(BEGIN).await {
                Ok(()) => return Ok(session),
                Err(error) if is_new => return Err(unavailable(error_text(&error))),
                // It broke while it was idle.
                Err(_) => {}
            }
        }
    }

    /// Ends what is left of a transaction, and leaves nothing on the connection of what the program did to it.
    async fn return_session(&self, session: Session, sql: &'static str) {
        let reset = if session.is_pooled() { "" } else { RESET_SESSION };
        for sql in [sql, reset] {
            if !sql.is_empty() && session.execute_batch(sql).await.is_err() {
                return;
            }
        }
        if !self.permits.is_closed() {
            self.lock_idle().push(session);
        }
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the work on a thread that may wait.
fn run_work<F>(
    session: &Session,
    runtime: &Handle,
    work: F,
) -> std::result::Result<Vec<NewEvent>, TransactError>
where
    F: FnOnce(&mut dyn Sql) -> WorkResult,
{
    let mut tx = BlockingTransaction::new(session, runtime);
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut tx)));
    let is_failed = tx.is_failed();
    let result = result.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
    if session.is_closed() {
        return Err(StoreError::Unavailable("the connection to PostgreSQL was lost".into()).into());
    }
    match result {
        // It made nothing of a statement that failed; but the database did.
        Ok(_) if is_failed => Err(TransactError::Work(SqlError::RolledBack.into())),
        result => result.map_err(TransactError::Work),
    }
}
