//! Deletes old rows, a limited number in each transaction.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::tables::RetentionTables;
use rusqlite::Connection;

use super::SqliteTables;
use super::queries::{query_all, read_optional_event_id, read_time};
use crate::error::TableResult;

/// The maximum number of rows that one transaction examines or deletes, because emits wait for it.
const MAX_ROWS_PER_PASS: i64 = 500;

/// The number of deleted rows after which a transaction deletes no further task: a task may have a long log.
const MAX_DELETED_ROWS_PER_PASS: usize = 5_000;

impl RetentionTables for SqliteTables {
    fn delete_expired_events(
        &mut self,
        after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        // The low-water mark is stored first, so that no read finds deleted events above it.
        self.stored_counters.set_expired_up_to(&self.conn, expired_up_to)?;
        let sql = "SELECT id, EXISTS (SELECT 1 FROM pointsman_task
                                      WHERE seq >= first_task AND seq < first_task + tasks)
                              OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)
                   FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
        let range = (after.as_i64(), expired_up_to.as_i64(), MAX_ROWS_PER_PASS);
        let rows: Vec<(i64, bool)> = query_all(&self.conn, sql, range, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let is_full = rows.len() as i64 == MAX_ROWS_PER_PASS;
        let next_after = rows.last().filter(|_| is_full).map(|(id, _)| EventId::from_i64(*id));
        let mut deleted = 0;
        let mut delete = self.conn.prepare_cached("DELETE FROM pointsman_journal WHERE id = ?1")?;
        for (id, _) in rows.iter().filter(|(_, needed)| !needed) {
            deleted += delete.execute([id])? as u64;
        }
        // The last row of the sparse index up to the low-water mark is kept, because later events are counted from its
        // number.
        let sql = "DELETE FROM pointsman_journal_sparse_index
                   WHERE number < (SELECT max(number) FROM pointsman_journal_sparse_index WHERE id <= ?1)";
        self.conn.prepare_cached(sql)?.execute([expired_up_to.as_i64()])?;
        Ok((deleted, next_after))
    }

    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)> {
        let sql = "SELECT id, EXISTS (SELECT 1 FROM pointsman_task WHERE seq >= first_task AND seq < first_task + tasks)
                              OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)
                   FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
        let range = (after.as_i64(), up_to.as_i64(), limit as i64);
        let visited: Vec<(EventId, bool)> =
            query_all(&self.conn, sql, range, |row| Ok((EventId::from_i64(row.get(0)?), row.get(1)?)))?;
        let next = visited.last().filter(|_| visited.len() >= limit).map(|(id, _)| *id);
        Ok((visited.into_iter().filter(|(_, needed)| *needed).map(|(id, _)| id).collect(), next))
    }

    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> {
        let mut seqs = Vec::new();
        if surplus > 0 {
            let sql = "SELECT seq FROM pointsman_history ORDER BY seq LIMIT ?1";
            seqs = query_all(&self.conn, sql, [surplus.min(MAX_ROWS_PER_PASS)], |row| Ok(row.get(0)?))?;
        }
        if (seqs.len() as i64) < MAX_ROWS_PER_PASS {
            collect_tasks_ended_before(&self.conn, before, &mut seqs)?;
        }
        let has_more = seqs.len() as i64 >= MAX_ROWS_PER_PASS;
        let (deleted, stopped_early) = delete_tasks_with_logs(&self.conn, &seqs)?;
        Ok((deleted, has_more || stopped_early))
    }

    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool> {
        let sql = "DELETE FROM pointsman_idempotency_record WHERE n IN
                     (SELECT n FROM pointsman_idempotency_record ORDER BY n LIMIT ?2) AND at < ?1";
        let deleted = self.conn.prepare_cached(sql)?.execute((before.micros(), MAX_ROWS_PER_PASS))?;
        Ok(deleted as i64 == MAX_ROWS_PER_PASS)
    }

    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool> {
        let sql = "DELETE FROM pointsman_ended_order WHERE (key, tenant) IN
                     (SELECT key, tenant FROM pointsman_ended_order WHERE ended < ?1 ORDER BY ended LIMIT ?2)";
        let deleted = self.conn.prepare_cached(sql)?.execute((before.micros(), MAX_ROWS_PER_PASS))?;
        Ok(deleted as i64 == MAX_ROWS_PER_PASS)
    }

    /// Deletes old fires, nodes and audit entries, all of which are written in the order of time.
    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool> {
        let mut has_more = false;
        for sql in [
            "DELETE FROM pointsman_fire WHERE n IN (SELECT n FROM pointsman_fire ORDER BY n LIMIT ?2) AND at < ?1",
            "DELETE FROM pointsman_node WHERE gone = 1 AND last_heartbeat < ?1 AND id IN
               (SELECT id FROM pointsman_node ORDER BY id LIMIT ?2)",
            "DELETE FROM pointsman_audit_entry
             WHERE n IN (SELECT n FROM pointsman_audit_entry ORDER BY n LIMIT ?2) AND at < ?1",
        ] {
            let deleted = self.conn.prepare_cached(sql)?.execute((before.micros(), MAX_ROWS_PER_PASS))?;
            has_more |= deleted as i64 == MAX_ROWS_PER_PASS;
        }
        Ok(has_more)
    }
}

/// Deletes these tasks, and stops when their logs make it too many rows; returns how many were deleted, and whether it
/// stopped early.
fn delete_tasks_with_logs(conn: &Connection, seqs: &[i64]) -> TableResult<(u64, bool)> {
    let (mut deleted, mut rows) = (0, 0);
    for seq in seqs {
        if rows >= MAX_DELETED_ROWS_PER_PASS {
            return Ok((deleted, true));
        }
        for sql in [
            "DELETE FROM pointsman_attempt WHERE task = ?1",
            "DELETE FROM pointsman_log WHERE task = ?1",
            "DELETE FROM pointsman_history WHERE seq = ?1",
        ] {
            rows += conn.prepare_cached(sql)?.execute([seq])?;
        }
        deleted += 1;
    }
    Ok((deleted, false))
}

/// Adds the tasks that ended before `cutoff`. Their events were journaled before it too, so that only the oldest rows
/// need to be examined. When an event was journaled is read from its id: ids ascend even if the clock once ran ahead.
fn collect_tasks_ended_before(conn: &Connection, cutoff: Timestamp, seqs: &mut Vec<i64>) -> TableResult<()> {
    let after = seqs.last().copied().unwrap_or(0);
    let sql = "SELECT seq, event, finished, created FROM pointsman_history WHERE seq > ?1 ORDER BY seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([after])?;
    let mut examined = 0;
    while let Some(row) = rows.next()? {
        examined += 1;
        let journaled_at = match read_optional_event_id(row, 1)? {
            Some(event) => event.timestamp(),
            None => read_time(row, 3)?,
        };
        if journaled_at >= cutoff
            || seqs.len() as i64 >= MAX_ROWS_PER_PASS
            || examined > MAX_DELETED_ROWS_PER_PASS
        {
            break;
        }
        if read_time(row, 2)? < cutoff {
            seqs.push(row.get(0)?);
        }
    }
    Ok(())
}
