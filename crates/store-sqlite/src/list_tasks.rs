//! Listing tasks, the newest first: unfinished ones and history, merged.

use pointsman_core::HandlerName;
use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{Task, TaskSeq};
use pointsman_store::views::{LiveRows, PastRows, TaskPaging, few_tasks, rows_wanted};
use rusqlite::Connection;

use crate::error::Result;
use crate::read_journal::{extent, tasks_of};
use crate::read_tasks::{of_live, of_past, task};
use crate::tables::row::{live, live_of, past, past_of};

pub(crate) fn tasks(
    conn: &Connection,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    if filter.event.is_some() {
        return of_event(conn, filter, before, limit);
    }
    let mut page = TaskPaging::new(filter, limit, extent(conn)?);
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
    let mut next_live = live_rows.next()?.map(live_of).transpose()?;
    let mut next_past = past_rows.next()?.map(past_of).transpose()?;
    loop {
        let live_first = match (&next_live, &next_past) {
            (None, None) => break,
            (Some(live), Some(past)) => live.seq > past.seq,
            (Some(_), None) => true,
            (None, Some(_)) => false,
        };
        let task = if live_first {
            let following = live_rows.next()?.map(live_of).transpose()?;
            std::mem::replace(&mut next_live, following).map(|live| of_live(conn, live))
        } else {
            let following = past_rows.next()?.map(past_of).transpose()?;
            std::mem::replace(&mut next_past, following).map(|past| of_past(conn, past))
        };
        let Some(task) = task.transpose()? else { break };
        if !page.take(task) {
            break;
        }
    }
    Ok(page.page(next_live.is_some() || next_past.is_some()))
}

/// The words for the rows that are looked at.
fn conditions(conn: &Connection, filter: &TaskFilter) -> Result<(&'static str, &'static str)> {
    let of_source = match &filter.handler {
        Some(handler) => is_source(conn, handler)?,
        None => false,
    };
    let (live, past) = rows_wanted(filter, of_source);
    let live = match live {
        LiveRows::Running => "INDEXED BY pointsman_task_running WHERE seq < ?1 AND phase = 5",
        LiveRows::Stranded => "WHERE seq < ?1 AND phase >= 6",
        LiveRows::All => "WHERE seq < ?1",
    };
    let past = match past {
        PastRows::None => "false",
        PastRows::OfSources => "event IS NULL AND key IS NULL",
        PastRows::Failed => "status = 1",
        PastRows::All => "true",
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
    Ok(few_tasks(tasks, filter, before, limit, extent(conn)?))
}
