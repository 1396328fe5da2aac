//! Reading tasks and their logs.

use std::time::Duration;

use pointsman_core::store::{LogPage, QueueView, StoredLine, TaskFilter, TaskPage};
use pointsman_core::task::{Attempt, AttemptEnd, LogLine, Realm, Status, Task, TaskSeq};
use pointsman_core::{HandlerName, HandlingKey, Json, ObjectKey, Priority, TaskId, Tenant, Timestamp};
use rusqlite::Connection;

use crate::error::{Fault, Result};
use crate::finish::level_of;
use crate::read_journal::extent;
use crate::registry::read_rules;
use crate::row::{Live, Past, end_of, live, past};
use crate::state::QueueId;

/// So many tasks at most are looked at for one page.
const SCAN: usize = 20_000;

/// The number behind a public id, if it is one of this store's.
pub(crate) fn seq_of(conn: &Connection, id: &TaskId) -> Result<Option<TaskSeq>> {
    Ok(match id.uuid() {
        Some(uuid) => realm(conn)?.seq(uuid),
        None => None,
    })
}

fn realm(conn: &Connection) -> Result<Realm> {
    let sql = "SELECT value FROM pointsman_meta WHERE name = 'realm'";
    Ok(Realm(conn.prepare_cached(sql)?.query_row([], |r| r.get::<_, i64>(0))? as u64))
}

/// A task with its attempts, wherever it lies.
pub(crate) fn task(conn: &Connection, seq: TaskSeq) -> Result<Option<Task>> {
    let found = match Live::load(conn, seq)? {
        Some(live) => Some(of_live(conn, live)?),
        None => match Past::load(conn, seq)? {
            Some(past) => Some(of_past(conn, past)?),
            None => None,
        },
    };
    let Some(mut task) = found else { return Ok(None) };
    task.attempts = attempts(conn, &task)?;
    Ok(Some(task))
}

/// A task by its whole public name: the uuid alone is not enough.
pub(crate) fn task_named(conn: &Connection, id: &TaskId) -> Result<Option<Task>> {
    let Some(seq) = seq_of(conn, id)? else { return Ok(None) };
    Ok(task(conn, seq)?.filter(|task| task.id == *id))
}

fn of_live(conn: &Connection, live: Live) -> Result<Task> {
    let sql = "SELECT type, key FROM pointsman_journal WHERE id = ?1";
    let (kind, key): (String, Option<String>) =
        conn.prepare_cached(sql)?.query_row([live.event.as_i64()], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let (handler, tenant) = queue_names(conn, live.queue)?;
    let ended = matches!(live.life.state.status(), Status::Error | Status::Missing);
    Ok(Task {
        id: TaskId::new(handler.as_str(), &kind, realm(conn)?.uuid(live.seq)),
        seq: live.seq,
        handler,
        tenant,
        kind: HandlingKey::new(kind).map_err(Fault::damaged)?,
        key: key.map(ObjectKey::new).transpose().map_err(Fault::damaged)?,
        event: Some(live.event),
        priority: Priority::try_from(live.priority).map_err(Fault::damaged)?,
        life: live.life,
        created_at: live.created,
        started_at: live.started,
        finished_at: if ended { last_attempt_end(conn, live.seq)? } else { None },
        error: live.error,
        result: None,
        attempts: Vec::new(),
    })
}

/// When a task that holds its lane in `error` had its last attempt.
fn last_attempt_end(conn: &Connection, seq: TaskSeq) -> Result<Option<Timestamp>> {
    let sql = "SELECT max(ended) FROM pointsman_attempt WHERE task = ?1";
    let ended: Option<i64> = conn.prepare_cached(sql)?.query_row([seq.0], |r| r.get(0))?;
    Ok(ended.map(Timestamp::from_micros))
}

fn of_past(conn: &Connection, past: Past) -> Result<Task> {
    let (handler, tenant) = queue_names(conn, past.queue)?;
    Ok(Task {
        id: TaskId::new(handler.as_str(), &past.kind, realm(conn)?.uuid(past.seq)),
        seq: past.seq,
        handler,
        tenant,
        kind: HandlingKey::new(past.kind).map_err(Fault::damaged)?,
        key: past.key.map(ObjectKey::new).transpose().map_err(Fault::damaged)?,
        event: Some(past.event),
        priority: Priority::try_from(past.priority).map_err(Fault::damaged)?,
        life: past.life,
        created_at: past.created,
        started_at: past.started,
        finished_at: Some(past.finished),
        error: past.error,
        result: past.result.map(Json::trusted),
        attempts: Vec::new(),
    })
}

fn queue_names(conn: &Connection, queue: QueueId) -> Result<(HandlerName, Tenant)> {
    let sql = "SELECT h.name, q.tenant FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
               WHERE q.id = ?1";
    let (handler, tenant): (String, String) =
        conn.prepare_cached(sql)?.query_row([queue], |r| Ok((r.get(0)?, r.get(1)?)))?;
    Ok((HandlerName::new(handler).map_err(Fault::damaged)?, Tenant::new(tenant).map_err(Fault::damaged)?))
}

/// The attempts that have ended. A success is not written down; the task itself tells of it.
fn attempts(conn: &Connection, task: &Task) -> Result<Vec<Attempt>> {
    let sql =
        "SELECT number, started, ended, how, error FROM pointsman_attempt WHERE task = ?1 ORDER BY number";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([task.seq.0])?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(Attempt {
            number: row.get(0)?,
            started_at: Timestamp::from_micros(row.get(1)?),
            ended_at: Timestamp::from_micros(row.get(2)?),
            end: end_of(row.get(3)?)?,
            error: row.get(4)?,
        });
    }
    if let (Status::Done, Some(started_at), Some(ended_at)) =
        (task.life.state.status(), task.started_at, task.finished_at)
    {
        let number = task.life.attempt;
        attempts.push(Attempt { number, started_at, ended_at, end: AttemptEnd::Succeeded, error: None });
    }
    Ok(attempts)
}

pub(crate) fn tasks(
    conn: &Connection,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    let extent = extent(conn)?;
    let before = before.map_or(i64::MAX, |seq| seq.0);
    let live_sql = concat!("SELECT ", live!(), " FROM pointsman_task WHERE seq < ?1 ORDER BY seq DESC");
    let past_sql = concat!("SELECT ", past!(), " FROM pointsman_history WHERE seq < ?1 ORDER BY seq DESC");
    let (mut live_statement, mut past_statement) =
        (conn.prepare_cached(live_sql)?, conn.prepare_cached(past_sql)?);
    let (mut live_rows, mut past_rows) = (live_statement.query([before])?, past_statement.query([before])?);
    let mut next_live = live_rows.next()?.map(Live::from_row).transpose()?;
    let mut next_past = past_rows.next()?.map(Past::from_row).transpose()?;
    let mut page = TaskPage { tasks: Vec::new(), next: None, extent };
    for looked_at in 0.. {
        let live_first = match (&next_live, &next_past) {
            (None, None) => break,
            (Some(live), Some(past)) => live.seq > past.seq,
            (Some(_), None) => true,
            (None, Some(_)) => false,
        };
        let task = if live_first {
            let following = live_rows.next()?.map(Live::from_row).transpose()?;
            std::mem::replace(&mut next_live, following).map(|live| of_live(conn, live))
        } else {
            let following = past_rows.next()?.map(Past::from_row).transpose()?;
            std::mem::replace(&mut next_past, following).map(|past| of_past(conn, past))
        };
        let Some(mut task) = task.transpose()? else { break };
        let seq = task.seq;
        if filter.start.is_some_and(|start| all_older_than(start, &task)) {
            break;
        }
        if matches(filter, &task) {
            task.attempts = attempts(conn, &task)?;
            page.tasks.push(task);
        }
        if page.tasks.len() >= limit || looked_at + 1 >= SCAN {
            page.next = (next_live.is_some() || next_past.is_some()).then_some(seq);
            break;
        }
    }
    Ok(page)
}

/// Whether this task and all that were made earlier were created before `start`. The ids of their events tell:
/// they ascend also where the clock stepped back. An id counts whole milliseconds.
fn all_older_than(start: Timestamp, task: &Task) -> bool {
    task.event.is_some_and(|event| event.timestamp().plus(Duration::from_millis(1)) <= start)
}

fn matches(filter: &TaskFilter, task: &Task) -> bool {
    (filter.statuses.is_empty() || filter.statuses.contains(&task.life.state.status()))
        && filter.handler.as_ref().is_none_or(|handler| task.handler == *handler)
        && filter.tenant.as_ref().is_none_or(|tenant| task.tenant == *tenant)
        && filter.key.as_ref().is_none_or(|key| task.key.as_ref() == Some(key))
        && filter.start.is_none_or(|start| task.created_at >= start)
        && filter.end.is_none_or(|end| task.created_at < end)
}

pub(crate) fn logs(conn: &Connection, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
    let Some(task) = task_named(conn, id)? else { return Ok(None) };
    let sql =
        "SELECT n, time, level, message FROM pointsman_log WHERE task = ?1 AND n >= ?2 ORDER BY n LIMIT ?3";
    let mut statement = conn.prepare_cached(sql)?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let lines = statement.query_map((task.seq.0, from, limit as i64), |row| {
        let line = LogLine {
            time: Timestamp::from_micros(row.get(1)?),
            level: level_of(row.get(2)?),
            message: row.get(3)?,
        };
        Ok(StoredLine { number: row.get::<_, i64>(0)? as u64, line })
    })?;
    Ok(Some(LogPage { lines: lines.collect::<rusqlite::Result<_>>()?, status: task.life.state.status() }))
}

pub(crate) fn queues(conn: &Connection) -> Result<Vec<QueueView>> {
    let rules = read_rules(conn)?;
    let sql = "SELECT h.name, q.tenant, q.ready, q.waiting, q.scheduled, q.running, q.halted, q.missing
               FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
               WHERE q.ready + q.waiting + q.scheduled + q.running + q.halted + q.missing > 0
               ORDER BY h.name, q.tenant";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        let handler = HandlerName::new(row.get::<_, String>(0)?).map_err(Fault::damaged)?;
        let tenant = Tenant::new(row.get::<_, String>(1)?).map_err(Fault::damaged)?;
        let count = |index: usize| -> Result<u64> { Ok(row.get::<_, i64>(index)?.max(0) as u64) };
        queues.push(QueueView {
            held: rules.iter().any(|rule| rule.holds(&handler, &tenant)),
            handler,
            tenant,
            ready: count(2)?,
            waiting: count(3)?,
            scheduled: count(4)?,
            running: count(5)?,
            halted: count(6)?,
            missing: count(7)?,
        });
    }
    Ok(queues)
}
