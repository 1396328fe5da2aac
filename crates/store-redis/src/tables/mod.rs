//! The tables, as one transaction of the writer sees them.
//!
//! A transaction begins with the turn, looks at Redis through a [`TransactionOverlay`], and is sent whole by its commit, which Redis
//! takes only if nobody has written since. Having the turn makes that likely; it is not what makes it safe.

mod chains;
mod documented;
mod ended;
mod events;
mod forgetting;
mod moving;
mod objects;
pub(crate) mod outbox;
mod registry;
pub(crate) mod schedules;
mod tasks;
mod trait_impl;
mod transaction;

use std::cell::{Cell, RefCell};

use pointsman_store::SetAsideLog;
use pointsman_store::clock::CallerTime;
use pointsman_store::commits::{Change, Point};
use pointsman_store::tables::Counters;
use uuid::Uuid;

use self::outbox::Outbox;
use crate::connection::BlockingConnection;
use crate::keys::Keys;
use crate::overlay::TransactionOverlay;
use crate::standing::Standing;

/// So many words of log lines go into one command; a line is two of them.
const LOG_WORDS: usize = 2_000;

/// What the writer sees of Redis.
pub struct RedisTables {
    pub(crate) overlay: TransactionOverlay,
    /// For what is journaled without anybody asking for it.
    pub(crate) time: CallerTime,
    /// The name under which this writer has the turn.
    me: String,
    standing: RefCell<Standing>,
    /// As it was when the transaction began.
    before: RefCell<Standing>,
    /// What this transaction changes that others may remember otherwise.
    changes: RefCell<Vec<Change>>,
    /// Handlers, chains, rules or nodes have changed in this transaction.
    registry_changed: Cell<bool>,
    /// The commit that the memory beside the tables is of, and the version of the registry.
    remembered: Cell<Option<(Point, i64)>>,
    /// For so many transactions more, others are told what was written.
    company: Cell<u32>,
    /// What this transaction journals first.
    outbox: Outbox,
    pub(crate) set_aside_log: RefCell<SetAsideLog>,
    /// No deed before this number is there any more.
    first_deed: Cell<Option<i64>>,
    /// Where to continue the scan for objects that are not in their index.
    object_scan: Cell<u64>,
    /// How many things were written since the start.
    rows: Cell<u64>,
}

impl RedisTables {
    pub(crate) fn new(connection: BlockingConnection, keys: Keys) -> Self {
        Self {
            overlay: TransactionOverlay::new(connection, keys),
            time: CallerTime::default(),
            me: Uuid::new_v4().to_string(),
            standing: RefCell::default(),
            before: RefCell::default(),
            changes: RefCell::default(),
            registry_changed: Cell::default(),
            remembered: Cell::default(),
            company: Cell::default(),
            outbox: Outbox::default(),
            set_aside_log: RefCell::default(),
            first_deed: Cell::default(),
            object_scan: Cell::default(),
            rows: Cell::default(),
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.get()
    }

    fn changed(&self, change: Change) {
        self.changes.borrow_mut().push(change);
    }

    fn registry_changes(&self) {
        self.registry_changed.set(true);
    }

    fn note_counters(&self, counters: &Counters) {
        self.standing.borrow_mut().counters = *counters;
    }

    /// A number that was never given out.
    fn take(&self, number: impl Fn(&mut Standing) -> &mut i64) -> i64 {
        let mut standing = self.standing.borrow_mut();
        let number = number(&mut standing);
        *number += 1;
        *number
    }
}

impl std::fmt::Debug for RedisTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisTables")
    }
}
