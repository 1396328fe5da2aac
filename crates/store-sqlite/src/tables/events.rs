//! The journal.

use pointsman_core::{Event, EventId, TaskSeq};
use pointsman_store::tables::EventTable;
use pointsman_store::views::encode_context;
use rusqlite::Connection;

use super::SqliteTables;
use super::row::{event_columns, event_from_row, query_all, query_first};
use crate::error::TableResult;

/// One in this many events is added to the sparse index, by which an event is found by its number.
const SPARSE_INDEX_INTERVAL: i64 = 1000;

impl EventTable for SqliteTables {
    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        let sql = "INSERT INTO pointsman_journal
                     (id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth, first_task, tasks)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
        self.conn.prepare_cached(sql)?.execute(rusqlite::params![
            event.id.as_i64(),
            event.prev.map(EventId::as_i64),
            event.event_type.as_str(),
            event.key.as_ref().map(|key| key.as_str()),
            event.sub_object.as_ref().map(|key| key.as_str()),
            event.tenant.as_str(),
            event.value.as_str(),
            encode_context(event)?,
            event.cause.and_then(|cause| cause.event).map(EventId::as_i64),
            event.cause.map(|cause| cause.task.0),
            event.cause_depth(),
            first_task.0,
            task_count as i64,
        ])?;
        if number % SPARSE_INDEX_INTERVAL == 0 {
            let sql = "INSERT INTO pointsman_journal_sparse_index (number, id) VALUES (?1, ?2)";
            self.conn.prepare_cached(sql)?.execute((number, event.id.as_i64()))?;
        }
        Ok(())
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        read_event(&self.conn, id)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        let sql = concat!(
            "SELECT ",
            event_columns!(),
            " FROM pointsman_journal WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3"
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
    let sql = concat!("SELECT ", event_columns!(), " FROM pointsman_journal WHERE id = ?1");
    query_first(conn, sql, [id.as_i64()], event_from_row)
}
