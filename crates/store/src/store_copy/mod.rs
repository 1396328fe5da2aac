//! Moving a store: all that one holds is read as rows, written to another of any kind, and compared.
//!
//! ```text
//!   source ──▶ pages of rows, a section after the other ──▶ target
//!   as of one moment        a page and the note how far it came: one transaction
//! ```
//!
//! Whoever is cut off leaves a target with a note, which no node opens; the same move goes on behind it. When all is
//! there, both sides are read again and compared by counts and checksums, and only then the note goes.
//!
//! - `table.rs` says what there is to move, `cell.rs` what rows are made of.
//! - `run.rs` moves and compares, over what a store must be able to do for it: [`CopyEndpoint`].

mod copy;
mod copy_row;
mod table_kind;

use pointsman_core::store::{Result, StoreError};

pub use copy::{CopyProgress, CopyReport, TableComparison, compare_stores, copy_store, verify_copy};
pub use copy_row::{CopyCursor, CopyPage, CopyRow, CopyValue, TableChecksum, replace_nul};
pub use table_kind::TableKind;

use crate::error::Fault;
use crate::tables::Tables;

/// Under which name a target keeps how far a move to it has come.
pub const COPY_PROGRESS_TEXT: &str = "move";

/// Every so many events one is marked, so that it is found by its number.
pub const EVENT_INDEX_INTERVAL: i64 = 1000;

/// A store that nobody works with, as somebody sees it who moves it.
pub trait CopyEndpoint: Send {
    /// How many rows of a section it holds; none if a store of this kind has no such section.
    fn count_rows(&mut self, table: TableKind) -> Result<Option<u64>>;

    /// The next rows of a section, in an order of its own.
    fn read_page(&mut self, table: TableKind, after: Option<&CopyCursor>) -> Result<CopyPage>;

    /// How many events lie in an outbox and have no id yet.
    fn count_outbox_events(&mut self) -> Result<u64>;

    /// How many things of an outbox lie aside because they are no events. They are moved nowhere.
    fn count_set_aside_entries(&mut self) -> Result<u64> {
        Ok(0)
    }

    /// Whether nobody has written since it was opened. The last that is asked of a source.
    fn is_unchanged(&mut self) -> Result<bool>;

    /// How far a move to here has come that has not ended.
    fn read_progress(&mut self) -> Result<Option<String>>;

    /// Writes rows, and in the same transaction another note in place of the one that was read or written last. False if
    /// somebody else has written there since it was opened: then nothing is written.
    fn write_rows(&mut self, table: TableKind, rows: Vec<CopyRow>, progress: &str) -> Result<bool>;

    /// All is there: what hangs on all of it is set, and the note goes. False as for [`CopyEndpoint::write_rows`].
    fn finish_copy(&mut self) -> Result<bool>;
}

/// Why a store is not ready to be moved, or to be moved to.
#[derive(Debug, thiserror::Error)]
pub enum CopyNotReady<E: std::error::Error + 'static> {
    #[error(transparent)]
    OpenFailed(#[from] E),
    #[error("there is no store of Pointsman at {0}")]
    NoStore(String),
    #[error(
        "{at} is in use by {nodes}; stop the servers first (one that was killed counts as gone a minute after it was last \
         heard of)"
    )]
    InUse { at: String, nodes: String },
    #[error(
        "the outbox of {at} holds {events} without an id; let a server run until it is empty, while nobody leaves more there"
    )]
    OutboxNotEmpty { at: String, events: String },
    #[error(
        "the outbox of {at} holds {events} without an id, and no server looks at those of {objects}, which are not in line; \
         put them there, and let a server run until the outbox is empty: {command}"
    )]
    OrphanedOutbox { at: String, events: String, objects: String, command: String },
    #[error(
        "{0} is a pooler, and a move needs one connection from beginning to end; give the URL of the server itself"
    )]
    ConnectionPooler(String),
}

/// Why a move did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the source cannot be read")]
    ReadSource(#[source] StoreError),
    #[error("the target cannot be written")]
    WriteTarget(#[source] StoreError),
    #[error("the source holds only a part of a store: a move to it has not ended")]
    SourceIncomplete,
    #[error("the target holds only a part of a store: a move to it has not ended")]
    TargetIncomplete,
    #[error("the target is not empty: it holds {0}")]
    TargetNotEmpty(String),
    #[error(
        "the target holds this store already, as it was when it was moved, or before; name an empty target"
    )]
    AlreadyCopied,
    #[error("the target is that of a move from another store, which has not ended")]
    OtherCopyUnfinished,
    #[error("the source has changed since this move to the target began")]
    SourceChanged,
    #[error("the source was written to while it was moved")]
    SourceWritten,
    #[error("a server, or another move, has written to the target meanwhile")]
    TargetWritten,
}

/// A store to which a move has not ended holds only a part of what belongs together.
pub(crate) fn reject_incomplete_copy(tables: &dyn Tables) -> crate::error::Result<()> {
    match tables.read_named_text(COPY_PROGRESS_TEXT)? {
        None => Ok(()),
        Some(_) => Err(Fault::damaged(
            "a move to it has not ended; run the same `pointsman move` again, or begin with another target",
        )),
    }
}
