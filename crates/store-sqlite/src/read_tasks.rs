//! Reading tasks and their logs.

use pointsman_core::store::{LogPage, MOST_ATTEMPTS, QueueView, StoredLine};
use pointsman_core::task::{Attempt, AttemptEnd, LogLine, QueueOf, Realm, Status, Task, TaskSeq};
use pointsman_core::{HandlerName, Json, ObjectKey, Priority, TaskId, Tenant, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use crate::chains::Chains;
use crate::error::{Fault, Result};
use crate::finish::level_of;
use crate::queues::QueueId;
use crate::registry::read_rules;
use crate::row::{Live, Past, end_of};

/// So many bytes of a log at most come in one page.
const PAGE_BYTES: usize = 1 << 20;

/// The number behind a public id, if it is one of this store's.
pub(crate) fn seq_of(conn: &Connection, id: &TaskId) -> Result<Option<TaskSeq>> {
    Ok(match id.uuid() {
        Some(uuid) => realm(conn)?.seq(uuid),
        None => None,
    })
}

pub(crate) fn realm(conn: &Connection) -> Result<Realm> {
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

pub(crate) fn of_live(conn: &Connection, live: Live) -> Result<Task> {
    let (handler, tenant, of) = queue_names(conn, live.queue)?;
    let (collection, key): (String, Option<String>) = match (live.event, of) {
        (None, QueueOf::Node { node, .. }) => (node.to_string(), order_key(conn, live.order)?),
        (None, of) => (of.text(), None),
        (Some(event), _) => {
            let sql = "SELECT type, key FROM pointsman_journal WHERE id = ?1";
            let mut statement = conn.prepare_cached(sql)?;
            statement.query_row([event.as_i64()], |r| Ok((r.get(0)?, r.get(1)?)))?
        }
    };
    let ended = matches!(live.life.state.status(), Status::Error | Status::Missing);
    Ok(Task {
        id: TaskId::new(handler.as_str(), &collection, realm(conn)?.uuid(live.seq)),
        seq: live.seq,
        handler,
        tenant,
        collection: collection.into(),
        key: key.map(ObjectKey::new).transpose().map_err(Fault::damaged)?,
        event: live.event,
        priority: Priority::try_from(live.priority).map_err(Fault::damaged)?,
        life: live.life,
        planned_at: live.planned,
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

pub(crate) fn of_past(conn: &Connection, past: Past) -> Result<Task> {
    let (handler, tenant, _) = queue_names(conn, past.queue)?;
    Ok(Task {
        id: TaskId::new(handler.as_str(), &past.collection, realm(conn)?.uuid(past.seq)),
        seq: past.seq,
        handler,
        tenant,
        collection: past.collection.into(),
        key: past.key.map(ObjectKey::new).transpose().map_err(Fault::damaged)?,
        event: past.event,
        priority: Priority::try_from(past.priority).map_err(Fault::damaged)?,
        life: past.life,
        planned_at: past.planned,
        created_at: past.created,
        started_at: past.started,
        finished_at: Some(past.finished),
        error: past.error,
        result: past.result.map(Json::trusted),
        attempts: Vec::new(),
    })
}

fn order_key(conn: &Connection, n: Option<i64>) -> Result<Option<String>> {
    let mut statement = conn.prepare_cached("SELECT key FROM pointsman_order WHERE n = ?1")?;
    Ok(statement.query_row([n], |r| r.get(0)).optional()?)
}

/// The handler and the tenant of a queue, and what it is of.
fn queue_names(conn: &Connection, queue: QueueId) -> Result<(HandlerName, Tenant, QueueOf)> {
    let sql = "SELECT h.name, q.tenant, q.collection
               FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler WHERE q.id = ?1";
    let (handler, tenant, collection): (String, String, String) =
        conn.prepare_cached(sql)?.query_row([queue], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
    let handler = HandlerName::new(handler).map_err(Fault::damaged)?;
    let of = QueueOf::read(&collection).map_err(Fault::damaged)?;
    Ok((handler, Tenant::new(tenant).map_err(Fault::damaged)?, of))
}

/// The attempts that have ended. A success is not written down; the task itself tells of it.
fn attempts(conn: &Connection, task: &Task) -> Result<Vec<Attempt>> {
    let sql = "SELECT number, started, ended, how, error FROM pointsman_attempt WHERE task = ?1 ORDER BY number DESC LIMIT ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((task.seq.0, MOST_ATTEMPTS as i64))?;
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
    attempts.reverse();
    if let (Status::Done, Some(started_at), Some(ended_at)) =
        (task.life.state.status(), task.started_at, task.finished_at)
    {
        let number = task.life.attempt;
        attempts.push(Attempt { number, started_at, ended_at, end: AttemptEnd::Succeeded, error: None });
    }
    Ok(attempts)
}

pub(crate) fn logs(conn: &Connection, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
    let Some(task) = task_named(conn, id)? else { return Ok(None) };
    let sql =
        "SELECT n, time, level, message FROM pointsman_log WHERE task = ?1 AND n >= ?2 ORDER BY n LIMIT ?3";
    let mut statement = conn.prepare_cached(sql)?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let mut rows = statement.query((task.seq.0, from, limit as i64))?;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let line = LogLine {
            time: Timestamp::from_micros(row.get(1)?),
            level: level_of(row.get(2)?),
            message: row.get(3)?,
        };
        bytes += line.message.len();
        lines.push(StoredLine { number: row.get::<_, i64>(0)? as u64, line });
    }
    Ok(Some(LogPage { lines, status: task.life.state.status() }))
}

pub(crate) fn queues(conn: &Connection, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
    let (rules, chains) = (read_rules(conn)?, Chains::load(conn)?);
    let sql = "SELECT h.name, q.tenant, q.collection, q.ready, q.waiting, q.scheduled, q.running, q.halted, q.missing, q.id
               FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
               WHERE (?1 IS NULL OR h.name = ?1)
                 AND q.ready + q.waiting + q.scheduled + q.running + q.halted + q.missing > 0
               ORDER BY h.name, q.tenant, q.collection";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([handler.map(HandlerName::as_str)])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        let handler = HandlerName::new(row.get::<_, String>(0)?).map_err(Fault::damaged)?;
        let tenant = Tenant::new(row.get::<_, String>(1)?).map_err(Fault::damaged)?;
        let of = QueueOf::read(row.get_ref(2)?.as_str().map_err(Fault::damaged)?).map_err(Fault::damaged)?;
        let count = |index: usize| -> Result<u64> { Ok(row.get::<_, i64>(index)?.max(0) as u64) };
        let ready = count(3)?;
        queues.push(QueueView {
            held: rules.iter().any(|rule| rule.holds(&handler, &of, &tenant)) || chains.holds(&of),
            handler,
            tenant,
            ready,
            waiting: count(4)?,
            scheduled: count(5)?,
            running: count(6)?,
            halted: count(7)?,
            missing: count(8)?,
            head_since: if ready > 0 { head_since(conn, row.get(9)?)? } else { None },
            of,
        });
    }
    Ok(queues)
}

/// When the task was made that a queue would give next.
fn head_since(conn: &Connection, queue: QueueId) -> Result<Option<Timestamp>> {
    let sql = "SELECT created FROM pointsman_task WHERE queue = ?1 AND phase = 3 ORDER BY score DESC, rank, seq LIMIT 1";
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_row([queue], |r| r.get(0).map(Timestamp::from_micros)).optional()?)
}
