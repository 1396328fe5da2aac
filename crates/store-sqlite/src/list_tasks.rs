//! Lists tasks, the newest first: unfinished tasks and the history, merged.

use pointsman_core::HandlerName;
use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{Task, TaskSeq};
use pointsman_store::expand_sql;
use pointsman_store::views::{
    ActiveRowFilter, ArchivedRowFilter, TaskPageBuilder, build_page_of_unsorted_tasks, choose_row_filters,
};
use rusqlite::Connection;

use crate::error::TableResult;
use crate::read_journal::{list_task_seqs_of_event, read_journal_range};
use crate::read_tasks::{build_active_task, build_archived_task, read_task};
use crate::tables::active_tasks::active_task_from_row;
use crate::tables::archived_tasks::archived_task_from_row;

pub(crate) fn list_tasks(
    conn: &Connection,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> TableResult<TaskPage> {
    if filter.event_id.is_some() {
        return list_tasks_of_event(conn, filter, before, limit);
    }
    let mut page = TaskPageBuilder::new(filter, limit, read_journal_range(conn)?);
    let before = before.map_or(i64::MAX, |seq| seq.0);
    let (active_where, archived_where) = build_where_clauses(conn, filter)?;
    let active_sql = format!(
        "{} {active_where} ORDER BY seq DESC",
        expand_sql!("SELECT :task_columns FROM pointsman_task")
    );
    let archived_sql = format!(
        "{} WHERE seq < ?1 AND {archived_where} ORDER BY seq DESC",
        expand_sql!("SELECT :archived_task_columns FROM pointsman_history")
    );
    let (mut active_statement, mut archived_statement) =
        (conn.prepare_cached(&active_sql)?, conn.prepare_cached(&archived_sql)?);
    let (mut active_rows, mut archived_rows) =
        (active_statement.query([before])?, archived_statement.query([before])?);
    let mut next_active = active_rows.next()?.map(active_task_from_row).transpose()?;
    let mut next_archived = archived_rows.next()?.map(archived_task_from_row).transpose()?;
    loop {
        let active_is_next = match (&next_active, &next_archived) {
            (None, None) => break,
            (Some(active), Some(archived)) => active.seq > archived.seq,
            (Some(_), None) => true,
            (None, Some(_)) => false,
        };
        let task = if active_is_next {
            let following = active_rows.next()?.map(active_task_from_row).transpose()?;
            std::mem::replace(&mut next_active, following).map(|active| build_active_task(conn, active))
        } else {
            let following = archived_rows.next()?.map(archived_task_from_row).transpose()?;
            std::mem::replace(&mut next_archived, following)
                .map(|archived| build_archived_task(conn, archived))
        };
        let Some(task) = task.transpose()? else { break };
        if !page.scan_task(task) {
            break;
        }
    }
    Ok(page.into_page(next_active.is_some() || next_archived.is_some()))
}

/// Returns the WHERE clauses for the rows of unfinished and of archived tasks.
fn build_where_clauses(conn: &Connection, filter: &TaskFilter) -> TableResult<(&'static str, &'static str)> {
    let is_source = match &filter.handler {
        Some(handler) => has_handler_only_collection_queues(conn, handler)?,
        None => false,
    };
    let (active, archived) = choose_row_filters(filter, is_source);
    let active = match active {
        ActiveRowFilter::Running => {
            expand_sql!("INDEXED BY pointsman_task_running WHERE seq < ?1 AND phase = :locked")
        }
        ActiveRowFilter::HaltedOrMissing => expand_sql!("WHERE seq < ?1 AND phase >= :halted"),
        ActiveRowFilter::All => "WHERE seq < ?1",
    };
    let archived = match archived {
        ArchivedRowFilter::None => "false",
        ArchivedRowFilter::CollectionRuns => "event IS NULL AND key IS NULL",
        ArchivedRowFilter::Failed => expand_sql!("status = :status_error"),
        ArchivedRowFilter::All => "true",
    };
    Ok((active, archived))
}

fn has_handler_only_collection_queues(conn: &Connection, handler: &HandlerName) -> TableResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
                              WHERE h.name = ?1 AND q.collection <> '' AND q.collection NOT LIKE '/%')
                  AND NOT EXISTS (SELECT 1 FROM pointsman_queue q JOIN pointsman_handler h ON h.id = q.handler
                              WHERE h.name = ?1 AND (q.collection = '' OR q.collection LIKE '/%'))";
    Ok(conn.prepare_cached(sql)?.query_row([handler.as_str()], |r| r.get(0))?)
}

/// Lists the tasks of one event.
fn list_tasks_of_event(
    conn: &Connection,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> TableResult<TaskPage> {
    let mut tasks = Vec::new();
    for seq in
        filter.event_id.map(|event| list_task_seqs_of_event(conn, event)).transpose()?.unwrap_or_default()
    {
        tasks.extend(read_task(conn, seq)?.map(|task| Task { attempts: vec![], ..task }));
    }
    Ok(build_page_of_unsorted_tasks(tasks, filter, before, limit, read_journal_range(conn)?))
}
