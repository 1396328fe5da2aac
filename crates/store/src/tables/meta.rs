//! The counters of a store, and its named texts.

use pointsman_core::task::TaskIdNamespace;
use pointsman_core::{EventId, Timestamp};

use crate::error::TableResult;

/// Counters of a store. A number that a commit has allocated is never allocated again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Id of the newest event, even if it has expired.
    pub last_event: EventId,
    /// Low-water mark of the journal: observers see nothing at or below it.
    pub expired_up_to: EventId,
    /// Number of the latest task.
    pub last_task: i64,
    /// Fence of the latest attempt.
    pub last_fence: i64,
    /// Number of the latest object.
    pub last_object: i64,
    /// Number of the latest order.
    pub last_order: i64,
    /// Number of events ever journaled.
    pub journaled_event_count: i64,
    /// Number of archived tasks.
    pub archived_task_count: i64,
    /// A time at or before the earliest due time of a delayed task.
    pub next_due: Option<Timestamp>,
}

/// The names of the texts that belong to the registration, as handlers and chains do: when one changes, peers read the
/// registration again.
pub const REGISTRATION_TEXT_NAMES: [&str; 3] = ["routes", "tenants", "chain_routes"];

/// Counters of the store, texts by name, and the random numbers that it was created with.
pub trait MetaTable {
    fn read_counters(&mut self) -> TableResult<Counters>;

    /// Writes the counters. Called before each commit.
    fn write_counters(&mut self, counters: &Counters) -> TableResult<()>;

    /// Reads the namespace from which this store's public task ids are derived.
    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace>;

    /// Reads a secret number that is mixed into hashes, so that nobody can choose names that collide.
    fn read_hash_salt(&mut self) -> TableResult<u64>;

    /// Reads the text stored under a name.
    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>>;

    fn write_named_text(&mut self, name: &str, text: &str) -> TableResult<()>;
}
