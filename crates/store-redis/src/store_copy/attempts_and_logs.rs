//! Copies attempts and logs of tasks: a task has one key for its attempts and one for its log, if it has any.

use std::collections::HashMap;

use pointsman_core::TaskSeq;
use pointsman_core::task::LogLine;
use pointsman_store::columns::{Columns as _, LogLineColumns};
use pointsman_store::error::TableResult;
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CursorValue};
use redis::Value;

use super::RedisStoreCopy;
use super::tasks::TaskTable;
use crate::codec::encode_decimal_field;
use crate::connection::{CommandArgs, args};
use crate::keys::{Table, task_bucket_and_field};
use crate::lookup::parse_number;
use crate::overlay::{CacheFetch, decode_integer, decode_strings};
use crate::rows;

/// Number of rows per fetch.
const ROWS_PER_FETCH: i64 = 500;
/// Number of tasks whose ids are resolved together: their events may be large.
const TASKS_PER_ID_FETCH: usize = 64;

/// Data of tasks that is stored under keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptsOrLogs {
    Attempts,
    Logs,
}

/// A command that reads attempts or log lines of a task.
struct AttemptsOrLogRequest {
    task: TaskSeq,
    args: CommandArgs,
    /// Number of the first line, if the request is for a log; else 0.
    first_line: i64,
    row_count: i64,
}

/// Start of a page: after a row of a task, which has a number within the task.
#[derive(Clone, Copy)]
struct PageStart {
    task_table: TaskTable,
    task: TaskSeq,
    after_number: i64,
}

impl PageStart {
    fn from_cursor(after: Option<&CopyCursor>) -> Self {
        let number =
            |index: usize| after.and_then(|cursor| cursor.get(index)).and_then(CursorValue::as_number);
        let task_table = if number(0) == Some(1) { TaskTable::Archived } else { TaskTable::Active };
        Self { task_table, task: TaskSeq(number(1).unwrap_or(0)), after_number: number(2).unwrap_or(-1) }
    }
}

impl RedisStoreCopy {
    pub(super) fn count_attempts_or_log_lines(&mut self, data_kind: AttemptsOrLogs) -> TableResult<u64> {
        let mut count = 0;
        for task_table in [TaskTable::Active, TaskTable::Archived] {
            self.for_each_task_batch(task_table, TaskSeq(0), &mut |store, batch| {
                let sizes = store.read_attempt_or_log_line_counts(data_kind, batch)?;
                count += sizes.iter().map(|(_, _, size)| size.unsigned_abs()).sum::<u64>();
                Ok(true)
            })?;
        }
        Ok(count)
    }

    /// Reads a page of attempts or log lines: first those of active tasks, then those of archived ones.
    pub(super) fn read_page_of_attempts_or_log_lines(
        &mut self,
        data_kind: AttemptsOrLogs,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        let start = PageStart::from_cursor(after);
        let mut page = CopyPage::default();
        let task_tables = [TaskTable::Active, TaskTable::Archived]
            .into_iter()
            .skip_while(|task_table| *task_table != start.task_table);
        for task_table in task_tables {
            let from = if task_table == start.task_table { start.task } else { TaskSeq(0) };
            let more_fits = self.for_each_task_batch(task_table, from, &mut |store, batch| {
                store.add_attempts_or_log_lines_to_page(data_kind, task_table, start, batch, &mut page)
            })?;
            if !more_fits {
                break;
            }
        }
        Ok(page)
    }

    /// Adds the attempts or log lines of tasks to a page; returns whether more fit.
    fn add_attempts_or_log_lines_to_page(
        &mut self,
        data_kind: AttemptsOrLogs,
        task_table: TaskTable,
        start: PageStart,
        tasks: &[TaskSeq],
        page: &mut CopyPage,
    ) -> TableResult<bool> {
        let mut requests = Vec::new();
        for (task, key, size) in self.read_attempt_or_log_line_counts(data_kind, tasks)? {
            let is_resumed_task = task_table == start.task_table && task == start.task;
            let after = if is_resumed_task { start.after_number } else { -1 };
            requests.extend(plan_requests(data_kind, task, &key, size, after));
        }
        for group in group_requests(requests) {
            let commands: Vec<CommandArgs> = group.iter().map(|request| request.args.clone()).collect();
            for (request, reply) in group.iter().zip(self.overlay().connection.execute_all(&commands)?) {
                let is_resumed_task = task_table == start.task_table && request.task == start.task;
                for (number, row) in decode_attempts_or_log_lines(data_kind, request, reply)? {
                    // A page may end in the middle of a task.
                    if page.is_full() {
                        return Ok(false);
                    }
                    if !is_resumed_task || number > start.after_number {
                        let cursor = [i64::from(task_table == TaskTable::Archived), request.task.0, number];
                        page.push_row(cursor.map(CursorValue::Number).into(), row);
                    }
                }
            }
        }
        Ok(!page.is_full())
    }

    /// Returns those of these tasks that have attempts or a log, with the key and the number of rows.
    fn read_attempt_or_log_line_counts(
        &mut self,
        data_kind: AttemptsOrLogs,
        tasks: &[TaskSeq],
    ) -> TableResult<Vec<(TaskSeq, Vec<u8>, i64)>> {
        let keys: Vec<(TaskSeq, Vec<u8>)> = match data_kind {
            AttemptsOrLogs::Attempts => {
                tasks.iter().map(|task| (*task, self.keys().table_key(&Table::Attempts(*task)))).collect()
            }
            AttemptsOrLogs::Logs => {
                let mut keys = self.read_log_keys(tasks)?;
                tasks.iter().filter_map(|task| Some((*task, keys.remove(task)?))).collect()
            }
        };
        let command = match data_kind {
            AttemptsOrLogs::Attempts => "HLEN",
            AttemptsOrLogs::Logs => "ZCARD",
        };
        if keys.is_empty() {
            return Ok(vec![]);
        }
        let commands: Vec<CommandArgs> = keys.iter().map(|(_, key)| args![command, key]).collect();
        let mut sizes = Vec::new();
        for ((task, key), reply) in keys.into_iter().zip(self.overlay().connection.execute_all(&commands)?) {
            let size = decode_integer(reply)?;
            if size > 0 {
                sizes.push((task, key, size));
            }
        }
        Ok(sizes)
    }

    /// Returns the log keys of active or archived tasks. The transaction must not have written anything yet.
    pub(super) fn read_log_keys(&mut self, tasks: &[TaskSeq]) -> TableResult<HashMap<TaskSeq, Vec<u8>>> {
        self.prefetch_queue_and_handler_tables()?;
        let overlay = self.overlay();
        let mut keys = HashMap::with_capacity(tasks.len());
        for tasks in tasks.chunks(TASKS_PER_ID_FETCH) {
            let rows = tasks.iter().flat_map(|task| {
                let (bucket, field) = task_bucket_and_field(*task);
                [
                    CacheFetch::Row(Table::ActiveTasks(bucket), field.clone()),
                    CacheFetch::Row(Table::ArchivedTasks(bucket), field),
                ]
            });
            overlay.fetch_into_cache(rows.collect())?;
            let mut fetches = Vec::new();
            for active in overlay.read_active_tasks(tasks.iter().copied())? {
                fetches.extend(active.event.map(CacheFetch::Event));
                fetches.extend(
                    active
                        .order_number
                        .map(|number| CacheFetch::Row(Table::Orders, encode_decimal_field(number))),
                );
            }
            overlay.fetch_into_cache(fetches)?;
            for task in tasks {
                keys.extend(overlay.read_task_id(*task)?.map(|id| (*task, overlay.keys.task_log_key(&id))));
            }
            // Drops cached events, and keeps cached names.
            overlay.mark_committed();
        }
        Ok(keys)
    }

    /// Caches all queues, handlers and named texts: task ids and keys of logs are built from them.
    pub(super) fn prefetch_queue_and_handler_tables(&mut self) -> TableResult<()> {
        let tables = [Table::NamedTexts, Table::Queues, Table::QueueCounts, Table::Handlers];
        self.overlay().fetch_into_cache(tables.into_iter().map(CacheFetch::Table).collect())
    }
}

/// Plans the requests for the attempts of a task, or, in chunks, for its log lines after a number.
fn plan_requests(
    data_kind: AttemptsOrLogs,
    task: TaskSeq,
    key: &[u8],
    size: i64,
    after: i64,
) -> Vec<AttemptsOrLogRequest> {
    match data_kind {
        AttemptsOrLogs::Attempts => {
            vec![AttemptsOrLogRequest { task, args: args!["HGETALL", key], first_line: 0, row_count: size }]
        }
        AttemptsOrLogs::Logs => {
            let firsts = (after + 1..size).step_by(ROWS_PER_FETCH as usize);
            let plan_request = |first: i64| {
                let last = (first + ROWS_PER_FETCH).min(size) - 1;
                let args = args!["ZRANGE", key, first.to_string(), last.to_string()];
                AttemptsOrLogRequest { task, args, first_line: first, row_count: last + 1 - first }
            };
            firsts.map(plan_request).collect()
        }
    }
}

/// Groups requests so that each group returns a limited number of rows.
fn group_requests(requests: Vec<AttemptsOrLogRequest>) -> Vec<Vec<AttemptsOrLogRequest>> {
    let mut groups: Vec<(i64, Vec<AttemptsOrLogRequest>)> = Vec::new();
    for request in requests {
        match groups.last_mut() {
            Some((rows, group)) if *rows + request.row_count <= ROWS_PER_FETCH => {
                *rows += request.row_count;
                group.push(request);
            }
            Some(_) | None => groups.push((request.row_count, vec![request])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Decodes the rows with their number within the task, in order.
fn decode_attempts_or_log_lines(
    data_kind: AttemptsOrLogs,
    request: &AttemptsOrLogRequest,
    reply: Value,
) -> TableResult<Vec<(i64, CopyRow)>> {
    let found = decode_strings(reply)?;
    match data_kind {
        AttemptsOrLogs::Attempts => {
            let (pairs, _) = found.as_chunks::<2>();
            let mut attempts: Vec<(i64, CopyRow)> = pairs
                .iter()
                .map(|[number, row]| {
                    let number = parse_number(number)?;
                    let attempt = rows::decode_attempt(request.task, number, row)?;
                    Ok((number, attempt.into_owned().into()))
                })
                .collect::<TableResult<_>>()?;
            attempts.sort_unstable_by_key(|(number, _)| *number);
            Ok(attempts)
        }
        AttemptsOrLogs::Logs => {
            let decode_line = |(number, json): (i64, &Vec<u8>)| {
                let line: LogLine = rows::decode_json(json)?;
                let line = LogLineColumns::from_line(request.task, number, &line);
                Ok((number, line.into_owned().into()))
            };
            (request.first_line..).zip(&found).map(decode_line).collect()
        }
    }
}
