//! Numbers that only grow, and what is kept under a name.

use std::cell::Cell;

use pointsman_core::EventId;
use pointsman_core::task::Realm;
use pointsman_store::tables::Counters;
use rusqlite::types::{FromSql, ToSql};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Fault, Result};

/// Numbers that leave no trace by themselves are reserved in blocks: after a start they go on behind what was reserved,
/// and hardly a commit has to write how far they have come.
const RESERVED_AT_ONCE: i64 = 100_000;

/// What the file says of the counters.
#[derive(Debug, Default)]
pub(crate) struct Written {
    ended: Cell<i64>,
    forgotten: Cell<EventId>,
    fences: Cell<i64>,
    objects: Cell<i64>,
    tasks: Cell<i64>,
}

impl Written {
    /// Reads how far the counters have come.
    pub(crate) fn counters(&self, conn: &Connection) -> Result<Counters> {
        let number = |name| -> Result<i64> { Ok(meta(conn, name)?.unwrap_or(0)) };
        self.ended.set(number("ended")?);
        self.forgotten.set(EventId::from_i64(number("forgotten")?));
        self.fences.set(number("fences")?);
        self.objects.set(number("objects")?);
        self.tasks.set(number("task_floor")?);
        let forgotten = self.forgotten.get();
        let newest = EventId::from_i64(greatest(conn, "SELECT max(id) FROM pointsman_journal")?);
        let tasks = greatest(conn, "SELECT max(seq) FROM pointsman_task")?
            .max(greatest(conn, "SELECT max(seq) FROM pointsman_history")?);
        Ok(Counters {
            last_event: newest.max(forgotten),
            forgotten,
            tasks: tasks.max(self.tasks.get()),
            fences: self.fences.get(),
            objects: self.objects.get(),
            orders: greatest(conn, "SELECT max(n) FROM pointsman_order")?,
            journaled: journaled(conn)?,
            ended: self.ended.get(),
            next_due: None,
        })
    }

    pub(super) fn keep(&self, conn: &Connection, counters: &Counters) -> Result<()> {
        if counters.ended != self.ended.get() {
            put_meta(conn, "ended", counters.ended)?;
            self.ended.set(counters.ended);
        }
        self.forget(conn, counters.forgotten)?;
        reserve(conn, "fences", counters.fences, &self.fences)?;
        reserve(conn, "objects", counters.objects, &self.objects)?;
        reserve(conn, "task_floor", counters.tasks, &self.tasks)
    }

    /// Observers see nothing at or below this any more.
    pub(super) fn forget(&self, conn: &Connection, forgotten: EventId) -> Result<()> {
        if forgotten != self.forgotten.get() {
            put_meta(conn, "forgotten", forgotten.as_i64())?;
            self.forgotten.set(forgotten);
        }
        Ok(())
    }
}

fn reserve(conn: &Connection, name: &str, given: i64, reserved: &Cell<i64>) -> Result<()> {
    if given > reserved.get() {
        reserved.set(given + RESERVED_AT_ONCE);
        put_meta(conn, name, reserved.get())?;
    }
    Ok(())
}

fn greatest(conn: &Connection, sql: &str) -> Result<i64> {
    Ok(conn.query_row(sql, [], |r| r.get::<_, Option<i64>>(0))?.unwrap_or(0))
}

/// How many events there ever were: a mark says how many there were up to it.
pub(crate) fn journaled(conn: &Connection) -> Result<i64> {
    let last = "SELECT n, id FROM pointsman_mark ORDER BY n DESC LIMIT 1";
    let last = conn.query_row(last, [], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    let (marked, mark): (i64, i64) = last.unwrap_or((0, 0));
    let since = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    Ok(marked + conn.query_row(since, [mark], |r| r.get::<_, i64>(0))?)
}

pub(crate) fn realm(conn: &Connection) -> Result<Realm> {
    let realm: Option<i64> = meta(conn, "realm")?;
    Ok(Realm(realm.ok_or_else(|| Fault::damaged("no realm"))? as u64))
}

pub(super) fn salt(conn: &Connection) -> Result<u64> {
    let salt: Option<i64> = meta(conn, "salt")?;
    Ok(salt.ok_or_else(|| Fault::damaged("no salt"))? as u64)
}

/// What is kept under a name.
pub(crate) fn meta<T: FromSql>(conn: &Connection, name: &str) -> Result<Option<T>> {
    let mut statement = conn.prepare_cached("SELECT value FROM pointsman_meta WHERE name = ?1")?;
    Ok(statement.query_row([name], |r| r.get(0)).optional()?)
}

pub(crate) fn put_meta(conn: &Connection, name: &str, value: impl ToSql) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES (?1, ?2)";
    conn.prepare_cached(sql)?.execute((name, value))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{self, Place};

    #[test]
    fn after_a_start_numbers_go_on_behind_what_was_reserved() {
        let conn = open::writer(&Place::Memory).unwrap();
        let written = Written::default();
        let none = written.counters(&conn).unwrap();
        assert_eq!(none, Counters::default());
        let given = Counters { tasks: 7, fences: 3, objects: 1, ended: 2, ..none };
        written.keep(&conn, &given).unwrap();
        let changes = conn.total_changes();
        let further = Counters { tasks: 8, fences: 4, objects: 2, ..given };
        written.keep(&conn, &further).unwrap();
        assert_eq!(conn.total_changes(), changes, "what is reserved is not written again");
        let again = Written::default().counters(&conn).unwrap();
        assert!(again.tasks >= 8 && again.fences >= 4 && again.objects >= 2, "{again:?}");
        assert_eq!(again.ended, 2);
    }
}
