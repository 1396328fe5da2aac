//! The journal.

use pointsman_core::{Event, EventId, TaskSeq};
use pointsman_store::columns::EventColumns;
use pointsman_store::expand_sql;
use pointsman_store::store_copy::JOURNAL_SPARSE_INDEX_INTERVAL;
use pointsman_store::tables::EventTable;
use rusqlite::{Connection, Row};

use super::SqliteTables;
use super::queries::{query_all, query_first, read_columns, write_columns};
use crate::error::TableResult;

impl EventTable for SqliteTables {
    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        let sql = expand_sql!("INSERT INTO pointsman_journal (:event_columns) VALUES (:event_parameters)");
        write_columns(&self.conn, sql, &EventColumns::from_event(event, first_task, task_count)?)?;
        if number % JOURNAL_SPARSE_INDEX_INTERVAL == 0 {
            let sql = "INSERT INTO pointsman_journal_sparse_index (number, id) VALUES (?1, ?2)";
            self.conn.prepare_cached(sql)?.execute((number, event.id.as_i64()))?;
        }
        Ok(())
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        read_event(&self.conn, id)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        let sql = expand_sql!(
            "SELECT :event_columns FROM pointsman_journal WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3"
        );
        query_all(&self.conn, sql, (from.as_i64(), to.as_i64(), limit as i64), event_from_row)
    }

    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>> {
        let sql =
            "SELECT id FROM pointsman_journal_sparse_index WHERE number <= ?1 ORDER BY number DESC LIMIT 1";
        query_first(&self.conn, sql, [number], |row| Ok(EventId::from_i64(row.get(0)?)))
    }

    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId> {
        let sql = "SELECT coalesce(max(id), 0) FROM pointsman_journal WHERE id <= ?1";
        Ok(EventId::from_i64(self.conn.prepare_cached(sql)?.query_row([id.as_i64()], |r| r.get(0))?))
    }
}

pub(crate) fn read_event(conn: &Connection, id: EventId) -> TableResult<Option<Event>> {
    let sql = expand_sql!("SELECT :event_columns FROM pointsman_journal WHERE id = ?1");
    query_first(conn, sql, [id.as_i64()], event_from_row)
}

pub(crate) fn event_from_row(row: &Row<'_>) -> TableResult<Event> {
    read_columns::<EventColumns>(row)?.into_event()
}
