//! Implements the table traits of the common store on the file, one file for each. Each operation runs one or a few SQL
//! statements; those that readers use too are functions on a connection.

pub(crate) mod active_tasks;
pub(crate) mod archived_tasks;
mod audit;
pub(crate) mod chains;
mod config_digests;
pub(crate) mod events;
mod handlers;
mod idempotency;
pub(crate) mod lanes;
pub(crate) mod meta;
mod nodes;
mod objects;
mod orders;
pub(crate) mod queries;
mod queues;
mod retention;
pub(crate) mod rules;
mod schedules;

use rusqlite::Connection;

use self::meta::StoredCounters;

/// The tables of the file, as its one writer uses them.
#[derive(Debug)]
pub struct SqliteTables {
    conn: Connection,
    stored_counters: StoredCounters,
}

impl SqliteTables {
    pub(crate) fn new(conn: Connection) -> Self {
        Self { conn, stored_counters: StoredCounters::default() }
    }

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }
}
