//! The tables, as one transaction of the writer sees them.
//!
//! A transaction begins with the turn, looks at Redis through a [`TransactionOverlay`], and is sent whole by its commit, which Redis
//! takes only if nobody has written since. Having the turn makes that likely; it is not what makes it safe.

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

use pointsman_store::SetAsideLog;
use pointsman_store::clock::CallerTime;
use pointsman_store::commits::{Change, Point};
use pointsman_store::tables::Counters;
use uuid::Uuid;

use self::outbox::OutboxState;
use crate::connection::BlockingConnection;
use crate::keys::Keys;
use crate::overlay::TransactionOverlay;
use crate::store_state::StoreState;

/// So many words of log lines go into one command; a line is two of them.
const MAX_LOG_ARGS: usize = 2_000;

/// What the writer sees of Redis.
pub struct RedisTables {
    pub(crate) overlay: TransactionOverlay,
    /// For what is journaled without anybody asking for it.
    pub(crate) caller_time: CallerTime,
    /// The name under which this writer has the turn.
    lock_owner: String,
    store_state: RefCell<StoreState>,
    /// As it was when the transaction began.
    state_at_begin: RefCell<StoreState>,
    /// What this transaction changes that others may remember otherwise.
    changes: RefCell<Vec<Change>>,
    /// Handlers, chains, rules or nodes have changed in this transaction.
    registry_changed: Cell<bool>,
    /// The commit that the memory beside the tables is of, and the version of the registry.
    cached_version: Cell<Option<(Point, i64)>>,
    /// For so many transactions more, others are told what was written.
    peer_active_transactions: Cell<u32>,
    /// What this transaction journals first.
    outbox: OutboxState,
    pub(crate) set_aside_log: RefCell<SetAsideLog>,
    /// No deed before this number is there any more.
    first_audit_entry: Cell<Option<i64>>,
    /// Where to continue the scan for objects that are not in their index.
    object_index_cursor: Cell<u64>,
    /// How many things were written since the start.
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

    fn record_change(&self, change: Change) {
        self.changes.borrow_mut().push(change);
    }

    fn mark_registry_changed(&self) {
        self.registry_changed.set(true);
    }

    fn set_counters(&self, counters: &Counters) {
        self.store_state.borrow_mut().counters = *counters;
    }

    /// A number that was never given out.
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
