//! Lanes and concurrency groups.

use pointsman_core::TaskSeq;
use pointsman_store::expand_sql;
use pointsman_store::row::{LaneHead, QueueId, WaitingTask};
use pointsman_store::tables::LaneTable;
use rusqlite::Connection;

use super::SqliteTables;
use super::queries::{
    query_all, query_first, query_up_to, read_phase, task_seq_from_row, waiting_task_from_row,
};
use crate::error::TableResult;

impl LaneTable for SqliteTables {
    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>> {
        // The index yields a lane's tasks by lane_position. ORDER BY or min() would make SQLite prepare the statement again
        // for every lane, which took an eighth of the writer's time.
        let sql = "SELECT seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase
                   FROM pointsman_task INDEXED BY pointsman_task_lane
                   WHERE lane = ?1 AND lane_position IS NOT NULL LIMIT 1";
        query_first(&self.conn, sql, [lane], |row| {
            Ok(LaneHead {
                task: waiting_task_from_row(row)?,
                lane_position: row.get(6)?,
                phase: read_phase(row, 7)?,
            })
        })
    }

    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        let sql = "SELECT seq, queue FROM pointsman_task INDEXED BY pointsman_task_lane
                   WHERE lane = ?1 AND lane_position IS NOT NULL";
        query_all(&self.conn, sql, [lane], |row| Ok((task_seq_from_row(row)?, row.get(1)?)))
    }

    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        concurrency_group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let sql = expand_sql!(
            "SELECT seq FROM pointsman_task
             WHERE concurrency_group = ?1 AND phase IN (:ready, :scheduled, :locked)"
        );
        query_up_to(&self.conn, sql, [concurrency_group], limit, task_seq_from_row)
    }

    fn find_oldest_blocked_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
    ) -> TableResult<Option<WaitingTask>> {
        let sql = expand_sql!(
            "SELECT seq, queue, key_bucket, concurrency_group, score, due FROM pointsman_task
             WHERE concurrency_group = ?1 AND phase = :blocked_by_task LIMIT 1"
        );
        query_first(&self.conn, sql, [concurrency_group], waiting_task_from_row)
    }
}

/// Finds the first lane from `from` to `to` that has tasks; returns it with its head.
pub(crate) fn find_first_occupied_lane(
    conn: &Connection,
    from: i64,
    to: i64,
) -> TableResult<Option<(i64, TaskSeq)>> {
    let sql = "SELECT seq, lane FROM pointsman_task INDEXED BY pointsman_task_lane
               WHERE lane BETWEEN ?1 AND ?2 AND lane_position IS NOT NULL ORDER BY lane, lane_position LIMIT 1";
    query_first(conn, sql, (from, to), |row| Ok((row.get(1)?, task_seq_from_row(row)?)))
}

/// Counts the tasks in a lane, up to `limit`.
pub(crate) fn count_lane_tasks(conn: &Connection, lane: i64, limit: u64) -> TableResult<u64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM pointsman_task INDEXED BY pointsman_task_lane
               WHERE lane = ?1 AND lane_position IS NOT NULL LIMIT ?2)";
    Ok(conn.prepare_cached(sql)?.query_row((lane, limit as i64), |row| row.get::<_, i64>(0))?.unsigned_abs())
}
