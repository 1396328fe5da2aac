//! The unit of work: a program's own writes and its events in one transaction, on a connection of its own.
//!
//! The events are left in the outbox, as `pointsman.emit` does it, so that a unit neither waits for the right to write
//! nor keeps others from it, however long it takes. They get their ids when a node sequences them.

mod events;
mod tx;
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
use crate::error::{explain, reason};
use crate::rows::get;
use crate::session::{Session, query};
use events::Left;
use tx::Tx;

/// So many units of work at most run at a time.
const AT_ONCE: usize = 8;
/// How long it is tried to learn what became of a commit whose answer was lost.
const ASK_FOR: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// What `DISCARD ALL` does, but for the statements that are prepared.
const CLEAN: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD SEQUENCES; DISCARD TEMP";

/// A commit is durable when it is answered, whatever the server's default, as the writer's are.
const BEGIN: &str = "BEGIN; SELECT set_config('synchronous_commit', 'on', true) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local')";

type Worked = std::result::Result<Vec<NewEvent>, BoxError>;

/// Connections for units of work.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    endpoint: Arc<Endpoint>,
    idle: Arc<Mutex<Vec<Session>>>,
    permits: Arc<Semaphore>,
}

impl Postgres {
    /// Runs `work` and emits the events that it returns, in one transaction; answers with a receipt for each. If it fails
    /// or panics, nothing has happened.
    pub async fn transact<F>(&self, work: F) -> std::result::Result<Vec<Uuid>, TransactError>
    where
        F: FnOnce(&mut dyn Sql) -> Worked + Send + 'static,
    {
        self.units.clone().transact(work).await
    }

    /// The id of the event that a receipt stands for; none as long as it has none.
    pub async fn event_of(&self, receipt: Uuid) -> store::Result<Option<EventId>> {
        let read = self.pool.glance(receipt, |session, receipt| {
            Box::pin(async move {
                let rows = session.query(query!("read/event_of", UUID), &[receipt]).await?;
                let id: Option<i64> = rows.first().map_or(Ok(None), |row| get(row, 0))?;
                Ok(id.map(EventId::from_i64))
            })
        });
        read.await
    }
}

impl Units {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, idle: Arc::default(), permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        self.lock().clear();
    }

    async fn transact<F>(self, work: F) -> std::result::Result<Vec<Uuid>, TransactError>
    where
        F: FnOnce(&mut dyn Sql) -> Worked + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let session = self.take().await?;
        let units = self.clone();
        // Operations wait for their statements, as no task may.
        let (runtime, inner) = (Handle::current(), Handle::current());
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let worked = run(&session, &inner, work);
            runtime.block_on(units.settle(session, worked))
        });
        done.await.unwrap_or_else(|error| Err(TransactError::Work(error.into())))
    }

    /// Commits what went well, and rolls back what did not.
    async fn settle(
        &self,
        session: Session,
        worked: std::result::Result<Vec<NewEvent>, TransactError>,
    ) -> std::result::Result<Vec<Uuid>, TransactError> {
        let events = match worked {
            Ok(events) => events,
            Err(error) => {
                self.give_back(session, "ROLLBACK").await;
                return Err(error);
            }
        };
        let Left { receipts, number } = match events::leave(&session, &events).await {
            Ok(left) => left,
            Err(error) => {
                self.give_back(session, "ROLLBACK").await;
                return Err(TransactError::Store(explain(&error.into())));
            }
        };
        match session.batch("COMMIT").await {
            Ok(()) => {
                // Whoever waits need not wait for this.
                let units = self.clone();
                tokio::spawn(async move { units.give_back(session, "").await });
                Ok(receipts)
            }
            // Something that was put off to the end has failed, such as a constraint that is checked there.
            Err(error) if !session.is_closed() && error.code().is_some() => {
                Err(TransactError::Work(SqlError::Refused(reason(&error)).into()))
            }
            Err(error) => self.learn(number, &reason(&error)).await.map(|()| receipts),
        }
    }

    /// The answer to a commit was lost: the database is asked what became of it.
    async fn learn(&self, number: Option<String>, why: &str) -> std::result::Result<(), TransactError> {
        let Some(number) = number else { return Ok(()) };
        let asking = async {
            loop {
                match self.status(&number).await.as_deref() {
                    Some("committed") => return Ok(()),
                    Some("aborted") => return Err(StoreError::Unavailable(why.into()).into()),
                    _ => tokio::time::sleep(ASK_AGAIN).await,
                }
            }
        };
        let unknown = |_| Err(TransactError::Unknown(why.into()));
        tokio::time::timeout(ASK_FOR, asking).await.unwrap_or_else(unknown)
    }

    async fn status(&self, number: &str) -> Option<String> {
        let session = self.endpoint.connect_in_time().await.ok()?;
        let rows = session.query(query!("unit/status", TEXT), &[&number]).await.ok()?;
        rows.first().and_then(|row| row.get(0))
    }

    async fn take(&self) -> std::result::Result<Session, StoreError> {
        let unavailable = |reason: String| StoreError::Unavailable(reason);
        loop {
            let idle = {
                let mut idle = self.lock();
                idle.retain(|session| !session.is_closed());
                idle.pop()
            };
            let (session, fresh) = match idle {
                Some(session) => (session, false),
                None => {
                    let connected = self.endpoint.connect_in_time().await;
                    (connected.map_err(|error| unavailable(error.to_string()))?, true)
                }
            };
            match session.batch(BEGIN).await {
                Ok(()) => return Ok(session),
                Err(error) if fresh => return Err(unavailable(reason(&error))),
                // It broke while it was idle.
                Err(_) => {}
            }
        }
    }

    /// Ends what is left of a transaction, and leaves nothing on the connection of what the program did to it.
    async fn give_back(&self, session: Session, word: &'static str) {
        let clean = if session.is_pooled() { "" } else { CLEAN };
        for word in [word, clean] {
            if !word.is_empty() && session.batch(word).await.is_err() {
                return;
            }
        }
        if !self.permits.is_closed() {
            self.lock().push(session);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the work on a thread that may wait.
fn run<F>(session: &Session, runtime: &Handle, work: F) -> std::result::Result<Vec<NewEvent>, TransactError>
where
    F: FnOnce(&mut dyn Sql) -> Worked,
{
    let mut tx = Tx::new(session, runtime);
    let worked = catch_unwind(AssertUnwindSafe(|| work(&mut tx)));
    let broken = tx.is_broken();
    let worked = worked.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
    if session.is_closed() {
        return Err(StoreError::Unavailable("the connection to PostgreSQL broke".into()).into());
    }
    match worked {
        // It made nothing of a statement that failed; but the database did.
        Ok(_) if broken => Err(TransactError::Work(SqlError::RolledBack.into())),
        worked => worked.map_err(TransactError::Work),
    }
}
