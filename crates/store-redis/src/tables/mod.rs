//! The tables within a transaction of the writer.
//!
//! A transaction acquires the write lock, reads through a [`TransactionOverlay`], and sends all writes with its commit, which Redis
//! accepts only if no other commit happened. The lock makes conflicts unlikely; correctness does not depend on it.

mod archived_tasks;
mod chains;
mod copy_pages;
mod events;
mod objects;
pub(crate) mod outbox;
mod registry;
mod retention;
pub(crate) mod schedules;
mod source_task_keys;
mod tasks;
mod trait_impl;
mod transaction;

use std::cell::{Cell, RefCell};

use pointsman_store::SetAsideEntryLog;
use pointsman_store::caller_time_source::CallerTimeSource;
use pointsman_store::invalidation::{CommitVersion, Invalidation};
use pointsman_store::tables::Counters;
use uuid::Uuid;

use self::outbox::OutboxState;
use crate::connection::BlockingConnection;
use crate::keys::Keys;
use crate::overlay::TransactionOverlay;
use crate::store_state::StoreState;

/// Maximum number of log arguments of one command; a line takes two.
const MAX_ARGS_PER_LOG_COMMAND: usize = 2_000;

/// The tables of the Redis store, as used by the writer.
pub struct RedisTables {
    pub(crate) overlay: TransactionOverlay,
    /// Time that callers last passed, for events that are journaled without a caller.
    pub(crate) caller_time: CallerTimeSource,
    /// Owner name of this writer in the write lock.
    lock_owner_name: String,
    store_state: RefCell<StoreState>,
    /// Store state when the transaction began.
    store_state_at_begin: RefCell<StoreState>,
    /// Changes of this transaction that peers must apply to what they keep in memory.
    invalidations: RefCell<Vec<Invalidation>>,
    /// Whether handlers, chains, rules or nodes have changed in this transaction.
    registry_changed: Cell<bool>,
    /// Commit version and registry version that the caches reflect.
    cached_versions: Cell<Option<(CommitVersion, i64)>>,
    /// Number of transactions for which peers still count as active, so that commits publish invalidation records.
    peer_activity_countdown: Cell<u32>,
    /// Outbox entries that this transaction journals first.
    outbox_state: OutboxState,
    pub(crate) set_aside_log: RefCell<SetAsideEntryLog>,
    /// Number of the first audit entry that is still stored, if known: all before it are deleted.
    first_audit_entry_number: Cell<Option<i64>>,
    /// HSCAN cursor at which the scan for objects without an index entry continues.
    unindexed_object_cursor: Cell<u64>,
    /// Number of rows written since the start.
    rows_written: Cell<u64>,
}

impl RedisTables {
    pub(crate) fn new(connection: BlockingConnection, keys: Keys) -> Self {
        Self {
            overlay: TransactionOverlay::new(connection, keys),
            caller_time: CallerTimeSource::default(),
            lock_owner_name: Uuid::new_v4().to_string(),
            store_state: RefCell::default(),
            store_state_at_begin: RefCell::default(),
            invalidations: RefCell::default(),
            registry_changed: Cell::default(),
            cached_versions: Cell::default(),
            peer_activity_countdown: Cell::default(),
            outbox_state: OutboxState::default(),
            set_aside_log: RefCell::default(),
            first_audit_entry_number: Cell::default(),
            unindexed_object_cursor: Cell::default(),
            rows_written: Cell::default(),
        }
    }

    pub(crate) fn rows_written(&self) -> u64 {
        self.rows_written.get()
    }

    fn record_invalidation(&self, invalidation: Invalidation) {
        self.invalidations.borrow_mut().push(invalidation);
    }

    fn mark_registry_changed(&self) {
        self.registry_changed.set(true);
    }

    fn set_counters(&self, counters: &Counters) {
        self.store_state.borrow_mut().counters = *counters;
    }

    /// Increments one of the last assigned numbers in the store state and returns it.
    fn assign_next_number(&self, last_number: impl Fn(&mut StoreState) -> &mut i64) -> i64 {
        let mut store_state = self.store_state.borrow_mut();
        let number = last_number(&mut store_state);
        *number += 1;
        *number
    }
}

impl std::fmt::Debug for RedisTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisTables")
    }
}
