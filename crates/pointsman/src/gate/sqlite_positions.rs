//! Positions in a SQLite file: a separate file, or the one with the consumer's own tables.

use std::path::Path;
use std::time::Duration;

use pointsman_core::EventId;
use rusqlite::{Connection, OptionalExtension, params};

use super::{ObjectPosition, PositionStore, TenantObjectKey};

/// Creates the table of positions. `exact` is 1 for [`ObjectPosition::LastHandled`] and 0 for
/// [`ObjectPosition::HandledUpTo`].
const CREATE_POSITION_TABLE: &str = "CREATE TABLE IF NOT EXISTS gate_marks (
    consumer TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    id INTEGER NOT NULL,
    exact INTEGER NOT NULL,
    PRIMARY KEY (consumer, tenant, key)
) WITHOUT ROWID";

/// How long a write waits for another connection's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Positions in the table `gate_marks`, which is created if necessary. Several consumers may share a file, each under
/// its own name.
#[derive(Debug)]
pub struct SqlitePositions {
    conn: Connection,
    consumer: String,
}

impl SqlitePositions {
    /// Opens or creates the file, in WAL mode. Writes are synced to disk.
    pub fn open(path: impl AsRef<Path>, consumer: impl Into<String>) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        Self::with_connection(conn, consumer)
    }

    /// Uses the caller's connection, whose settings stay as they are.
    pub fn with_connection(conn: Connection, consumer: impl Into<String>) -> rusqlite::Result<Self> {
        conn.execute_batch(CREATE_POSITION_TABLE)?;
        Ok(Self { conn, consumer: consumer.into() })
    }

    /// Writes a position on any connection to the database. A position never moves back, even if a late writer tries.
    pub(super) fn write_position_with_connection(
        &self,
        conn: &Connection,
        object: &TenantObjectKey,
        position: ObjectPosition,
    ) -> rusqlite::Result<()> {
        let (id, exact) = match position {
            ObjectPosition::LastHandled(id) => (id, true),
            ObjectPosition::HandledUpTo(id) => (id, false),
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

impl PositionStore for SqlitePositions {
    type Error = rusqlite::Error;

    fn read_position(&self, object: &TenantObjectKey) -> rusqlite::Result<Option<ObjectPosition>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, exact FROM gate_marks WHERE consumer = ?1 AND tenant = ?2 AND key = ?3",
        )?;
        let parse_row = |row: &rusqlite::Row<'_>| {
            let id = EventId::from_i64(row.get(0)?);
            Ok(if row.get(1)? { ObjectPosition::LastHandled(id) } else { ObjectPosition::HandledUpTo(id) })
        };
        statement
            .query_row(params![self.consumer, object.tenant.as_str(), object.key.as_str()], parse_row)
            .optional()
    }

    fn write_position(&mut self, object: &TenantObjectKey, position: ObjectPosition) -> rusqlite::Result<()> {
        self.write_position_with_connection(&self.conn, object, position)
    }
}
