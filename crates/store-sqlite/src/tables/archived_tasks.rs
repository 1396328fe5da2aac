//! Archived tasks, attempts and logs.

use pointsman_core::task::{AttemptOutcome, LogLine, Task};
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::row::{
    ArchivedTaskRow, AttemptRow, decode_attempt_outcome, encode_attempt_outcome, encode_error_reason,
    encode_log_level,
};
use pointsman_store::tables::ArchivedTaskTable;
use rusqlite::Connection;

use super::SqliteTables;
use super::row::{archived_task_columns, archived_task_from_row, query_all, query_first};
use crate::error::TableResult;
use crate::read_tasks;

impl ArchivedTaskTable for SqliteTables {
    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        read_archived_task(&self.conn, seq)
    }

    fn insert_archived_task(&mut self, archived_task: &ArchivedTaskRow) -> TableResult<()> {
        let sql = concat!(
            "INSERT INTO pointsman_history (",
            archived_task_columns!(),
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
             ?22)"
        );
        self.conn.prepare_cached(sql)?.execute(rusqlite::params![
            archived_task.seq.0,
            archived_task.queue,
            archived_task.event.map(EventId::as_i64),
            archived_task.subject_name,
            archived_task.key,
            archived_task.encode_status(),
            archived_task.lifecycle.state.error_reason().map(encode_error_reason),
            archived_task.is_sync,
            archived_task.sync_stage,
            archived_task.priority,
            archived_task.lifecycle.attempt,
            archived_task.lifecycle.retries,
            archived_task.lifecycle.crashes,
            archived_task.lifecycle.out_of_order,
            archived_task.lifecycle.has_lane,
            archived_task.prev_sent_event.map(EventId::as_i64),
            archived_task.planned_at.map(Timestamp::micros),
            archived_task.created_at.micros(),
            archived_task.started_at.map(Timestamp::micros),
            archived_task.finished_at.micros(),
            archived_task.error,
            archived_task.result,
        ])?;
        Ok(())
    }

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        self.conn.prepare_cached("DELETE FROM pointsman_history WHERE seq = ?1")?.execute([seq.0])?;
        Ok(())
    }

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_attempt (task, number, started, ended, outcome, error)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.conn.prepare_cached(sql)?.execute((
            attempt.task.0,
            attempt.number,
            attempt.started_at.micros(),
            attempt.ended_at.micros(),
            encode_attempt_outcome(attempt.outcome),
            attempt.error,
        ))?;
        Ok(())
    }

    fn list_attempt_outcomes(&mut self, task: TaskSeq) -> TableResult<Vec<AttemptOutcome>> {
        let sql = "SELECT outcome FROM pointsman_attempt WHERE task = ?1";
        query_all(&self.conn, sql, [task.0], |row| decode_attempt_outcome(row.get(0)?))
    }

    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let sql = "SELECT coalesce(max(n), -1) + 1 FROM pointsman_log WHERE task = ?1";
        let next_number: i64 = self.conn.prepare_cached(sql)?.query_row([task.0], |r| r.get(0))?;
        let sql = "INSERT INTO pointsman_log (task, n, time, level, message) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.conn.prepare_cached(sql)?;
        for (n, line) in (next_number..).zip(lines) {
            insert.execute((task.0, n, line.time.micros(), encode_log_level(line.level), line.message))?;
        }
        Ok(())
    }

    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        read_tasks::read_task(&self.conn, seq)
    }
}

pub(crate) fn read_archived_task(conn: &Connection, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
    let sql = concat!("SELECT ", archived_task_columns!(), " FROM pointsman_history WHERE seq = ?1");
    query_first(conn, sql, [seq.0], archived_task_from_row)
}
