//! The file as the source or target of a copy between stores. `rows.rs` reads and writes its rows, `counter_row.rs` its
//! counters.

mod counter_row;
mod rows;

use std::path::Path;

use pointsman_core::store::StoreResult;
use pointsman_store::store_copy::{
    COPY_PROGRESS_TEXT_NAME, CopyCursor, CopyEndpoint, CopyEndpointError, CopyPage, CopyRow, TableKind,
};
use rusqlite::Connection;

use crate::error::{OpenError, TableResult, to_store_error};
use crate::open::{self, DatabaseLocation, FileLock};
use crate::tables::meta;

/// A file that is the source or target of a copy. No server may use it meanwhile.
#[derive(Debug)]
pub struct SqliteStoreCopy {
    conn: Connection,
    _lock: FileLock,
}

impl SqliteStoreCopy {
    /// Opens a file as the source of a copy. As by a server, it is migrated if it has an older layout.
    pub fn open_source(path: impl AsRef<Path>) -> Result<Self, CopyEndpointError<OpenError>> {
        let path = path.as_ref();
        let no_store = || CopyEndpointError::NoStore(path.display().to_string());
        if !path.exists() {
            return Err(no_store());
        }
        let location = DatabaseLocation::File(path.into());
        let lock = open::acquire_lock(&location)?;
        let to_open_error = |error| OpenError::from_sqlite(path, error);
        let layout = open::open_reader_connection(path)
            .and_then(|conn| open::read_layout(&conn))
            .map_err(to_open_error)?;
        if layout == 0 {
            return Err(no_store());
        }
        Ok(Self { conn: open::open_writer_connection(&location, open::MIGRATIONS)?, _lock: lock })
    }

    /// Opens a file as the target of a copy; creates it if it does not exist.
    pub fn open_target(path: impl AsRef<Path>) -> Result<Self, CopyEndpointError<OpenError>> {
        let location = DatabaseLocation::File(path.as_ref().into());
        let lock = open::acquire_lock(&location)?;
        Ok(Self { conn: open::open_writer_connection(&location, open::MIGRATIONS)?, _lock: lock })
    }

    fn write_rows_and_progress(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        progress: &str,
    ) -> TableResult<()> {
        let tx = self.conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        match rows.as_slice() {
            [CopyRow::Counters(counters)] => counter_row::write_counter_row(&tx, counters)?,
            [CopyRow::Journal(_), ..] => rows::insert_journal_rows(&tx, &rows)?,
            _ => rows::insert_rows(&tx, table_kind, &rows)?,
        }
        meta::write_meta_value(&tx, COPY_PROGRESS_TEXT_NAME, progress)?;
        Ok(tx.commit()?)
    }

    fn delete_copy_progress(&self) -> TableResult<()> {
        self.conn.execute("DELETE FROM pointsman_meta WHERE name = ?1", [COPY_PROGRESS_TEXT_NAME])?;
        Ok(())
    }
}

impl CopyEndpoint for SqliteStoreCopy {
    fn count_rows(&mut self, table_kind: TableKind) -> StoreResult<Option<u64>> {
        rows::count_rows(&self.conn, table_kind).map_err(to_store_error)
    }

    fn read_page(&mut self, table_kind: TableKind, after: Option<&CopyCursor>) -> StoreResult<CopyPage> {
        let page = match table_kind {
            TableKind::Counters => counter_row::read_counter_row(&self.conn)
                .map(|counters| CopyPage::single_row(counters.into(), after)),
            _ => rows::read_page(&self.conn, table_kind, after),
        };
        page.map_err(to_store_error)
    }

    /// Returns 0: the embedded store has no outbox.
    fn count_outbox_events(&mut self) -> StoreResult<u64> {
        Ok(0)
    }

    /// Returns true: the lock keeps other processes out.
    fn is_unchanged_since_open(&mut self) -> StoreResult<bool> {
        Ok(true)
    }

    fn read_copy_progress(&mut self) -> StoreResult<Option<String>> {
        meta::read_meta_value(&self.conn, COPY_PROGRESS_TEXT_NAME).map_err(to_store_error)
    }

    fn write_rows_and_progress(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        progress: &str,
    ) -> StoreResult<bool> {
        self.write_rows_and_progress(table_kind, rows, progress).map(|()| true).map_err(to_store_error)
    }

    fn finish_copy(&mut self) -> StoreResult<bool> {
        self.delete_copy_progress().map(|()| true).map_err(to_store_error)
    }
}
