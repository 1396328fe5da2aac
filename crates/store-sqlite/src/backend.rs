//! Transactions on the file, run by the one thread that writes.

use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;
use pointsman_store::error::Fault;
use pointsman_store::tables::{Backend, CacheState, ReadSet};
use rusqlite::Connection;

use crate::error::{self, TableResult};
use crate::open::FileLock;
use crate::tables::SqliteTables;

/// The connection that writes, its tables, and the lock of the file.
pub(crate) struct SqliteBackend {
    tables: SqliteTables,
    _lock: FileLock,
}

impl SqliteBackend {
    /// On the first start, stores a random task id namespace and salt. On every start, makes all earlier nodes count as
    /// silent, because the lock guarantees that no other process uses the file.
    pub(crate) fn new(conn: Connection, lock: FileLock) -> TableResult<Self> {
        let random_pair = || uuid::Uuid::new_v4().as_u64_pair();
        let (namespace, _) = random_pair();
        let (_, salt) = random_pair();
        let sql = "INSERT OR IGNORE INTO pointsman_meta (name, text) VALUES (?1, ?2)";
        conn.execute(sql, ("task_id_namespace", (namespace & ((1 << 60) - 1)) as i64))?;
        conn.execute(sql, ("salt", salt as i64))?;
        conn.execute("UPDATE pointsman_node SET last_heartbeat = 0 WHERE gone = 0", [])?;
        Ok(Self { tables: SqliteTables::new(conn), _lock: lock })
    }

    fn conn(&self) -> &Connection {
        self.tables.conn()
    }
}

impl Backend for SqliteBackend {
    type Tables = SqliteTables;

    fn begin(&mut self, _read_set: ReadSet) -> TableResult<CacheState> {
        self.conn().prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(CacheState::Fresh)
    }

    fn tables(&mut self) -> &mut SqliteTables {
        &mut self.tables
    }

    fn commit(&mut self) -> TableResult<()> {
        self.conn().prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn roll_back(&mut self) {
        if !self.conn().is_autocommit()
            && let Err(error) = self.conn().execute_batch("ROLLBACK")
        {
            tracing::error!(
                error = %ErrorChain(&error),
                "could not roll back a transaction, so further writes fail; \
                 if this persists, check the disk and restart the server"
            );
        }
    }

    fn to_store_error(fault: Fault) -> StoreError {
        error::to_store_error(fault)
    }

    fn rows_written(&self) -> u64 {
        self.conn().total_changes()
    }
}
