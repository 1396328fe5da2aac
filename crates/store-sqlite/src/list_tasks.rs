//! Listing tasks, the newest first: unfinished ones and history, merged.

use std::time::Duration;

use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{EndReason, Status, Task, TaskSeq};
use pointsman_core::{HandlerName, Timestamp};
use rusqlite::Connection;

use crate::error::Result;
use crate::read_journal::{extent, tasks_of};
use crate::read_tasks::{of_live, of_past, task};
use crate::row::{Live, Past, live, past};

/// So many tasks at most are looked at for one page.
const SCAN: usize = 20_000;

pub(crate) fn tasks(
    conn: &Connection,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    if filter.event.is_some() {
        return of_event(conn, filter, before, limit);
    }
    let extent = extent(conn)?;
    let before = before.map_or(i64::MAX, |seq| seq.0);
    let (live_where, past_where) = conditions(conn, filter)?;
    let live_sql =
        format!(concat!("SELECT ", live!(), " FROM pointsman_task {} ORDER BY seq DESC"), live_where);
    let past_sql = format!(
        concat!("SELECT ", past!(), " FROM pointsman_history WHERE seq < ?1 AND {} ORDER BY seq DESC"),
        past_where
    );
    let (mut live_statement, mut past_statement) =
        (conn.prepare_cached(&live_sql)?, conn.prepare_cached(&past_sql)?);
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
        let Some(task) = task.transpose()? else { break };
        let seq = task.seq;
        if filter.start.is_some_and(|start| all_older_than(start, &task)) {
            break;
        }
        if matches(filter, &task) {
            page.tasks.push(task);
        }
        if page.tasks.len() >= limit || looked_at + 1 >= SCAN {
            page.next = (next_live.is_some() || next_past.is_some()).then_some(seq);
            break;
        }
    }
    Ok(page)
}

/// What can be told of the rows beforehand, so that few are looked at in vain: an index holds what is rare among
/// many (failures, runs of sources, what runs).
fn conditions(conn: &Connection, filter: &TaskFilter) -> Result<(&'static str, &'static str)> {
    use Status::{Done, Error, Locked, Missing, New, Scheduled};
    let only = |wanted: &[Status]| {
        !filter.statuses.is_empty() && filter.statuses.iter().all(|status| wanted.contains(status))
    };
    let of_source = match &filter.handler {
        Some(handler) => is_source(conn, handler)?,
        None => false,
    };
    let live = if only(&[Locked]) {
        "INDEXED BY pointsman_task_running WHERE seq < ?1 AND phase = 5"
    } else if only(&[Done, Error, Missing]) {
        "WHERE seq < ?1 AND phase >= 6"
    } else {
        "WHERE seq < ?1"
    };
    let past = match () {
        () if only(&[New, Scheduled, Locked, Missing]) => "false",
        () if of_source => "event IS NULL AND key IS NULL",
        () if only(&[Error, Missing, New, Scheduled, Locked]) => "status = 1",
        () => "true",
    };
    Ok((live, past))
}

fn is_source(conn: &Connection, handler: &HandlerName) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
                              WHERE h.name = ?1 AND q.collection <> '' AND q.collection NOT LIKE '/%')
                  AND NOT EXISTS (SELECT 1 FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
                              WHERE h.name = ?1 AND (q.collection = '' OR q.collection LIKE '/%'))";
    Ok(conn.prepare_cached(sql)?.query_row([handler.as_str()], |r| r.get(0))?)
}

/// The tasks of one event.
fn of_event(
    conn: &Connection,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    let mut tasks = Vec::new();
    for seq in filter.event.map(|event| tasks_of(conn, event)).transpose()?.unwrap_or_default() {
        tasks.extend(task(conn, seq)?.map(|task| Task { attempts: vec![], ..task }));
    }
    tasks.retain(|task| before.is_none_or(|before| task.seq < before) && matches(filter, task));
    tasks.sort_by_key(|task| std::cmp::Reverse(task.seq));
    let next = tasks.get(limit.max(1) - 1).filter(|_| tasks.len() > limit).map(|task| task.seq);
    tasks.truncate(limit);
    Ok(TaskPage { tasks, next, extent: extent(conn)? })
}

/// Whether this task and all that were made earlier were created before `start`. The ids of their events tell where
/// the clock stepped back, for they ascend; where it leapt ahead they lag, and the time of creation tells. An id counts
/// whole milliseconds. A task without an event tells only with a margin.
fn all_older_than(start: Timestamp, task: &Task) -> bool {
    match task.event {
        Some(event) => {
            let journaled = event.timestamp().plus(Duration::from_millis(1));
            journaled <= start && task.created_at < start && !task.life.late
        }
        None => task.created_at.plus(CLOCKS_AGREE_WITHIN) <= start,
    }
}

const CLOCKS_AGREE_WITHIN: Duration = Duration::from_secs(24 * 3600);

fn matches(filter: &TaskFilter, task: &Task) -> bool {
    let reason_fits = |reason: EndReason| filter.reasons.is_empty() || filter.reasons.contains(&reason);
    (filter.statuses.is_empty() || filter.statuses.contains(&task.life.state.status()))
        && task.life.state.reason().is_none_or(reason_fits)
        && filter.handler.as_ref().is_none_or(|handler| task.handler == *handler)
        && filter.collection.as_ref().is_none_or(|collection| *task.collection == **collection)
        && filter.tenant.as_ref().is_none_or(|tenant| task.tenant == *tenant)
        && filter.key.as_ref().is_none_or(|key| task.key.as_ref() == Some(key))
        && filter.start.is_none_or(|start| task.created_at >= start)
        && filter.end.is_none_or(|end| task.created_at < end)
}
