//! Reading tasks, their logs, and queues.

use pointsman_core::store::{LogPage, MOST_ATTEMPTS, QueueView, StoredLine};
use pointsman_core::task::{Attempt, LogLine, QueueOf, Task, TaskSeq};
use pointsman_core::{EventId, HandlerName, TaskId, Tenant, Timestamp};
use pointsman_store::row::{Counts, Live, Past, QueueId, end_of, level_of};
use pointsman_store::tables::seq_of;
use pointsman_store::views::{LOG_BYTES, LiveNames, has_ended, task_of_live, task_of_past, with_success};
use rusqlite::Connection;

use crate::error::{Fault, Result};
use crate::read_orders::surroundings;
use crate::tables::numbers::realm;
use crate::tables::row::{all, first, text, time, time_if_any};
use crate::tables::{ended, tasks};

/// A task with its attempts, wherever it lies.
pub(crate) fn task(conn: &Connection, seq: TaskSeq) -> Result<Option<Task>> {
    let found = match tasks::task(conn, seq)? {
        Some(live) => Some(of_live(conn, live)?),
        None => ended::ended(conn, seq)?.map(|past| of_past(conn, past)).transpose()?,
    };
    let Some(mut task) = found else { return Ok(None) };
    task.attempts = attempts(conn, &task)?;
    Ok(Some(task))
}

/// A task by its whole public name: the uuid alone is not enough.
pub(crate) fn task_named(conn: &Connection, id: &TaskId) -> Result<Option<Task>> {
    let Some(seq) = seq_of(realm(conn)?, id) else { return Ok(None) };
    Ok(task(conn, seq)?.filter(|task| task.id == *id))
}

/// The fences of those attempts that do not hold their task.
pub(crate) fn lost(conn: &Connection, held: &[(TaskSeq, i64)]) -> Result<Vec<i64>> {
    let sql = "SELECT 1 FROM pointsman_task WHERE seq = ?1 AND fence = ?2 AND phase = 5";
    let mut lost = Vec::new();
    for (task, fence) in held {
        if first(conn, sql, (task.0, fence), |_| Ok(()))?.is_none() {
            lost.push(*fence);
        }
    }
    Ok(lost)
}

pub(crate) fn of_live(conn: &Connection, live: Live) -> Result<Task> {
    let (handler, tenant, of) = queue_names(conn, live.queue)?;
    let event = live.event.map(|event| type_and_key(conn, event)).transpose()?;
    let order = live.order.map(|order| order_key(conn, order)).transpose()?.flatten();
    let mut names = LiveNames::new((handler, tenant), &of, event, order);
    if has_ended(&live) {
        names.finished_at = last_attempt_end(conn, live.seq)?;
    }
    task_of_live(live, names, realm(conn)?)
}

pub(crate) fn of_past(conn: &Connection, past: Past) -> Result<Task> {
    let (handler, tenant, _) = queue_names(conn, past.queue)?;
    task_of_past(past, handler, tenant, realm(conn)?)
}

fn type_and_key(conn: &Connection, event: EventId) -> Result<(String, Option<String>)> {
    let mut statement = conn.prepare_cached("SELECT type, key FROM pointsman_journal WHERE id = ?1")?;
    Ok(statement.query_row([event.as_i64()], |r| Ok((r.get(0)?, r.get(1)?)))?)
}

fn order_key(conn: &Connection, n: i64) -> Result<Option<String>> {
    first(conn, "SELECT key FROM pointsman_order WHERE n = ?1", [n], |row| Ok(row.get(0)?))
}

/// When a task that holds its lane in `error` had its last attempt.
fn last_attempt_end(conn: &Connection, seq: TaskSeq) -> Result<Option<Timestamp>> {
    let sql = "SELECT max(ended) FROM pointsman_attempt WHERE task = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([seq.0], |r| time_if_any(r, 0))?)
}

/// The handler and the tenant of a queue, and what it is of.
fn queue_names(conn: &Connection, queue: QueueId) -> Result<(HandlerName, Tenant, QueueOf)> {
    let sql = "SELECT h.name, q.tenant, q.collection
               FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler WHERE q.id = ?1";
    let names = first(conn, sql, [queue], |row| {
        let handler = HandlerName::new(text(row, 0)?).map_err(Fault::damaged)?;
        let tenant = Tenant::new(text(row, 1)?).map_err(Fault::damaged)?;
        Ok((handler, tenant, QueueOf::read(text(row, 2)?).map_err(Fault::damaged)?))
    })?;
    names.ok_or_else(|| Fault::damaged(format!("no queue {queue}")))
}

/// The attempts that have ended.
fn attempts(conn: &Connection, task: &Task) -> Result<Vec<Attempt>> {
    let sql = "SELECT number, started, ended, how, error FROM pointsman_attempt
               WHERE task = ?1 ORDER BY number DESC LIMIT ?2";
    let mut attempts = all(conn, sql, (task.seq.0, MOST_ATTEMPTS as i64), |row| {
        Ok(Attempt {
            number: row.get(0)?,
            started_at: time(row, 1)?,
            ended_at: time(row, 2)?,
            end: end_of(row.get(3)?)?,
            error: row.get(4)?,
        })
    })?;
    attempts.reverse();
    Ok(with_success(task, attempts))
}

pub(crate) fn logs(conn: &Connection, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
    let Some(task) = task_named(conn, id)? else { return Ok(None) };
    let sql =
        "SELECT n, time, level, message FROM pointsman_log WHERE task = ?1 AND n >= ?2 ORDER BY n LIMIT ?3";
    let mut statement = conn.prepare_cached(sql)?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let mut rows = statement.query((task.seq.0, from, limit as i64))?;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while bytes < LOG_BYTES
        && let Some(row) = rows.next()?
    {
        let line = LogLine { time: time(row, 1)?, level: level_of(row.get(2)?), message: row.get(3)? };
        bytes += line.message.len();
        lines.push(StoredLine { number: row.get::<_, i64>(0)? as u64, line });
    }
    Ok(Some(LogPage { lines, status: task.life.state.status() }))
}

pub(crate) fn queues(conn: &Connection, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
    let around = surroundings(conn)?;
    let sql = "SELECT h.name, q.tenant, q.collection, q.ready, q.waiting, q.scheduled, q.running, q.halted, q.missing, q.id
               FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
               WHERE (?1 IS NULL OR h.name = ?1)
                 AND q.ready + q.waiting + q.scheduled + q.running + q.halted + q.missing > 0
               ORDER BY h.name, q.tenant, q.collection";
    all(conn, sql, [handler.map(HandlerName::as_str)], |row| {
        let handler = HandlerName::new(text(row, 0)?).map_err(Fault::damaged)?;
        let tenant = Tenant::new(text(row, 1)?).map_err(Fault::damaged)?;
        let of = QueueOf::read(text(row, 2)?).map_err(Fault::damaged)?;
        let counts = Counts {
            ready: row.get(3)?,
            waiting: row.get(4)?,
            scheduled: row.get(5)?,
            running: row.get(6)?,
            halted: row.get(7)?,
            missing: row.get(8)?,
        };
        let head_since = if counts.ready > 0 { head_since(conn, row.get(9)?)? } else { None };
        Ok(around.queue(handler, tenant, of, counts, head_since))
    })
}

/// When the task was made that a queue would give next.
fn head_since(conn: &Connection, queue: QueueId) -> Result<Option<Timestamp>> {
    let sql = "SELECT created FROM pointsman_task WHERE queue = ?1 AND phase = 3 ORDER BY score DESC, rank, seq LIMIT 1";
    first(conn, sql, [queue], |row| Ok(time(row, 0)?))
}
