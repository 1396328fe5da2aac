//! The embedded store: one SQLite file, one writer, group commit.
//!
//! ```text
//!   callers ──jobs──▶ writer thread ──▶ BEGIN … all jobs that are waiting … COMMIT (fsync) ──▶ answers, signals
//!   readers ◀─────── their own connections, each read in one transaction, never in the writer's way
//! ```
//!
//! - `writer.rs` is the thread and its group commit, `checkpoint.rs` folds its log back, `state.rs` is the memory beside
//!   the file.
//! - `append.rs`, `claim.rs`, `finish.rs`, `runs.rs`, `schedules.rs`, `registry.rs`, `replay.rs` and `prune.rs` are the
//!   verbs that write; `life.rs` carries out what the core's lifecycle decides, `lanes.rs` who of an object's tasks may
//!   run, `reform.rs` what a changed registration means for those that wait.
//! - What runs next: `queues/` counts and keeps them, `turns.rs` knows whose turn it is, `bands.rs` which key's, `gauges.rs` what the
//!   limits say, and `deal.rs` deals.
//! - `read_journal.rs`, `read_tasks.rs`, `read_orders.rs`, `list_tasks.rs`, `people.rs` and `why.rs` read.
//! - `chains.rs` and `orders.rs` carry out what the core decides of orders, `observe.rs` says what the journal tells of
//!   tasks.
//! - `unit.rs` lets a program put its own writes and its events into one transaction.
//!
//! Durability rests on WAL with `synchronous=FULL`: an answer comes after the fsync. A lock file keeps a second
//! process out, so whatever an earlier process held when it died is free as soon as the file is opened again.

mod add_orders;
mod append;
mod bands;
mod chains;
mod checkpoint;
mod claim;
mod deal;
mod error;
mod finish;
mod gauges;
mod lanes;
mod life;
mod list_tasks;
mod objects;
mod observe;
mod open;
mod orders;
mod people;
mod phase;
mod prune;
mod queues;
mod read_journal;
mod read_orders;
mod read_tasks;
mod readers;
mod recent;
mod reform;
mod registry;
mod replay;
mod row;
mod runs;
mod schedules;
mod state;
mod store;
mod turns;
mod unit;
mod why;
mod writer;

use std::path::Path;
use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::StoreError;

pub use error::OpenError;
pub use unit::{SqlError, SqlRow, TransactError, Tx, Value};

use checkpoint::Checkpointer;
use open::Place;
use readers::Readers;
use writer::Writer;

/// The embedded store. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    /// None for a store in memory.
    checkpointer: Option<Arc<Checkpointer>>,
}

impl SqliteStore {
    /// Opens the file, making it if there is none and bringing it forward if it is of an older layout.
    pub fn open(path: impl AsRef<Path>, now: Timestamp) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::start(Place::File(path), now)
    }

    /// A store in memory that goes with the process.
    pub fn in_memory(now: Timestamp) -> Result<Self, OpenError> {
        Self::start(Place::Memory, now)
    }

    fn start(place: Place, now: Timestamp) -> Result<Self, OpenError> {
        let path = place.path();
        let lock = open::lock(&place)?;
        let conn = open::writer(&place)?;
        let state = writer::first_state(&conn, now)
            .map_err(|fault| OpenError::Damaged { path: path.clone(), what: fault.to_string() })?;
        let writer = Writer::start(conn, state, lock)
            .map_err(|source| OpenError::Io { path: path.clone(), source })?;
        let (readers, checkpointer) = match place {
            Place::File(path) => {
                let checkpointer = Checkpointer::start(&path, writer.work());
                let checkpointer =
                    checkpointer.map_err(|source| OpenError::Io { path: path.clone(), source })?;
                (Readers::pool(path), Some(Arc::new(checkpointer)))
            }
            Place::Memory => (Readers::Writer(writer.clone()), None),
        };
        Ok(Self { writer, readers, checkpointer })
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
        let set = move |txn: &mut writer::Txn<'_>| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            Ok(txn.conn.query_row(&sql, [], |_| Ok(()))?)
        };
        self.writer.run(set).await
    }

    fn writer(&self) -> &Writer {
        &self.writer
    }
}
