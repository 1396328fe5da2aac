//! Connections that read. They see the last commit and never wait for the writer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pointsman_core::store::StoreError;
use pointsman_store::{Readable, Writer};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{Result, explain};
use crate::open;
use crate::tables::SqliteTables;

/// So many reads at most run at a time.
const READERS: usize = 4;

/// A memory database cannot be shared between connections, so there the writer reads too.
#[derive(Clone, Debug)]
pub(crate) enum Readers {
    Pool(Pool),
    Writer(Writer<SqliteTables>),
}

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    readable: Arc<Readable>,
}

impl Readers {
    pub(crate) fn pool(path: PathBuf) -> Self {
        let permits = Arc::new(Semaphore::new(READERS));
        Self::Pool(Pool { path, idle: Arc::default(), permits, readable: Arc::default() })
    }

    /// Runs `read` in one transaction: all that it sees is of one moment.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        match self {
            Self::Writer(writer) => writer.run(|txn| read(txn.tables.conn())).await,
            Self::Pool(pool) => pool.run(read).await,
        }
    }
}

impl Pool {
    async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let pool = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let taken = pool.idle.lock().unwrap_or_else(|e| e.into_inner()).pop();
            let conn = match taken {
                Some(conn) => conn,
                None => open::reader(&pool.path)?,
            };
            let result = in_transaction(&conn, read);
            // A connection whose transaction could not be ended is not used again, nor one of a closed store.
            if conn.is_autocommit() && !pool.permits.is_closed() {
                pool.idle.lock().unwrap_or_else(|e| e.into_inner()).push(conn);
            }
            result
        });
        let answer = match read.await {
            Ok(result) => result.map_err(|fault| explain(&fault)),
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        };
        self.readable.note(&answer);
        answer
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

fn in_transaction<T>(conn: &Connection, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    conn.prepare_cached("BEGIN DEFERRED")?.execute([])?;
    let result = read(conn);
    conn.prepare_cached("COMMIT")?.execute([])?;
    result
}
