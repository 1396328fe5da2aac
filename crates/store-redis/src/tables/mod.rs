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
mod sync_tasks;
mod tasks;
mod trait_impl;
mod transaction;

use std::cell::{Cell, RefCell};

use pointsman_store::SetAsideEntryLog;
use pointsman_store::caller_time::CallerTime;
use pointsman_store::invalidation::{CommitVersion, Invalidation};
use pointsman_store::tables::Counters;
use uuid::Uuid;

use self::outbox::OutboxState;
use crate::connection::BlockingConnection;
use crate::keys::Keys;
use crate::overlay::TransactionOverlay;
use crate::store_state::StoreState;

/// Maximum number of log arguments of one command; a line takes two.
const MAX_LOG_ARGS: usize = 2_000;

/// The tables of the Redis store, as used by the writer.
pub struct RedisTables {
    pub(crate) overlay: TransactionOverlay,
    /// Time for events that are journaled without a caller.
    pub(crate) caller_time: CallerTime,
    /// Owner name of this writer in the write lock.
    lock_owner: String,
    store_state: RefCell<StoreState>,
    /// Store state when the transaction began.
    state_at_begin: RefCell<StoreState>,
    /// Changes of this transaction that peers may have cached.
    changes: RefCell<Vec<Invalidation>>,
    /// Handlers, chains, rules or nodes have changed in this transaction.
    registry_changed: Cell<bool>,
    /// Commit version and registry version that the caches reflect.
    cached_version: Cell<Option<(CommitVersion, i64)>>,
    /// Number of further transactions that publish invalidation records.
    peer_active_transactions: Cell<u32>,
    /// Outbox entries that this transaction journals first.
    outbox: OutboxState,
    pub(crate) set_aside_log: RefCell<SetAsideEntryLog>,
    /// Audit entries before this number are deleted.
    first_audit_entry: Cell<Option<i64>>,
    /// Where to continue the scan for objects that are not in their index.
    object_index_cursor: Cell<u64>,
    /// Number of rows written since the start.
    written_rows: Cell<u64>,
}

impl RedisTables {
    pub(crate) fn new(connection: BlockingConnection, keys: Keys) -> Self {
        Self {
            overlay: TransactionOverlay::new(connection, keys),
            caller_time: CallerTime::default(),
            lock_owner: Uuid::new_v4().to_string(),
            store_state: RefCell::default(),
            state_at_begin: RefCell::default(),
            changes: RefCell::default(),
            registry_changed: Cell::default(),
            cached_version: Cell::default(),
            peer_active_transactions: Cell::default(),
            outbox: OutboxState::default(),
            set_aside_log: RefCell::default(),
            first_audit_entry: Cell::default(),
            object_index_cursor: Cell::default(),
            written_rows: Cell::default(),
        }
    }

    pub(crate) fn written_rows(&self) -> u64 {
        self.written_rows.get()
    }

    fn record_change(&self, change: Invalidation) {
        self.changes.borrow_mut().push(change);
    }

    fn mark_registry_changed(&self) {
        self.registry_changed.set(true);
    }

    fn set_counters(&self, counters: &Counters) {
        self.store_state.borrow_mut().counters = *counters;
    }

    /// Returns the next unused number.
    fn next_number(&self, number: impl Fn(&mut StoreState) -> &mut i64) -> i64 {
        let mut store_state = self.store_state.borrow_mut();
        let number = number(&mut store_state);
        *number += 1;
        *number
    }
}

impl std::fmt::Debug for RedisTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisTables")
    }
}
