//! The tables within a transaction of the writer.
//!
//! A transaction acquires the write lock, reads through a [`TransactionOverlay`], and sends all writes with its commit, which Redis
//! accepts only if no other commit happened. The lock makes conflicts unlikely; correctness does not depend on it.

mod active_tasks;
mod archived_tasks;
mod audit;
mod chains;
mod config_digests;
mod copy_pages;
mod events;
mod handlers;
mod idempotency;
mod lanes;
mod meta;
mod nodes;
mod objects;
mod orders;
pub(crate) mod outbox;
mod queues;
mod retention;
mod rules;
mod schedules;
mod source_task_keys;
mod transaction;

use pointsman_store::SetAsideEntryLog;
use pointsman_store::caller_time_source::CallerTimeSource;
use pointsman_store::invalidation::{CommitVersion, Invalidation};
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
    store_state: StoreState,
    /// Store state when the transaction began.
    store_state_at_begin: StoreState,
    /// Changes of this transaction that peers must apply to what they keep in memory.
    invalidations: Vec<Invalidation>,
    /// Whether handlers, chains, rules or nodes have changed in this transaction.
    registry_changed: bool,
    /// Commit version and registry version that the caches reflect.
    cached_versions: Option<(CommitVersion, i64)>,
    /// Number of transactions for which peers still count as active, so that commits publish invalidation records.
    peer_activity_countdown: u32,
    /// Outbox entries that this transaction journals first.
    outbox_state: OutboxState,
    pub(crate) set_aside_log: SetAsideEntryLog,
    /// Number of the first audit entry that is still stored, if known: all before it are deleted.
    first_audit_entry_number: Option<i64>,
    /// Number of rows written since the start.
    rows_written: u64,
}

impl RedisTables {
    pub(crate) fn new(connection: BlockingConnection, keys: Keys) -> Self {
        Self {
            overlay: TransactionOverlay::new(connection, keys),
            caller_time: CallerTimeSource::default(),
            lock_owner_name: Uuid::new_v4().to_string(),
            store_state: StoreState::default(),
            store_state_at_begin: StoreState::default(),
            invalidations: vec![],
            registry_changed: false,
            cached_versions: None,
            peer_activity_countdown: 0,
            outbox_state: OutboxState::default(),
            set_aside_log: SetAsideEntryLog::default(),
            first_audit_entry_number: None,
            rows_written: 0,
        }
    }

    pub(crate) fn rows_written(&self) -> u64 {
        self.rows_written
    }

    fn record_invalidation(&mut self, invalidation: Invalidation) {
        self.invalidations.push(invalidation);
    }

    fn mark_registry_changed(&mut self) {
        self.registry_changed = true;
    }

    /// Increments one of the last assigned numbers in the store state and returns it.
    fn assign_next_number(&mut self, last_number: impl Fn(&mut StoreState) -> &mut i64) -> i64 {
        let number = last_number(&mut self.store_state);
        *number += 1;
        *number
    }
}

impl std::fmt::Debug for RedisTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisTables")
    }
}
