//! Counters, which only grow, except that of archived tasks; and named values (`pointsman_meta`).

use pointsman_core::EventId;
use pointsman_core::task::TaskIdNamespace;
use pointsman_store::tables::{Counters, MetaTable};
use rusqlite::types::{FromSql, ToSql};
use rusqlite::{Connection, OptionalExtension};

use super::SqliteTables;
use crate::error::{Fault, TableResult};

/// The size of a block of reserved numbers. The last used number of some counters is in no row, so numbers are reserved
/// in blocks: after a start they continue after the reserved block, and few commits have to write the counter.
const NUMBER_RESERVATION_SIZE: i64 = 100_000;

impl MetaTable for SqliteTables {
    fn read_counters(&mut self) -> TableResult<Counters> {
        self.stored_counters.read_counters(&self.conn)
    }

    fn write_counters(&mut self, counters: &Counters) -> TableResult<()> {
        self.stored_counters.write_counters(&self.conn, counters)
    }

    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        read_task_id_namespace(&self.conn)
    }

    fn read_hash_salt(&mut self) -> TableResult<u64> {
        let salt: Option<i64> = read_meta_value(&self.conn, "salt")?;
        Ok(salt.ok_or_else(|| Fault::damaged("pointsman_meta has no salt"))? as u64)
    }

    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        read_meta_value(&self.conn, name)
    }

    fn write_named_text(&mut self, name: &str, text: &str) -> TableResult<()> {
        write_meta_value(&self.conn, name, text)
    }
}

/// The counters as they are stored in the file. Counters that follow from rows are not among them.
#[derive(Debug, Default)]
pub(crate) struct StoredCounters {
    archived_task_count: i64,
    expired_up_to: EventId,
    last_reserved_fence: i64,
    last_reserved_object: i64,
    last_reserved_task: i64,
}

impl StoredCounters {
    /// Reads the counters: those that are stored, and those that follow from the rows.
    pub(crate) fn read_counters(&mut self, conn: &Connection) -> TableResult<Counters> {
        let number = |name| -> TableResult<i64> { Ok(read_meta_value(conn, name)?.unwrap_or(0)) };
        self.archived_task_count = number("archived_tasks")?;
        self.expired_up_to = EventId::from_i64(number("expired_up_to")?);
        self.last_reserved_fence = number("last_fence")?;
        self.last_reserved_object = number("last_object")?;
        self.last_reserved_task = number("last_task")?;
        let expired_up_to = self.expired_up_to;
        let newest_event =
            EventId::from_i64(query_max_or_zero(conn, "SELECT max(id) FROM pointsman_journal")?);
        let last_task = query_max_or_zero(conn, "SELECT max(seq) FROM pointsman_task")?
            .max(query_max_or_zero(conn, "SELECT max(seq) FROM pointsman_history")?);
        Ok(Counters {
            last_event: newest_event.max(expired_up_to),
            expired_up_to,
            last_task: last_task.max(self.last_reserved_task),
            last_fence: self.last_reserved_fence,
            last_object: self.last_reserved_object,
            last_order: query_max_or_zero(conn, "SELECT max(n) FROM pointsman_order")?,
            journaled_event_count: count_journaled_events(conn)?,
            archived_task_count: self.archived_task_count,
            next_due: None,
        })
    }

    pub(super) fn write_counters(&mut self, conn: &Connection, counters: &Counters) -> TableResult<()> {
        if counters.archived_task_count != self.archived_task_count {
            write_meta_value(conn, "archived_tasks", counters.archived_task_count)?;
            self.archived_task_count = counters.archived_task_count;
        }
        self.set_expired_up_to(conn, counters.expired_up_to)?;
        reserve_numbers(conn, "last_fence", counters.last_fence, &mut self.last_reserved_fence)?;
        reserve_numbers(conn, "last_object", counters.last_object, &mut self.last_reserved_object)?;
        reserve_numbers(conn, "last_task", counters.last_task, &mut self.last_reserved_task)
    }

    /// Stores the low-water mark: observers see no event at or below this id any more.
    pub(super) fn set_expired_up_to(&mut self, conn: &Connection, expired_up_to: EventId) -> TableResult<()> {
        if expired_up_to != self.expired_up_to {
            write_meta_value(conn, "expired_up_to", expired_up_to.as_i64())?;
            self.expired_up_to = expired_up_to;
        }
        Ok(())
    }
}

/// Reserves another block of numbers if `last_used` is beyond those reserved.
fn reserve_numbers(conn: &Connection, name: &str, last_used: i64, reserved: &mut i64) -> TableResult<()> {
    if last_used > *reserved {
        *reserved = last_used + NUMBER_RESERVATION_SIZE;
        write_meta_value(conn, name, *reserved)?;
    }
    Ok(())
}

fn query_max_or_zero(conn: &Connection, sql: &str) -> TableResult<i64> {
    Ok(conn.query_row(sql, [], |r| r.get::<_, Option<i64>>(0))?.unwrap_or(0))
}

/// Counts all events ever journaled: the number in the last row of the sparse index, plus the events after that row.
pub(crate) fn count_journaled_events(conn: &Connection) -> TableResult<i64> {
    let last = "SELECT number, id FROM pointsman_journal_sparse_index ORDER BY number DESC LIMIT 1";
    let last = conn.query_row(last, [], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    let (indexed_number, indexed_id): (i64, i64) = last.unwrap_or((0, 0));
    let since = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    Ok(indexed_number + conn.query_row(since, [indexed_id], |r| r.get::<_, i64>(0))?)
}

pub(crate) fn read_task_id_namespace(conn: &Connection) -> TableResult<TaskIdNamespace> {
    let namespace: Option<i64> = read_meta_value(conn, "task_id_namespace")?;
    let namespace = namespace.ok_or_else(|| Fault::damaged("pointsman_meta has no task_id_namespace"))?;
    Ok(TaskIdNamespace(namespace as u64))
}

/// Reads a named value.
pub(crate) fn read_meta_value<T: FromSql>(conn: &Connection, name: &str) -> TableResult<Option<T>> {
    let mut statement = conn.prepare_cached("SELECT text FROM pointsman_meta WHERE name = ?1")?;
    Ok(statement.query_row([name], |r| r.get(0)).optional()?)
}

pub(crate) fn write_meta_value(conn: &Connection, name: &str, value: impl ToSql) -> TableResult<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_meta (name, text) VALUES (?1, ?2)";
    conn.prepare_cached(sql)?.execute((name, value))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{self, DatabaseLocation};

    #[test]
    fn numbers_continue_after_the_reserved_block_when_reopened() {
        let conn = open::open_writer_connection(&DatabaseLocation::Memory, open::MIGRATIONS).unwrap();
        let mut stored = StoredCounters::default();
        let initial = stored.read_counters(&conn).unwrap();
        assert_eq!(initial, Counters::default());
        let last_used =
            Counters { last_task: 7, last_fence: 3, last_object: 1, archived_task_count: 2, ..initial };
        stored.write_counters(&conn, &last_used).unwrap();
        let changes = conn.total_changes();
        let next_counters = Counters { last_task: 8, last_fence: 4, last_object: 2, ..last_used };
        stored.write_counters(&conn, &next_counters).unwrap();
        assert_eq!(conn.total_changes(), changes, "a reserved number is not written again");
        let reopened = StoredCounters::default().read_counters(&conn).unwrap();
        assert!(
            reopened.last_task >= 8 && reopened.last_fence >= 4 && reopened.last_object >= 2,
            "{reopened:?}"
        );
        assert_eq!(reopened.archived_task_count, 2);
    }
}
