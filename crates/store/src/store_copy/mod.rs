//! Store copy (`pointsman move`): reads all rows of one store, writes them to another of any kind, and compares both.
//!
//! ```text
//!   source ──▶ pages of rows, table by table ──▶ target
//!   one consistent snapshot      each page and the progress: one transaction
//! ```
//!
//! An interrupted copy leaves its progress in the target, and no node opens such a store; the same copy continues from
//! there. When all rows are copied, both stores are read again and compared by counts and checksums; only then is the
//! progress deleted.
//!
//! - `table_kind.rs` lists the tables; the rows are those of [`crate::columns`]. `copy_page.rs` defines pages and
//!   `checksum.rs` checksums.
//! - `copy.rs` copies and compares, using the operations of [`CopyEndpoint`].

mod checksum;
mod copy;
mod copy_page;
mod table_kind;

use pointsman_core::store::{StoreError, StoreResult};

pub use checksum::{TableChecksum, replace_nul};
pub use copy::{
    ComparisonReport, CopyProgressUpdate, TableComparison, compare_stores, copy_store, verify_copy,
};
pub use copy_page::{CopyCursor, CopyPage, CursorValue};
pub use table_kind::{CopyRow, TableKind};

use crate::error::Fault;
use crate::tables::MetaTable;

/// Name of the named text in which a target stores the progress of a copy.
pub const COPY_PROGRESS_TEXT_NAME: &str = "move";

/// One in this many events is in the sparse index of the journal, by which an event is found by its number.
pub const JOURNAL_SPARSE_INDEX_INTERVAL: i64 = 1000;

/// A store that takes part in a copy, as source or target. No node uses it meanwhile.
pub trait CopyEndpoint: Send {
    /// Counts the rows of a table; `None` if a store of this kind has no such table.
    fn count_rows(&mut self, table: TableKind) -> StoreResult<Option<u64>>;

    /// Reads the next rows of a table, in an order that the store chooses.
    fn read_page(&mut self, table: TableKind, after: Option<&CopyCursor>) -> StoreResult<CopyPage>;

    /// Counts the events in an outbox that have no id yet.
    fn count_outbox_events(&mut self) -> StoreResult<u64>;

    /// Counts outbox entries that were set aside because they are not events. They are not copied.
    fn count_set_aside_entries(&mut self) -> StoreResult<u64> {
        Ok(0)
    }

    /// Returns whether no one has written to the store since it was opened. Called on the source after the comparison.
    fn is_unchanged_since_open(&mut self) -> StoreResult<bool>;

    /// Reads the progress of an unfinished copy to this store.
    fn read_copy_progress(&mut self) -> StoreResult<Option<String>>;

    /// Writes rows and, in the same transaction, replaces the stored progress. Returns false, and writes nothing, if
    /// somebody else has written since the store was opened.
    fn write_rows_and_progress(
        &mut self,
        table: TableKind,
        rows: Vec<CopyRow>,
        progress: &str,
    ) -> StoreResult<bool>;

    /// Completes the copy: sets values that depend on all rows, and deletes the stored progress. Returns false as
    /// [`CopyEndpoint::write_rows_and_progress`] does.
    fn finish_copy(&mut self) -> StoreResult<bool>;
}

/// Why a store cannot be the source or the target of a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyEndpointError<E: std::error::Error + 'static> {
    #[error(transparent)]
    OpenFailed(#[from] E),
    #[error("there is no store of Pointsman at {0}")]
    NoStore(String),
    #[error(
        "{at} is in use by {nodes}; stop the servers first (a killed server counts as gone a minute after its last \
         heartbeat)"
    )]
    InUse { at: String, nodes: String },
    #[error(
        "the outbox of {at} contains {events} without an id; let a server run until it is empty, while producers are stopped"
    )]
    OutboxNotEmpty { at: String, events: String },
    #[error(
        "the outbox of {at} contains {events} without an id, and no server processes those of {objects}, which are missing from the \
         outbox's list of objects; add them with this command, and let a server run until it is \
         empty: {command}"
    )]
    ObjectsMissingFromOutboxList { at: String, events: String, objects: String, command: String },
    #[error(
        "{0} is a connection pooler, and a move needs a single connection; use the URL of the server itself"
    )]
    ConnectionPooler(String),
}

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the source cannot be read")]
    ReadSource(#[source] StoreError),
    #[error("the target cannot be written")]
    WriteTarget(#[source] StoreError),
    #[error("the source is incomplete: a move to it has not ended; finish that move first")]
    SourceIncomplete,
    #[error("the target is incomplete: a move to it has not ended")]
    TargetIncomplete,
    #[error("the target is not empty: it contains {0}")]
    TargetNotEmpty(String),
    #[error(
        "the target already contains this store, in its state at the end of a move or earlier; name an empty target"
    )]
    AlreadyCopied,
    #[error("a move from another store to this target has not ended; finish it, or name an empty target")]
    OtherCopyUnfinished,
    #[error("the source has changed since this move to the target began; start again with an empty target")]
    SourceChangedSinceStart,
    #[error(
        "the source was written to during the move; stop its writers, and start again with an empty target"
    )]
    SourceWrittenDuringCopy,
    #[error(
        "a server or another move has written to the target during this move; stop it, and run the move again"
    )]
    TargetWrittenDuringCopy,
}

/// Rejects a store to which a copy is unfinished: it contains only part of the data.
pub(crate) fn reject_incomplete_copy(tables: &mut dyn MetaTable) -> crate::error::TableResult<()> {
    match tables.read_named_text(COPY_PROGRESS_TEXT_NAME)? {
        None => Ok(()),
        Some(_) => Err(Fault::damaged(
            "a move to it has not ended; run the same `pointsman move` again, or start again with another target",
        )),
    }
}
