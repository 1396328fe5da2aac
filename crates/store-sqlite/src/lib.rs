//! The embedded store: one SQLite file, one writer, group commit.
//!
//! ```text
//!   callers ──jobs──▶ writer thread ──▶ BEGIN … all jobs that are waiting … COMMIT (fsync) ──▶ results, signals
//!   readers ◀─────── their own connections, each read in one transaction, without blocking the writer
//! ```
//!
//! The logic of transactions, and the state in memory, is common to all stores and is in `pointsman-store`. This crate
//! provides the database for it:
//!
//! - `tables/` reads and writes the rows, and has all statements that write. `cells.rs` reads and writes their columns,
//!   as `pointsman_store::columns` describes them. `backend.rs` begins and commits.
//! - `open.rs` opens the file, `checkpoint.rs` runs WAL checkpoints in the background.
//! - `read_journal.rs`, `read_tasks.rs`, `read_orders.rs`, `read_fires.rs`, `read_nodes.rs` and `list_tasks.rs` read,
//!   on the connections of `readers.rs`; `impl_store_reader.rs` implements the common store's `StoreReader` with them.
//! - `doctor.rs` checks the file and its disk for problems.
//! - `unit_of_work.rs` lets a program put its own writes and its events into one transaction.
//! - `store_copy/` makes the file a source or target of a copy between stores.
//!
//! Durability rests on WAL with `synchronous=FULL`: a result is returned after the fsync. A lock file keeps a second
//! process out, so the leases of a process that died are free as soon as the file is opened again.

mod backend;
mod cells;
mod checkpoint;
pub mod doctor;
mod error;
mod impl_store_reader;
mod list_tasks;
mod open;
mod read_fires;
mod read_journal;
mod read_nodes;
mod read_orders;
mod read_tasks;
mod readers;
mod store_copy;
mod tables;
mod unit_of_work;

use std::path::Path;
use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::StoreError;
use pointsman_store::{BackendStore, Txn, Writer};

pub use error::OpenError;
#[doc(hidden)]
pub use open::MIGRATIONS;
pub use pointsman_store::sql::{SqlError, SqlRow, SqlTransaction, SqlValue, TransactError};
pub use store_copy::SqliteStoreCopy;

use backend::SqliteBackend;
use checkpoint::Checkpointer;
use open::DatabaseLocation;
use readers::Readers;
use tables::SqliteTables;

/// The embedded store. Cheap to clone; all clones are the same store.
pub type SqliteStore = BackendStore<Sqlite>;

/// The embedded store on SQLite: its writer, its readers and its checkpoints.
#[derive(Clone, Debug)]
pub struct Sqlite {
    writer: Writer<SqliteTables>,
    readers: Readers,
    /// None for a store in memory, which has no WAL.
    checkpointer: Option<Arc<Checkpointer>>,
}

impl Sqlite {
    /// Opens the file; creates it if it does not exist, and migrates it if it has an older layout.
    pub fn open(path: impl AsRef<Path>, now: Timestamp) -> Result<SqliteStore, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::open_location(DatabaseLocation::File(path), MIGRATIONS, now)
    }

    /// Opens the file with other migrations than those of this version. For tests.
    #[doc(hidden)]
    pub fn open_with_migrations(
        path: impl AsRef<Path>,
        migrations: &[&str],
        now: Timestamp,
    ) -> Result<SqliteStore, OpenError> {
        Self::open_location(DatabaseLocation::File(path.as_ref().into()), migrations, now)
    }

    /// Opens a store in memory, which ends with the process.
    pub fn in_memory(now: Timestamp) -> Result<SqliteStore, OpenError> {
        Self::open_location(DatabaseLocation::Memory, MIGRATIONS, now)
    }

    fn open_location(
        location: DatabaseLocation,
        migrations: &[&str],
        now: Timestamp,
    ) -> Result<SqliteStore, OpenError> {
        let path = location.path();
        let io_to_open_error = |source| OpenError::from_io(&path, source);
        let to_open_error = |fault: error::Fault| OpenError::from_fault(&path, fault);
        let lock = open::acquire_lock(&location)?;
        let backend = SqliteBackend::new(open::open_writer_connection(&location, migrations)?, lock)
            .map_err(to_open_error)?;
        let writer =
            Writer::start(backend, "sqlite-writer", now).map_err(io_to_open_error)?.map_err(to_open_error)?;
        let (readers, checkpointer) = match location {
            DatabaseLocation::File(path) => {
                let checkpointer = Checkpointer::start(&path, writer.status()).map_err(io_to_open_error)?;
                (Readers::new_pool(path), Some(Arc::new(checkpointer)))
            }
            DatabaseLocation::Memory => (Readers::ThroughWriter(writer.clone()), None),
        };
        Ok(BackendStore::new(writer.clone(), Self { writer, readers, checkpointer }))
    }

    /// Returns the number of transactions committed and of rows changed since the store was opened.
    pub fn count_commits_and_rows(&self) -> (u64, u64) {
        let status = self.writer.status();
        (status.commit_count(), status.rows_written())
    }

    /// Limits the number of pages of the file; beyond it writes fail as on a full disk. `None` removes the limit. For
    /// tests.
    #[doc(hidden)]
    pub async fn limit_file_pages(&self, pages: Option<u32>) -> Result<(), StoreError> {
        let pages = pages.unwrap_or(u32::MAX - 1);
        let set_limit = move |txn: &mut Txn<'_, SqliteTables>| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            Ok(txn.tables.conn().query_row(&sql, [], |_| Ok(()))?)
        };
        self.writer.run_in_transaction(set_limit).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pointsman_store::expand_sql::SQL_CODES;

    /// SQLite would take a name that was not replaced for a parameter.
    #[test]
    fn every_name_in_sql_is_replaced() {
        assert_names_replaced_in_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    }

    fn assert_names_replaced_in_folder(folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => assert_names_replaced_in_folder(&path),
                false => assert_names_replaced_in_file(&path, &std::fs::read_to_string(&path).unwrap()),
            }
        }
    }

    fn assert_names_replaced_in_file(path: &Path, code: &str) {
        for (position, _) in code.match_indices(':') {
            let (before, after) = (&code[..position], &code[position + 1..]);
            let end = after.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(after.len());
            let name = &after[..end];
            if is_expanded_name(name) && !before.ends_with(':') {
                let statement = &before[before.rfind([';', '{', '}']).unwrap_or(0)..];
                assert!(statement.contains("expand_sql!("), "{}: :{name} is not replaced", path.display());
            }
        }
    }

    /// Returns whether this is the name of a code, or of the columns or parameters of a row.
    fn is_expanded_name(name: &str) -> bool {
        SQL_CODES.iter().any(|(code_name, _)| *code_name == name)
            || ["_columns", "_parameters"].iter().any(|suffix| name.ends_with(suffix))
    }
}
