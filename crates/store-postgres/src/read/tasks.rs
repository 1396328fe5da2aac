//! Reading tasks, their logs and their queues.

use std::collections::{HashMap, VecDeque};

use futures::future::{try_join, try_join3};
use pointsman_core::store::{
    LaneView, LogPage, MAX_LISTED_ATTEMPTS, QueueView, StoredLogLine, TaskFilter, TaskPage,
};
use pointsman_core::task::{AttemptRecord, QueueSubject, Task, TaskIdNamespace, TaskSeq};
use pointsman_core::{HandlerName, ObjectKey, TaskId, Tenant, Timestamp};
use pointsman_store::LANES_PER_OBJECT;
use pointsman_store::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, Columns, LogLineColumns, QueueColumns,
};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::QueueRow;
use pointsman_store::tables::decode_task_seq;
use pointsman_store::views::{
    ActiveRowFilter, ActiveTaskDetails, ArchivedRowFilter, LANES_READ_PER_OBJECT_VIEW, MAX_LOG_PAGE_BYTES,
    TaskPageBuilder, append_successful_attempt, build_page_of_unsorted_tasks, choose_row_filters,
    task_from_active_row, task_from_archived_row,
};
use tokio_postgres::Row;

use super::journal::{list_task_seqs_of_event, read_journal_range};
use super::{ChunkSize, orders, to_sql_limit};
use crate::rows::{RowReader, read_column, read_columns};
use crate::session::{Query, Session, query};

/// Reads the namespace of the public task ids.
pub(super) async fn read_task_id_namespace(session: &Session) -> TableResult<TaskIdNamespace> {
    let rows = session.query(query!("meta/read_task_id_namespace"), &[]).await?;
    let row = rows.first().ok_or_else(|| Fault::damaged("pointsman.meta has no task_id_namespace"))?;
    read_column::<&str>(row, 0)?.parse().map(TaskIdNamespace).map_err(Fault::damaged)
}

/// Finds an active or archived task with its attempts.
pub(crate) async fn find_task(session: &Session, seq: TaskSeq) -> TableResult<Option<Task>> {
    Ok(list_tasks_with_attempts(session, &[seq]).await?.pop())
}

/// Finds a task by its public id, all of which must match, not only the uuid in it.
pub(super) async fn find_task_by_id(session: &Session, id: &TaskId) -> TableResult<Option<Task>> {
    let Some(seq) = decode_task_seq(read_task_id_namespace(session).await?, id) else { return Ok(None) };
    Ok(find_task(session, seq).await?.filter(|task| task.id == *id))
}

/// Lists these tasks, active and archived, with their attempts, the oldest first.
pub(super) async fn list_tasks_with_attempts(session: &Session, seqs: &[TaskSeq]) -> TableResult<Vec<Task>> {
    let (mut tasks, mut attempts) =
        try_join(list_tasks_by_seq(session, seqs), list_attempts(session, seqs)).await?;
    for task in &mut tasks {
        let stored = attempts.remove(&task.seq.0).unwrap_or_default();
        task.attempts = append_successful_attempt(task, stored);
    }
    Ok(tasks)
}

/// Lists these tasks, active and archived, without their attempts, the oldest first.
async fn list_tasks_by_seq(session: &Session, seqs: &[TaskSeq]) -> TableResult<Vec<Task>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| seq.0).collect();
    let query_by_seq = async |query| -> TableResult<Vec<Row>> { Ok(session.query(query, &[&seqs]).await?) };
    let (active, archived) = (
        query!("task/list_active_tasks_by_seq", INT8_ARRAY),
        query!("history/list_archived_tasks_by_seq", INT8_ARRAY),
    );
    let (task_id_namespace, active, archived) =
        try_join3(read_task_id_namespace(session), query_by_seq(active), query_by_seq(archived)).await?;
    let active = active.iter().map(|row| active_task_from_row(row, task_id_namespace));
    let tasks = active.chain(archived.iter().map(|row| archived_task_from_row(row, task_id_namespace)));
    let mut tasks = tasks.collect::<TableResult<Vec<Task>>>()?;
    tasks.sort_by_key(|task| task.seq);
    Ok(tasks)
}

/// Lists the last stored attempts of each task, by task number.
async fn list_attempts(session: &Session, seqs: &[TaskSeq]) -> TableResult<HashMap<i64, Vec<AttemptRecord>>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| seq.0).collect();
    let query = query!("attempt/list_last_attempts", INT8_ARRAY, INT8);
    let mut attempts: HashMap<i64, Vec<AttemptRecord>> = HashMap::new();
    for row in &session.query(query, &[&seqs, &to_sql_limit(MAX_LISTED_ATTEMPTS)]).await? {
        let columns: AttemptColumns<'_> = read_columns(row, 0)?;
        attempts.entry(columns.task).or_default().push(columns.into_record()?);
    }
    Ok(attempts)
}

/// Decodes an active task.
fn active_task_from_row(row: &Row, task_id_namespace: TaskIdNamespace) -> TableResult<Task> {
    read_active_task(&mut RowReader::new(row, 0), task_id_namespace)
}

/// Reads an active task, followed by handler, tenant, subject of its queue, type and key of its event, key of its
/// order, and the end of its last attempt.
fn read_active_task(reader: &mut RowReader<'_>, task_id_namespace: TaskIdNamespace) -> TableResult<Task> {
    let task_row = ActiveTaskColumns::read_cells(reader)?.into_row()?;
    let names = (read_handler_name(reader)?, read_tenant(reader)?);
    let subject = QueueSubject::from_text(reader.read_next()?).map_err(Fault::damaged)?;
    let (event_type, event_key): (Option<String>, Option<String>) =
        (reader.read_next()?, reader.read_next()?);
    let event = match (task_row.event, event_type) {
        (Some(_), Some(event_type)) => Some((event_type, event_key)),
        (Some(event), None) => return Err(Fault::damaged(format!("the event {event} of a task is gone"))),
        (None, _) => None,
    };
    let details = ActiveTaskDetails::new(names, &subject, event, reader.read_next()?);
    let last_attempt_ended_at = reader.read_next::<Option<i64>>()?.map(Timestamp::from_micros);
    task_from_active_row(task_row, ActiveTaskDetails { last_attempt_ended_at, ..details }, task_id_namespace)
}

/// Decodes an archived task, followed by handler and tenant.
fn archived_task_from_row(row: &Row, task_id_namespace: TaskIdNamespace) -> TableResult<Task> {
    let mut reader = RowReader::new(row, 0);
    let archived_row = ArchivedTaskColumns::read_cells(&mut reader)?.into_row()?;
    let (handler, tenant) = (read_handler_name(&mut reader)?, read_tenant(&mut reader)?);
    task_from_archived_row(archived_row, handler, tenant, task_id_namespace)
}

/// Lists the first non-empty lanes of an object.
pub(super) async fn list_lanes_of_object(
    session: &Session,
    tenant: &Tenant,
    key: &ObjectKey,
) -> TableResult<Vec<LaneView>> {
    let rows = async {
        let query = query!("task/list_lanes_of_object", TEXT, TEXT, INT8, INT8, INT8);
        let (tenant, key, count_limit) = (tenant.as_str(), key.as_str(), LaneView::MAX_COUNTED_TASKS as i64);
        Ok(session
            .query(
                query,
                &[&tenant, &key, &LANES_PER_OBJECT, &to_sql_limit(LANES_READ_PER_OBJECT_VIEW), &count_limit],
            )
            .await?)
    };
    let (task_id_namespace, rows) = try_join(read_task_id_namespace(session), rows).await?;
    let decode_lane_view = |row: &Row| {
        let mut reader = RowReader::new(row, 0);
        let first_task = read_active_task(&mut reader, task_id_namespace)?;
        Ok(LaneView::new(first_task, reader.read_next::<i64>()?.unsigned_abs()))
    };
    rows.iter().map(decode_lane_view).collect()
}

fn read_handler_name(reader: &mut RowReader<'_>) -> TableResult<HandlerName> {
    HandlerName::new(reader.read_next::<&str>()?).map_err(Fault::damaged)
}

fn read_tenant(reader: &mut RowReader<'_>) -> TableResult<Tenant> {
    Tenant::new(reader.read_next::<&str>()?).map_err(Fault::damaged)
}

/// Lists tasks that match a filter, the newest first: active and archived ones, merged.
pub(super) async fn list_task_page(
    session: &Session,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> TableResult<TaskPage> {
    if let Some(event) = filter.event_id {
        let (journal_range, seqs) =
            try_join(read_journal_range(session), list_task_seqs_of_event(session, event)).await?;
        return Ok(build_page_of_unsorted_tasks(
            list_tasks_by_seq(session, &seqs).await?,
            filter,
            before,
            limit,
            journal_range,
        ));
    }
    let (journal_range, task_id_namespace, is_of_source) = try_join3(
        read_journal_range(session),
        read_task_id_namespace(session),
        has_handler_only_collection_queues(session, filter),
    )
    .await?;
    let (active_filter, archived_filter) = choose_row_filters(filter, is_of_source);
    let mut active =
        TaskCursor::new(Some(active_tasks_query(active_filter)), active_task_from_row, before, limit);
    let mut archived =
        TaskCursor::new(archived_tasks_query(archived_filter), archived_task_from_row, before, limit);
    let mut page = TaskPageBuilder::new(filter, limit, journal_range);
    let has_more = loop {
        try_join(
            active.fetch_chunk_if_empty(session, task_id_namespace),
            archived.fetch_chunk_if_empty(session, task_id_namespace),
        )
        .await?;
        let next =
            if active.next_task_seq() > archived.next_task_seq() { &mut active } else { &mut archived };
        let Some(task) = next.buffer.pop_front() else { break false };
        if !page.scan_task(task) {
            try_join(
                active.fetch_chunk_if_empty(session, task_id_namespace),
                archived.fetch_chunk_if_empty(session, task_id_namespace),
            )
            .await?;
            break active.next_task_seq().or(archived.next_task_seq()).is_some();
        }
    };
    Ok(page.into_page(has_more))
}

/// Lists the fences of the attempts that no longer lease their task.
pub(super) async fn list_lost_fences(session: &Session, leased: &[(TaskSeq, i64)]) -> TableResult<Vec<i64>> {
    let (tasks, fences): (Vec<i64>, Vec<i64>) = leased.iter().map(|(task, fence)| (task.0, *fence)).unzip();
    let rows =
        session.query(query!("task/list_lost_fences", INT8_ARRAY, INT8_ARRAY), &[&tasks, &fences]).await?;
    rows.iter().map(|row| read_column(row, 0)).collect()
}

async fn has_handler_only_collection_queues(session: &Session, filter: &TaskFilter) -> TableResult<bool> {
    let Some(handler) = &filter.handler else { return Ok(false) };
    let rows =
        session.query(query!("queue/has_handler_only_collection_queues", TEXT), &[&handler.as_str()]).await?;
    rows.first().map_or(Ok(false), |row| read_column(row, 0))
}

fn active_tasks_query(filter: ActiveRowFilter) -> &'static Query {
    match filter {
        ActiveRowFilter::All => query!("task/list_active_tasks", INT8, INT8),
        ActiveRowFilter::Running => query!("task/list_running_tasks", INT8, INT8),
        ActiveRowFilter::HaltedOrMissing => query!("task/list_halted_or_missing_tasks", INT8, INT8),
    }
}

fn archived_tasks_query(filter: ArchivedRowFilter) -> Option<&'static Query> {
    match filter {
        ArchivedRowFilter::All => Some(query!("history/list_archived_tasks", INT8, INT8)),
        ArchivedRowFilter::None => None,
        ArchivedRowFilter::CollectionRuns => {
            Some(query!("history/list_archived_collection_runs", INT8, INT8))
        }
        ArchivedRowFilter::Failed => Some(query!("history/list_failed_tasks", INT8, INT8)),
    }
}

/// A cursor over the active or the archived tasks, the newest first, which fetches them in chunks.
struct TaskCursor {
    /// None if the table has no more matching tasks.
    query: Option<&'static Query>,
    decode_task: fn(&Row, TaskIdNamespace) -> TableResult<Task>,
    buffer: VecDeque<Task>,
    before_seq: i64,
    chunk_size: ChunkSize,
}

impl TaskCursor {
    fn new(
        query: Option<&'static Query>,
        decode_task: fn(&Row, TaskIdNamespace) -> TableResult<Task>,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> Self {
        let before_seq = before.map_or(i64::MAX, |seq| seq.0);
        // One more row than requested shows whether there is more.
        let chunk_size = ChunkSize::for_limit(limit.saturating_add(1));
        Self { query, decode_task, buffer: VecDeque::new(), before_seq, chunk_size }
    }

    /// Fetches the next chunk if the buffer is empty.
    async fn fetch_chunk_if_empty(
        &mut self,
        session: &Session,
        task_id_namespace: TaskIdNamespace,
    ) -> TableResult<()> {
        let Some(query) = self.query.filter(|_| self.buffer.is_empty()) else { return Ok(()) };
        let rows = session.query(query, &[&self.before_seq, &self.chunk_size.rows()]).await?;
        self.buffer =
            rows.iter().map(|row| (self.decode_task)(row, task_id_namespace)).collect::<TableResult<_>>()?;
        self.before_seq = self.buffer.back().map_or(self.before_seq, |task| task.seq.0);
        if self.chunk_size.is_last_chunk(&rows, 0) {
            self.query = None;
        }
        self.chunk_size = self.chunk_size.next_larger();
        Ok(())
    }

    /// Returns the number of the next task, which is the newest one in the buffer.
    fn next_task_seq(&self) -> Option<TaskSeq> {
        self.buffer.front().map(|task| task.seq)
    }
}

pub(super) async fn read_log_page(
    session: &Session,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> TableResult<Option<LogPage>> {
    let Some(seq) = decode_task_seq(read_task_id_namespace(session).await?, id) else { return Ok(None) };
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let lines = async {
        let query = query!("log/list_log_lines", INT8, INT8, INT8, INT8);
        Ok(session
            .query(query, &[&seq.0, &from, &to_sql_limit(limit), &to_sql_limit(MAX_LOG_PAGE_BYTES)])
            .await?)
    };
    let (tasks, lines) = try_join(list_tasks_by_seq(session, &[seq]), lines).await?;
    let Some(task) = tasks.into_iter().find(|task| task.id == *id) else { return Ok(None) };
    let lines = lines.iter().map(decode_log_line).collect::<TableResult<_>>()?;
    Ok(Some(LogPage { lines, task_status: task.lifecycle.state.status() }))
}

fn decode_log_line(row: &Row) -> TableResult<StoredLogLine> {
    let columns: LogLineColumns<'_> = read_columns(row, 0)?;
    Ok(StoredLogLine { number: columns.n.unsigned_abs(), line: columns.into_line() })
}

pub(super) async fn list_queues(
    session: &Session,
    handler: Option<&HandlerName>,
) -> TableResult<Vec<QueueView>> {
    let name = handler.map(HandlerName::as_str);
    let rows = async { Ok(session.query(query!("queue/list_queues_with_tasks", TEXT), &[&name]).await?) };
    let (environment, rows) = try_join(orders::read_view_environment(session), rows).await?;
    let decode_queue_view = |row: &Row| {
        let mut reader = RowReader::new(row, 0);
        let QueueRow { tenant, subject, counts, .. } = QueueColumns::read_cells(&mut reader)?.into_row()?;
        let handler = read_handler_name(&mut reader)?;
        let head_created_at = reader.read_next::<Option<i64>>()?.map(Timestamp::from_micros);
        Ok(environment.build_queue_view(handler, tenant, subject, counts, head_created_at))
    };
    rows.iter().map(decode_queue_view).collect()
}
