//! Connections that read. They read the last commit and never wait for the writer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pointsman_core::store::StoreError;
use pointsman_store::{ReadOutageLog, Writer};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{TableResult, to_store_error};
use crate::open;
use crate::tables::SqliteTables;

/// The maximum number of concurrent reads.
const MAX_CONCURRENT_READS: usize = 4;

/// The connections that reads use. A memory database cannot be shared between connections, so there the writer reads
/// too.
#[derive(Clone, Debug)]
pub(crate) enum Readers {
    Pool(ReaderPool),
    ThroughWriter(Writer<SqliteTables>),
}

/// A pool of read-only connections, which are opened when needed.
#[derive(Clone, Debug)]
pub(crate) struct ReaderPool {
    path: PathBuf,
    idle_connections: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    outage_log: Arc<ReadOutageLog>,
}

impl Readers {
    pub(crate) fn new_pool(path: PathBuf) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_READS));
        Self::Pool(ReaderPool { path, idle_connections: Arc::default(), permits, outage_log: Arc::default() })
    }

    /// Runs `read` in one transaction, on a consistent snapshot.
    pub(crate) async fn run_read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> TableResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::ThroughWriter(writer) => writer.run_in_transaction(|txn| read(txn.tables.conn())).await,
            Self::Pool(pool) => pool.run_read(read).await,
        }
    }
}

impl ReaderPool {
    async fn run_read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> TableResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let pool = self.clone();
        let read_task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let idle_conn = pool.idle_connections.lock().unwrap_or_else(|e| e.into_inner()).pop();
            let conn = match idle_conn {
                Some(conn) => conn,
                None => open::open_reader_connection(&pool.path)?,
            };
            let result = run_in_read_transaction(&conn, read);
            // A connection is not reused if its transaction could not be ended or if the store is closed.
            if conn.is_autocommit() && !pool.permits.is_closed() {
                pool.idle_connections.lock().unwrap_or_else(|e| e.into_inner()).push(conn);
            }
            result
        });
        let result = match read_task.await {
            Ok(result) => result.map_err(to_store_error),
            Err(error) => Err(StoreError::unavailable(error)),
        };
        self.outage_log.record_read_result(&result);
        result
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle_connections.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

fn run_in_read_transaction<T>(
    conn: &Connection,
    read: impl FnOnce(&Connection) -> TableResult<T>,
) -> TableResult<T> {
    conn.prepare_cached("BEGIN DEFERRED")?.execute([])?;
    let result = read(conn);
    conn.prepare_cached("COMMIT")?.execute([])?;
    result
}
