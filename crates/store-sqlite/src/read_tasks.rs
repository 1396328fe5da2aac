//! Reads tasks, their logs, and queues.

use pointsman_core::store::{LogPage, MAX_LISTED_ATTEMPTS, QueueView, StoredLogLine};
use pointsman_core::task::{AttemptRecord, QueueSubject, Task, TaskSeq};
use pointsman_core::{EventId, HandlerName, TaskId, Tenant, Timestamp};
use pointsman_store::columns::{AttemptColumns, CellReader, Columns, LogLineColumns, QueueColumns};
use pointsman_store::expand_sql;
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, QueueId, QueueRow};
use pointsman_store::tables::decode_task_seq;
use pointsman_store::views::{
    ActiveTaskDetails, MAX_LOG_PAGE_BYTES, append_successful_attempt, is_halted_or_missing,
    task_from_active_row, task_from_archived_row,
};
use rusqlite::Connection;

use crate::cells::RowReader;
use crate::error::{Fault, TableResult};
use crate::read_orders::read_view_environment;
use crate::tables::meta::read_task_id_namespace;
use crate::tables::queries::{
    query_all, query_first, read_columns, read_optional_time, read_text, read_time,
};
use crate::tables::{active_tasks, archived_tasks};

/// Reads a task with its attempts, whether it is active or archived.
pub(crate) fn read_task(conn: &Connection, seq: TaskSeq) -> TableResult<Option<Task>> {
    let found = match active_tasks::read_active_task(conn, seq)? {
        Some(active_task) => Some(build_active_task(conn, active_task)?),
        None => archived_tasks::read_archived_task(conn, seq)?
            .map(|archived_task| build_archived_task(conn, archived_task))
            .transpose()?,
    };
    let Some(mut task) = found else { return Ok(None) };
    task.attempts = list_attempts(conn, &task)?;
    Ok(Some(task))
}

/// Reads a task by its whole public id: the UUID alone is not enough.
pub(crate) fn read_task_by_id(conn: &Connection, id: &TaskId) -> TableResult<Option<Task>> {
    let Some(seq) = decode_task_seq(read_task_id_namespace(conn)?, id) else { return Ok(None) };
    Ok(read_task(conn, seq)?.filter(|task| task.id == *id))
}

/// Returns the fences of attempts that no longer have the lease of their task.
pub(crate) fn find_lost_fences(conn: &Connection, leased: &[(TaskSeq, i64)]) -> TableResult<Vec<i64>> {
    let sql = expand_sql!("SELECT 1 FROM pointsman_task WHERE seq = ?1 AND fence = ?2 AND phase = :locked");
    let mut lost = Vec::new();
    for (task, fence) in leased {
        if query_first(conn, sql, (task.0, fence), |_| Ok(()))?.is_none() {
            lost.push(*fence);
        }
    }
    Ok(lost)
}

pub(crate) fn build_active_task(conn: &Connection, active_task: ActiveTaskRow) -> TableResult<Task> {
    let (handler, tenant, subject) = read_queue_identity(conn, active_task.queue)?;
    let event = active_task.event.map(|event| read_event_type_and_key(conn, event)).transpose()?;
    let order = active_task.order_number.map(|order| read_order_key(conn, order)).transpose()?.flatten();
    let mut details = ActiveTaskDetails::new((handler, tenant), &subject, event, order);
    if is_halted_or_missing(&active_task) {
        details.last_attempt_ended_at = read_last_attempt_end_time(conn, active_task.seq)?;
    }
    task_from_active_row(active_task, details, read_task_id_namespace(conn)?)
}

pub(crate) fn build_archived_task(conn: &Connection, archived_task: ArchivedTaskRow) -> TableResult<Task> {
    let (handler, tenant, _) = read_queue_identity(conn, archived_task.queue)?;
    task_from_archived_row(archived_task, handler, tenant, read_task_id_namespace(conn)?)
}

fn read_event_type_and_key(conn: &Connection, event: EventId) -> TableResult<(String, Option<String>)> {
    let mut statement = conn.prepare_cached("SELECT type, key FROM pointsman_journal WHERE id = ?1")?;
    Ok(statement.query_row([event.as_i64()], |r| Ok((r.get(0)?, r.get(1)?)))?)
}

fn read_order_key(conn: &Connection, number: i64) -> TableResult<Option<String>> {
    query_first(conn, "SELECT key FROM pointsman_order WHERE n = ?1", [number], |row| Ok(row.get(0)?))
}

/// Reads when the last unsuccessful attempt of a task ended.
fn read_last_attempt_end_time(conn: &Connection, seq: TaskSeq) -> TableResult<Option<Timestamp>> {
    let sql = "SELECT max(ended) FROM pointsman_attempt WHERE task = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([seq.0], |r| read_optional_time(r, 0))?)
}

/// Reads the handler, the tenant and the subject of a queue.
fn read_queue_identity(
    conn: &Connection,
    queue: QueueId,
) -> TableResult<(HandlerName, Tenant, QueueSubject)> {
    let sql = "SELECT h.name, q.tenant, q.collection
               FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler WHERE q.id = ?1";
    let identity = query_first(conn, sql, [queue], |row| {
        let handler = HandlerName::new(read_text(row, 0)?).map_err(Fault::damaged)?;
        let tenant = Tenant::new(read_text(row, 1)?).map_err(Fault::damaged)?;
        Ok((handler, tenant, QueueSubject::from_text(read_text(row, 2)?).map_err(Fault::damaged)?))
    })?;
    identity.ok_or_else(|| Fault::damaged(format!("queue {queue} is missing")))
}

/// Reads the ended attempts of a task.
fn list_attempts(conn: &Connection, task: &Task) -> TableResult<Vec<AttemptRecord>> {
    let sql = expand_sql!(
        "SELECT :attempt_columns FROM pointsman_attempt WHERE task = ?1 ORDER BY number DESC LIMIT ?2"
    );
    let mut attempts = query_all(conn, sql, (task.seq.0, MAX_LISTED_ATTEMPTS as i64), |row| {
        read_columns::<AttemptColumns>(row)?.into_record()
    })?;
    attempts.reverse();
    Ok(append_successful_attempt(task, attempts))
}

pub(crate) fn read_log_page(
    conn: &Connection,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> TableResult<Option<LogPage>> {
    let Some(task) = read_task_by_id(conn, id)? else { return Ok(None) };
    let sql = expand_sql!(
        "SELECT :log_line_columns FROM pointsman_log WHERE task = ?1 AND n >= ?2 ORDER BY n LIMIT ?3"
    );
    let mut statement = conn.prepare_cached(sql)?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let mut rows = statement.query((task.seq.0, from, limit as i64))?;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while bytes < MAX_LOG_PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let columns: LogLineColumns<'_> = read_columns(row)?;
        bytes += columns.message.len();
        lines.push(StoredLogLine { number: columns.n as u64, line: columns.into_line() });
    }
    Ok(Some(LogPage { lines, task_status: task.lifecycle.state.status() }))
}

pub(crate) fn list_queue_views(
    conn: &Connection,
    handler: Option<&HandlerName>,
) -> TableResult<Vec<QueueView>> {
    let environment = read_view_environment(conn)?;
    let sql = expand_sql!(
        "SELECT h.name, q.:queue_columns FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
         WHERE (?1 IS NULL OR h.name = ?1)
           AND q.ready + q.waiting + q.scheduled + q.running + q.halted + q.missing > 0
         ORDER BY h.name, q.tenant, q.collection"
    );
    query_all(conn, sql, [handler.map(HandlerName::as_str)], |row| {
        let mut cells = RowReader::new(row);
        let handler = HandlerName::new(cells.read_text()?).map_err(Fault::damaged)?;
        let QueueRow { id, tenant, subject, counts, .. } =
            QueueColumns::read_cells(&mut cells)?.into_row()?;
        let head_created_at = if counts.ready > 0 { read_queue_head_creation_time(conn, id)? } else { None };
        Ok(environment.build_queue_view(handler, tenant, subject, counts, head_created_at))
    })
}

/// Reads the creation time of the task that the queue would run next.
fn read_queue_head_creation_time(conn: &Connection, queue: QueueId) -> TableResult<Option<Timestamp>> {
    let sql = expand_sql!(
        "SELECT created FROM pointsman_task
         WHERE queue = ?1 AND phase = :ready ORDER BY score DESC, rank, seq LIMIT 1"
    );
    query_first(conn, sql, [queue], |row| Ok(read_time(row, 0)?))
}
