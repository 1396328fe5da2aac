//! A pool of read connections. They see the last commit and never wait for the writer.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, join};
use pointsman_core::store::{StoreError, StoreResult};
use pointsman_store::ReadOutageLog;
use pointsman_store::error::TableResult;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::connect::Endpoint;
use crate::error::{ConnectError, is_connection_lost, to_store_error};
use crate::session::Session;

/// Default limit of concurrent reads.
pub(crate) const MAX_CONCURRENT_READS: usize = 8;
/// Timeout of a read, and of waiting for a permit to read.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// For this long connecting is retried while the server has too many connections.
const CONNECT_RETRY_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(50);

const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// The same through a pooler, where session settings belong to other clients: see [`READ_SESSION_SETTINGS`].
const BEGIN_READ_BEHIND_POOLER: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; \
     SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; \
     SET LOCAL enable_mergejoin = off; SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0";
/// Tables grow faster than statistics follow, and a cached plan does not know how short a page is. So the planner must
/// use indexes in their order. On a journal of 600,000 events a page of 100 takes 0.2 ms this way, and 450 ms with the
/// planner's own choice.
const READ_SESSION_SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; \
     SET enable_mergejoin = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0; \
     SET plan_cache_mode = force_generic_plan";

/// A pool of connections that read, and of permits that limit concurrent reads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SessionPool {
    endpoint: Arc<Endpoint>,
    idle_sessions: Arc<Mutex<Vec<Session>>>,
    read_permits: Arc<Semaphore>,
    read_outage_log: Arc<ReadOutageLog>,
}

/// The consistency that a read needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadScope {
    /// A single statement, which sees one snapshot anyway.
    SingleStatement,
    /// A transaction, so that all statements see one snapshot.
    Transaction,
}

/// A function that reads with a connection and an input.
trait ReadFn<A, T>:
    for<'s> Fn(&'s Session, &'s A) -> BoxFuture<'s, TableResult<T>> + Send + Sync + 'static
{
}

impl<A, T, F> ReadFn<A, T> for F where
    F: for<'s> Fn(&'s Session, &'s A) -> BoxFuture<'s, TableResult<T>> + Send + Sync + 'static
{
}

impl SessionPool {
    pub(crate) fn new(endpoint: Arc<Endpoint>, max_concurrent_reads: usize) -> Self {
        let read_permits = Arc::new(Semaphore::new(max_concurrent_reads.max(1)));
        Self { endpoint, idle_sessions: Arc::default(), read_permits, read_outage_log: Arc::default() }
    }

    /// Runs `read` in one transaction, so that all statements see one snapshot. Retries if the connection is lost.
    pub(crate) async fn run_read_transaction<A, T, F>(&self, input: A, read: F) -> StoreResult<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'s> Fn(&'s Session, &'s A) -> BoxFuture<'s, TableResult<T>> + Send + Sync + 'static,
    {
        let result = self.run_read(ReadScope::Transaction, input, read).await;
        self.read_outage_log.record_read_result(&result);
        result
    }

    /// Runs a `read` of a single statement, which needs no transaction. Retries if the connection is lost.
    pub(crate) async fn run_single_statement<A, T, F>(&self, input: A, read: F) -> StoreResult<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'s> Fn(&'s Session, &'s A) -> BoxFuture<'s, TableResult<T>> + Send + Sync + 'static,
    {
        let result = self.run_read(ReadScope::SingleStatement, input, read).await;
        self.read_outage_log.record_read_result(&result);
        result
    }

    /// Runs a read in a spawned future, which finishes even if the caller is canceled, so that no connection stays in
    /// a transaction. Retries once, on a new connection, if the connection is lost.
    async fn run_read<A, T>(&self, scope: ReadScope, input: A, read: impl ReadFn<A, T>) -> StoreResult<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let Ok(permit) = timeout(READ_TIMEOUT, self.read_permits.clone().acquire_owned()).await else {
            return Err(StoreError::unavailable(ConnectError::TimedOut(READ_TIMEOUT)));
        };
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let (result_sender, result_receiver) = oneshot::channel();
        let pool = self.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let mut outcome = pool.try_read_with_timeout(scope, true, &input, &read).await;
            if outcome.as_ref().is_ok_and(|(_, result)| result.as_ref().is_err_and(is_connection_lost)) {
                outcome = pool.try_read_with_timeout(scope, false, &input, &read).await;
            }
            // The caller need not wait for the end of a read-only transaction.
            match outcome {
                Err(connect_error) => drop(result_sender.send(Err(StoreError::unavailable(connect_error)))),
                Ok((session, result)) => {
                    drop(result_sender.send(result.map_err(to_store_error)));
                    pool.return_session(session, scope).await;
                }
            }
        });
        result_receiver.await.unwrap_or_else(|_| Err(StoreError::unavailable("the read was aborted")))
    }

    /// Reads once; drops a connection that does not respond in time.
    async fn try_read_with_timeout<A, T>(
        &self,
        scope: ReadScope,
        may_reuse_idle: bool,
        input: &A,
        read: &impl ReadFn<A, T>,
    ) -> Result<(Session, TableResult<T>), ConnectError> {
        let result = timeout(READ_TIMEOUT, self.try_read(scope, may_reuse_idle, input, read)).await;
        result.unwrap_or(Err(ConnectError::TimedOut(READ_TIMEOUT)))
    }

    /// Reads on an idle connection, if it may be reused, or on a new one.
    async fn try_read<A, T>(
        &self,
        scope: ReadScope,
        may_reuse_idle: bool,
        input: &A,
        read: &impl ReadFn<A, T>,
    ) -> Result<(Session, TableResult<T>), ConnectError> {
        let session = self.take_session(may_reuse_idle).await?;
        let result = match scope {
            ReadScope::SingleStatement => read(&session, input).await,
            // Polled in this order, so that the first statement is sent right after the begin.
            ReadScope::Transaction => {
                let begin = if session.is_behind_pooler() { BEGIN_READ_BEHIND_POOLER } else { BEGIN_READ };
                match join(session.execute_batch(begin), read(&session, input)).await {
                    (Ok(()), result) => result,
                    (Err(error), _) => Err(error.into()),
                }
            }
        };
        Ok((session, result))
    }

    /// Takes an idle connection, if one may be reused, or opens a new one. If the server has too many connections, an
    /// idle one is used after all.
    async fn take_session(&self, mut may_reuse_idle: bool) -> Result<Session, ConnectError> {
        let started = Instant::now();
        loop {
            if may_reuse_idle && let Some(session) = self.take_idle_session() {
                return Ok(session);
            }
            match self.connect().await {
                Err(error)
                    if error.is_too_many_connections() && started.elapsed() < CONNECT_RETRY_TIMEOUT =>
                {
                    may_reuse_idle = true;
                    tokio::time::sleep(CONNECT_RETRY_DELAY).await;
                }
                connected => return connected,
            }
        }
    }

    /// Takes an idle connection; closed ones are dropped.
    fn take_idle_session(&self) -> Option<Session> {
        let mut idle = self.lock_idle_sessions();
        idle.retain(|session| !session.is_closed());
        idle.pop()
    }

    pub(crate) async fn connect(&self) -> Result<Session, ConnectError> {
        let session = self.endpoint.connect_with_timeout().await?;
        if !session.is_behind_pooler() {
            session.execute_batch(READ_SESSION_SETTINGS).await?;
        }
        Ok(session)
    }

    /// Ends the transaction, if there is one, and keeps the connection as an idle one. Drops it if it is closed or
    /// cannot end the transaction.
    async fn return_session(&self, session: Session, scope: ReadScope) {
        let is_reusable = match scope {
            ReadScope::SingleStatement => !session.is_closed(),
            ReadScope::Transaction => {
                timeout(READ_TIMEOUT, session.execute_batch("COMMIT")).await.is_ok_and(|done| done.is_ok())
            }
        };
        if is_reusable {
            self.add_idle_session(session);
        }
    }

    /// Adds a connection to the idle ones; drops it if the pool is closed.
    pub(crate) fn add_idle_session(&self, session: Session) {
        let mut idle = self.lock_idle_sessions();
        if !self.read_permits.is_closed() {
            idle.push(session);
        }
    }

    /// Opens a connection for the writer. The writer takes precedence: while the server has too many connections, idle
    /// read connections are closed one by one.
    pub(crate) async fn connect_writer(&self) -> Result<Session, ConnectError> {
        let started = Instant::now();
        loop {
            match self.endpoint.connect_with_timeout().await {
                Err(error)
                    if error.is_too_many_connections() && started.elapsed() < CONNECT_RETRY_TIMEOUT =>
                {
                    drop(self.take_idle_session());
                    tokio::time::sleep(CONNECT_RETRY_DELAY).await;
                }
                connected => return connected,
            }
        }
    }

    pub(crate) fn close(&self) {
        self.read_permits.close();
        self.lock_idle_sessions().clear();
    }

    fn lock_idle_sessions(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle_sessions.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests;
