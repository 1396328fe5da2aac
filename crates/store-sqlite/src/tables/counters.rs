//! Counters that only grow, and named values (`pointsman_meta`).

use std::cell::Cell;

use pointsman_core::EventId;
use pointsman_core::task::TaskIdNamespace;
use pointsman_store::tables::Counters;
use rusqlite::types::{FromSql, ToSql};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Fault, Result};

/// The size of a block of reserved numbers. Numbers that no row records are reserved in blocks: after a start they
/// continue after the reserved block, and few commits have to write the counter.
const RESERVATION_SIZE: i64 = 100_000;

/// The counters as stored in the file.
#[derive(Debug, Default)]
pub(crate) struct StoredCounters {
    ended: Cell<i64>,
    expired_up_to: Cell<EventId>,
    fences: Cell<i64>,
    objects: Cell<i64>,
    tasks: Cell<i64>,
}

impl StoredCounters {
    /// Reads the counters.
    pub(crate) fn read_counters(&self, conn: &Connection) -> Result<Counters> {
        let number = |name| -> Result<i64> { Ok(read_meta(conn, name)?.unwrap_or(0)) };
        self.ended.set(number("archived_tasks")?);
        self.expired_up_to.set(EventId::from_i64(number("expired_up_to")?));
        self.fences.set(number("last_fence")?);
        self.objects.set(number("last_object")?);
        self.tasks.set(number("last_task")?);
        let expired_up_to = self.expired_up_to.get();
        let newest = EventId::from_i64(read_max(conn, "SELECT max(id) FROM pointsman_journal")?);
        let tasks = read_max(conn, "SELECT max(seq) FROM pointsman_task")?
            .max(read_max(conn, "SELECT max(seq) FROM pointsman_history")?);
        Ok(Counters {
            last_event: newest.max(expired_up_to),
            expired_up_to,
            last_task: tasks.max(self.tasks.get()),
            last_fence: self.fences.get(),
            last_object: self.objects.get(),
            last_order: read_max(conn, "SELECT max(n) FROM pointsman_order")?,
            journaled_events: count_journaled_events(conn)?,
            archived_tasks: self.ended.get(),
            next_due: None,
        })
    }

    pub(super) fn write_counters(&self, conn: &Connection, counters: &Counters) -> Result<()> {
        if counters.archived_tasks != self.ended.get() {
            write_meta(conn, "archived_tasks", counters.archived_tasks)?;
            self.ended.set(counters.archived_tasks);
        }
        self.set_expired_up_to(conn, counters.expired_up_to)?;
        reserve_numbers(conn, "last_fence", counters.last_fence, &self.fences)?;
        reserve_numbers(conn, "last_object", counters.last_object, &self.objects)?;
        reserve_numbers(conn, "last_task", counters.last_task, &self.tasks)
    }

    /// Stores the low-water mark: observers see no event at or below this id any more.
    pub(super) fn set_expired_up_to(&self, conn: &Connection, expired_up_to: EventId) -> Result<()> {
        if expired_up_to != self.expired_up_to.get() {
            write_meta(conn, "expired_up_to", expired_up_to.as_i64())?;
            self.expired_up_to.set(expired_up_to);
        }
        Ok(())
    }
}

fn reserve_numbers(conn: &Connection, name: &str, given: i64, reserved: &Cell<i64>) -> Result<()> {
    if given > reserved.get() {
        reserved.set(given + RESERVATION_SIZE);
        write_meta(conn, name, reserved.get())?;
    }
    Ok(())
}

fn read_max(conn: &Connection, sql: &str) -> Result<i64> {
    Ok(conn.query_row(sql, [], |r| r.get::<_, Option<i64>>(0))?.unwrap_or(0))
}

/// Counts all events ever journaled: the number in the last row of the sparse index, plus the events after that row.
pub(crate) fn count_journaled_events(conn: &Connection) -> Result<i64> {
    let last = "SELECT number, id FROM pointsman_journal_sparse_index ORDER BY number DESC LIMIT 1";
    let last = conn.query_row(last, [], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    let (marked, mark): (i64, i64) = last.unwrap_or((0, 0));
    let since = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    Ok(marked + conn.query_row(since, [mark], |r| r.get::<_, i64>(0))?)
}

pub(crate) fn read_task_id_namespace(conn: &Connection) -> Result<TaskIdNamespace> {
    let namespace: Option<i64> = read_meta(conn, "task_id_namespace")?;
    let namespace = namespace.ok_or_else(|| Fault::damaged("pointsman_meta has no task_id_namespace"))?;
    Ok(TaskIdNamespace(namespace as u64))
}

pub(super) fn read_salt(conn: &Connection) -> Result<u64> {
    let salt: Option<i64> = read_meta(conn, "salt")?;
    Ok(salt.ok_or_else(|| Fault::damaged("pointsman_meta has no salt"))? as u64)
}

/// Reads a named value.
pub(crate) fn read_meta<T: FromSql>(conn: &Connection, name: &str) -> Result<Option<T>> {
    let mut statement = conn.prepare_cached("SELECT value FROM pointsman_meta WHERE name = ?1")?;
    Ok(statement.query_row([name], |r| r.get(0)).optional()?)
}

pub(crate) fn write_meta(conn: &Connection, name: &str, value: impl ToSql) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES (?1, ?2)";
    conn.prepare_cached(sql)?.execute((name, value))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{self, DatabaseLocation};

    #[test]
    fn numbers_continue_behind_the_reserved_block_after_a_start() {
        let conn = open::open_writer(&DatabaseLocation::Memory, open::MIGRATIONS).unwrap();
        let stored = StoredCounters::default();
        let none = stored.read_counters(&conn).unwrap();
        assert_eq!(none, Counters::default());
        let given = Counters { last_task: 7, last_fence: 3, last_object: 1, archived_tasks: 2, ..none };
        stored.write_counters(&conn, &given).unwrap();
        let changes = conn.total_changes();
        let further = Counters { last_task: 8, last_fence: 4, last_object: 2, ..given };
        stored.write_counters(&conn, &further).unwrap();
        assert_eq!(conn.total_changes(), changes, "a reserved number is not written again");
        let again = StoredCounters::default().read_counters(&conn).unwrap();
        assert!(again.last_task >= 8 && again.last_fence >= 4 && again.last_object >= 2, "{again:?}");
        assert_eq!(again.archived_tasks, 2);
    }
}
