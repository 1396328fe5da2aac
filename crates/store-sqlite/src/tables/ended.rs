//! Ended tasks, attempts and logs.

use pointsman_core::task::LogLine;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::row::{AttemptRow, Past, end_code, level_code, reason_code};
use rusqlite::Connection;

use super::row::{first, past, past_of};
use crate::error::Result;

pub(crate) fn ended(conn: &Connection, seq: TaskSeq) -> Result<Option<Past>> {
    let sql = concat!("SELECT ", past!(), " FROM pointsman_history WHERE seq = ?1");
    first(conn, sql, [seq.0], past_of)
}

pub(super) fn insert(conn: &Connection, past: &Past) -> Result<()> {
    let sql = concat!(
        "INSERT INTO pointsman_history (",
        past!(),
        ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
         ?22)"
    );
    conn.prepare_cached(sql)?.execute(rusqlite::params![
        past.seq.0,
        past.queue,
        past.event.map(EventId::as_i64),
        past.collection,
        past.key,
        past.status_code(),
        past.life.state.reason().map(reason_code),
        past.sync,
        past.stage,
        past.priority,
        past.life.attempt,
        past.life.retries,
        past.life.crashes,
        past.life.late,
        past.life.laned,
        past.prev_sent.map(EventId::as_i64),
        past.planned.map(Timestamp::micros),
        past.created.micros(),
        past.started.map(Timestamp::micros),
        past.finished.micros(),
        past.error,
        past.result,
    ])?;
    Ok(())
}

pub(super) fn delete(conn: &Connection, seq: TaskSeq) -> Result<()> {
    conn.prepare_cached("DELETE FROM pointsman_history WHERE seq = ?1")?.execute([seq.0])?;
    Ok(())
}

pub(super) fn put_attempt(conn: &Connection, attempt: &AttemptRow<'_>) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_attempt (task, number, started, ended, how, error)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    conn.prepare_cached(sql)?.execute((
        attempt.task.0,
        attempt.number,
        attempt.started.micros(),
        attempt.ended.micros(),
        end_code(attempt.end),
        attempt.error,
    ))?;
    Ok(())
}

pub(super) fn add_log_lines(conn: &Connection, task: TaskSeq, lines: Vec<LogLine>) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let next = "SELECT coalesce(max(n), -1) + 1 FROM pointsman_log WHERE task = ?1";
    let next: i64 = conn.prepare_cached(next)?.query_row([task.0], |r| r.get(0))?;
    let sql = "INSERT INTO pointsman_log (task, n, time, level, message) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = conn.prepare_cached(sql)?;
    for (n, line) in (next..).zip(lines) {
        insert.execute((task.0, n, line.time.micros(), level_code(line.level), line.message))?;
    }
    Ok(())
}
