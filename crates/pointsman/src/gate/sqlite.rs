//! Marks in a SQLite file: one of their own, or the one that the consumer has its rows in.

use std::path::Path;
use std::time::Duration;

use pointsman_core::EventId;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Mark, Marks, Object};

/// `exact` is 1 for an event that was handled, and 0 for an id up to which all count as handled.
const LAYOUT: &str = "CREATE TABLE IF NOT EXISTS gate_marks (
    consumer TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    id INTEGER NOT NULL,
    exact INTEGER NOT NULL,
    PRIMARY KEY (consumer, tenant, key)
) WITHOUT ROWID";

/// How long another writer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Marks in the table `gate_marks`, which is made if it is not there. Several consumers may share a file, each by
/// its name.
#[derive(Debug)]
pub struct SqliteMarks {
    conn: Connection,
    consumer: String,
}

impl SqliteMarks {
    /// Opens or makes the file, in WAL mode. A mark is on disk before it counts.
    pub fn open(path: impl AsRef<Path>, consumer: impl Into<String>) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(PATIENCE)?;
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        Self::on(conn, consumer)
    }

    /// The same on a connection of the caller's, whose settings stay as they are.
    pub fn on(conn: Connection, consumer: impl Into<String>) -> rusqlite::Result<Self> {
        conn.execute_batch(LAYOUT)?;
        Ok(Self { conn, consumer: consumer.into() })
    }

    /// Writes a mark on any connection to the database. Marks never go back, whoever comes late.
    pub(super) fn write(&self, conn: &Connection, object: &Object, mark: Mark) -> rusqlite::Result<()> {
        let (id, exact) = match mark {
            Mark::Handled(id) => (id, true),
            Mark::UpTo(id) => (id, false),
        };
        let mut statement = conn.prepare_cached(
            "INSERT INTO gate_marks (consumer, tenant, key, id, exact) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET id = excluded.id, exact = excluded.exact WHERE excluded.id >= id",
        )?;
        let (tenant, key) = (object.tenant.as_str(), object.key.as_str());
        statement.execute(params![self.consumer, tenant, key, id.as_i64(), exact])?;
        Ok(())
    }
}

impl Marks for SqliteMarks {
    type Error = rusqlite::Error;

    fn mark(&self, object: &Object) -> rusqlite::Result<Option<Mark>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, exact FROM gate_marks WHERE consumer = ?1 AND tenant = ?2 AND key = ?3",
        )?;
        let read = |row: &rusqlite::Row<'_>| {
            let id = EventId::from_i64(row.get(0)?);
            Ok(if row.get(1)? { Mark::Handled(id) } else { Mark::UpTo(id) })
        };
        statement
            .query_row(params![self.consumer, object.tenant.as_str(), object.key.as_str()], read)
            .optional()
    }

    fn remember(&mut self, object: &Object, mark: Mark) -> rusqlite::Result<()> {
        self.write(&self.conn, object, mark)
    }
}
