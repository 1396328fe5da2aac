//! Copies attempts and logs of tasks. Each task that has any has one key for them.

use std::collections::HashMap;

use pointsman_core::TaskSeq;
use pointsman_core::task::LogLine;
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::encode_attempt_outcome;
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CopyValue};
use redis::Value;

use super::RedisStoreCopy;
use super::cells::copy_row;
use super::columns::encode_log_line_row;
use super::tasks::TaskTable;
use crate::codec::decimal_field;
use crate::connection::{CommandArgs, args};
use crate::keys::{Table, bucket_and_field};
use crate::lookup::parse_number;
use crate::overlay::{CacheFetch, decode_integer, decode_strings};
use crate::rows;

/// Number of rows per fetch.
const ROWS_PER_FETCH: i64 = 500;
/// Number of tasks whose ids are resolved together: their events may be large.
const TASKS_PER_NAME_FETCH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskDataKind {
    Attempts,
    Logs,
}

/// A request for rows of a task.
struct TaskDataRequest {
    task: TaskSeq,
    args: CommandArgs,
    /// Number of the first line, for a log.
    first: i64,
    rows: i64,
}

/// Start of a page: the rows of a task after a number.
#[derive(Clone, Copy)]
struct PageStart {
    kind: TaskTable,
    task: TaskSeq,
    after: i64,
}

impl PageStart {
    fn from_position(after: Option<&CopyCursor>) -> Self {
        let number = |index: usize| after.and_then(|cursor| cursor.get(index)).and_then(CopyValue::as_number);
        let kind = if number(0) == Some(1) { TaskTable::Archived } else { TaskTable::Active };
        Self { kind, task: TaskSeq(number(1).unwrap_or(0)), after: number(2).unwrap_or(-1) }
    }
}

impl RedisStoreCopy {
    pub(super) fn count_task_data(&self, kind_of_data: TaskDataKind) -> Result<u64> {
        let mut count = 0;
        for kind in [TaskTable::Active, TaskTable::Archived] {
            self.for_each_task_batch(kind, TaskSeq(0), &mut |batch| {
                let sizes = self.read_task_data_sizes(kind_of_data, batch)?;
                count += sizes.iter().map(|(_, _, size)| size.unsigned_abs()).sum::<u64>();
                Ok(true)
            })?;
        }
        Ok(count)
    }

    /// Reads the data of active tasks first, then of archived ones.
    pub(super) fn read_task_data(
        &self,
        kind_of_data: TaskDataKind,
        after: Option<&CopyCursor>,
    ) -> Result<CopyPage> {
        let start = PageStart::from_position(after);
        let mut page = CopyPage::default();
        let kinds =
            [TaskTable::Active, TaskTable::Archived].into_iter().skip_while(|kind| *kind != start.kind);
        for kind in kinds {
            let from = if kind == start.kind { start.task } else { TaskSeq(0) };
            let goes_on = self.for_each_task_batch(kind, from, &mut |batch| {
                self.read_batch(kind_of_data, kind, start, batch, &mut page)
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(page)
    }

    /// Reads the data of some tasks; returns whether the page has room for more.
    fn read_batch(
        &self,
        kind_of_data: TaskDataKind,
        kind: TaskTable,
        start: PageStart,
        tasks: &[TaskSeq],
        page: &mut CopyPage,
    ) -> Result<bool> {
        let mut asks = Vec::new();
        for (task, key, size) in self.read_task_data_sizes(kind_of_data, tasks)? {
            let resumed = kind == start.kind && task == start.task;
            let after = if resumed { start.after } else { -1 };
            asks.extend(plan_requests(kind_of_data, task, &key, size, after));
        }
        for together in group_requests(asks) {
            let commands: Vec<CommandArgs> = together.iter().map(|ask| ask.args.clone()).collect();
            for (ask, reply) in together.iter().zip(self.overlay().connection.execute_all(&commands)?) {
                let resumed = kind == start.kind && ask.task == start.task;
                for (number, row) in decode_task_data(kind_of_data, ask, reply)? {
                    // A page may end in the middle of a task.
                    if page.is_full() {
                        return Ok(false);
                    }
                    if !resumed || number > start.after {
                        page.push_row(copy_row![kind == TaskTable::Archived, ask.task, number], row);
                    }
                }
            }
        }
        Ok(!page.is_full())
    }

    /// Returns the tasks that have data, with the key and the number of rows.
    fn read_task_data_sizes(
        &self,
        kind_of_data: TaskDataKind,
        tasks: &[TaskSeq],
    ) -> Result<Vec<(TaskSeq, Vec<u8>, i64)>> {
        let keys: Vec<(TaskSeq, Vec<u8>)> = match kind_of_data {
            TaskDataKind::Attempts => {
                tasks.iter().map(|task| (*task, self.keys().table_key(&Table::Attempts(*task)))).collect()
            }
            TaskDataKind::Logs => {
                let mut keys = self.read_log_keys(tasks)?;
                tasks.iter().filter_map(|task| Some((*task, keys.remove(task)?))).collect()
            }
        };
        let command = match kind_of_data {
            TaskDataKind::Attempts => "HLEN",
            TaskDataKind::Logs => "ZCARD",
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
    pub(super) fn read_log_keys(&self, tasks: &[TaskSeq]) -> Result<HashMap<TaskSeq, Vec<u8>>> {
        let overlay = self.overlay();
        self.prefetch_queue_names()?;
        let mut keys = HashMap::with_capacity(tasks.len());
        for tasks in tasks.chunks(TASKS_PER_NAME_FETCH) {
            let rows = tasks.iter().flat_map(|task| {
                let (bucket, field) = bucket_and_field(*task);
                [
                    CacheFetch::Row(Table::ActiveTasks(bucket), field.clone()),
                    CacheFetch::Row(Table::ArchivedTasks(bucket), field),
                ]
            });
            overlay.fetch(rows.collect())?;
            let mut around = Vec::new();
            for active in overlay.read_active_tasks(tasks.iter().copied())? {
                around.extend(active.event.map(CacheFetch::Event));
                around.extend(active.order_number.map(|n| CacheFetch::Row(Table::Orders, decimal_field(n))));
            }
            overlay.fetch(around)?;
            for task in tasks {
                keys.extend(overlay.read_task_id(*task)?.map(|id| (*task, overlay.keys.task_log_key(&id))));
            }
            // Drops cached events, and keeps cached names.
            overlay.mark_committed();
        }
        Ok(keys)
    }

    /// Fetches the names of queues and handlers.
    pub(super) fn prefetch_queue_names(&self) -> Result<()> {
        let tables = [Table::Texts, Table::Queues, Table::QueueCounts, Table::Handlers];
        self.overlay().fetch(tables.into_iter().map(CacheFetch::Table).collect())
    }
}

/// Plans the requests for the rows of a task; for a log, those after a number in chunks.
fn plan_requests(
    kind_of_data: TaskDataKind,
    task: TaskSeq,
    key: &[u8],
    size: i64,
    after: i64,
) -> Vec<TaskDataRequest> {
    match kind_of_data {
        TaskDataKind::Attempts => {
            vec![TaskDataRequest { task, args: args!["HGETALL", key], first: 0, rows: size }]
        }
        TaskDataKind::Logs => {
            let firsts = (after + 1..size).step_by(ROWS_PER_FETCH as usize);
            let ask = |first: i64| {
                let last = (first + ROWS_PER_FETCH).min(size) - 1;
                let args = args!["ZRANGE", key, first.to_string(), last.to_string()];
                TaskDataRequest { task, args, first, rows: last + 1 - first }
            };
            firsts.map(ask).collect()
        }
    }
}

/// Groups requests so that each group returns a limited number of rows.
fn group_requests(asks: Vec<TaskDataRequest>) -> Vec<Vec<TaskDataRequest>> {
    let mut groups: Vec<(i64, Vec<TaskDataRequest>)> = Vec::new();
    for ask in asks {
        match groups.last_mut() {
            Some((rows, group)) if *rows + ask.rows <= ROWS_PER_FETCH => {
                *rows += ask.rows;
                group.push(ask);
            }
            Some(_) | None => groups.push((ask.rows, vec![ask])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Decodes the rows with their number within the task, in order.
fn decode_task_data(
    kind_of_data: TaskDataKind,
    ask: &TaskDataRequest,
    reply: Value,
) -> Result<Vec<(i64, CopyRow)>> {
    let found = decode_strings(reply)?;
    match kind_of_data {
        TaskDataKind::Attempts => {
            let (pairs, _) = found.as_chunks::<2>();
            let mut attempts: Vec<(i64, CopyRow)> = pairs
                .iter()
                .map(|[number, row]| encode_attempt_row(ask.task, number, row))
                .collect::<Result<_>>()?;
            attempts.sort_unstable_by_key(|(number, _)| *number);
            Ok(attempts)
        }
        TaskDataKind::Logs => {
            let line = |(n, json): (i64, &Vec<u8>)| {
                let line: LogLine = rows::decode_json(json)?;
                Ok((n, encode_log_line_row(ask.task, n, line)))
            };
            (ask.first..).zip(&found).map(line).collect()
        }
    }
}

fn encode_attempt_row(task: TaskSeq, number: &[u8], row: &[u8]) -> Result<(i64, CopyRow)> {
    let number = parse_number(number)?;
    let attempt = rows::decode_attempt(u32::try_from(number).map_err(Fault::damaged)?, row)?;
    let (started, ended, how) =
        (attempt.started_at, attempt.ended_at, encode_attempt_outcome(attempt.outcome));
    Ok((number, copy_row![task, number, started, ended, how, attempt.error]))
}
