//! The embedded store: one SQLite file, one writer, group commit.
//!
//! ```text
//!   callers ──jobs──▶ writer thread ──▶ BEGIN … all jobs that are waiting … COMMIT (fsync) ──▶ answers, signals
//!   readers ◀─────── their own connections, each read in one transaction, never in the writer's way
//! ```
//!
//! What is done in a transaction, and what is kept in memory beside the file, is common to all stores and lies in
//! `pointsman-store`. Here is what it is done with:
//!
//! - `tables/` keeps the rows: its statements are all there are that write. `backend.rs` begins and commits.
//! - `open.rs` opens the file, `checkpoint.rs` folds its log back beside the writer.
//! - `read_journal.rs`, `read_tasks.rs`, `read_orders.rs`, `read_fires.rs`, `list_tasks.rs` and `people.rs` read, on the
//!   connections of `readers.rs`.
//! - `doctor.rs` looks at the file, and at what may keep a store from working well there.
//! - `unit.rs` lets a program put its own writes and its events into one transaction.
//! - `transfer/` is the file as something that is moved, or moved to.
//!
//! Durability rests on WAL with `synchronous=FULL`: an answer comes after the fsync. A lock file keeps a second
//! process out, so whatever an earlier process held when it died is free as soon as the file is opened again.

mod backend;
mod checkpoint;
pub mod doctor;
mod error;
mod list_tasks;
mod open;
mod people;
mod read_fires;
mod read_journal;
mod read_orders;
mod read_tasks;
mod readers;
mod reads;
mod tables;
mod transfer;
mod unit;

use std::path::Path;
use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::StoreError;
use pointsman_store::{Keeper, Txn, Writer};

pub use error::OpenError;
pub use pointsman_store::sql::{Sql, SqlError, SqlRow, TransactError, Value};
pub use transfer::SqliteMove;

use backend::SqliteBackend;
use checkpoint::Checkpointer;
use open::Place;
use readers::Readers;
use tables::SqliteTables;

/// The embedded store. Cheap to clone; all clones are the same store.
pub type SqliteStore = Keeper<Sqlite>;

/// What the embedded store can do beyond what all stores can.
#[derive(Clone, Debug)]
pub struct Sqlite {
    writer: Writer<SqliteTables>,
    readers: Readers,
    /// None for a store in memory.
    checkpointer: Option<Arc<Checkpointer>>,
}

impl Sqlite {
    /// Opens the file, making it if there is none and bringing it forward if it is of an older layout.
    pub fn open(path: impl AsRef<Path>, now: Timestamp) -> Result<SqliteStore, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::start(Place::File(path), now)
    }

    /// A store in memory that goes with the process.
    pub fn in_memory(now: Timestamp) -> Result<SqliteStore, OpenError> {
        Self::start(Place::Memory, now)
    }

    fn start(place: Place, now: Timestamp) -> Result<SqliteStore, OpenError> {
        let path = place.path();
        let io = |source| OpenError::from_io(&path, source);
        let fault = |fault: error::Fault| OpenError::from_fault(&path, fault);
        let lock = open::lock(&place)?;
        let backend = SqliteBackend::new(open::writer(&place)?, lock).map_err(fault)?;
        let writer = Writer::start(backend, "sqlite-writer", now).map_err(io)?.map_err(fault)?;
        let (readers, checkpointer) = match place {
            Place::File(path) => {
                let checkpointer = Checkpointer::start(&path, writer.work()).map_err(io)?;
                (Readers::pool(path), Some(Arc::new(checkpointer)))
            }
            Place::Memory => (Readers::Writer(writer.clone()), None),
        };
        Ok(Keeper::new(writer.clone(), Self { writer, readers, checkpointer }))
    }

    /// How many transactions were committed since it was opened, and how many rows they changed.
    pub fn work(&self) -> (u64, u64) {
        let work = self.writer.work();
        (work.commits(), work.rows())
    }

    /// Sets how many pages the file may have, beyond which writing fails as on a full disk; `None` lifts it. For
    /// tests.
    #[doc(hidden)]
    pub async fn limit_pages(&self, pages: Option<u32>) -> Result<(), StoreError> {
        let pages = pages.unwrap_or(u32::MAX - 1);
        let set = move |txn: &mut Txn<'_, SqliteTables>| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            Ok(txn.tables.conn().query_row(&sql, [], |_| Ok(()))?)
        };
        self.writer.run(set).await
    }
}
