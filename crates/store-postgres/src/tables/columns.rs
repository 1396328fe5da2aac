//! Converts the rows of a write batch to columns: each column is sent to PostgreSQL as one array.

use std::collections::HashMap;

use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::task::{LogLine, TaskState};
use pointsman_core::{Event, EventId, TaskSeq, Timestamp};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, TaskPhase, encode_attempt_outcome, encode_error_reason,
    encode_log_level,
};

use crate::writer_connection::{BoxedParam, params};

/// A pending insert of an event, with its number in the journal and with its tasks, which have consecutive numbers.
pub(crate) struct EventInsert {
    pub(crate) event: Event,
    pub(crate) event_number: i64,
    pub(crate) first_task_seq: i64,
    pub(crate) task_count: usize,
}

/// Declares a struct with a vector for each column.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { $($column:ident: $cell_type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name { $($column: Vec<$cell_type>),* }
    };
}

/// Removes the NULLs at the end of a column, which often is all of it: `unnest` pads shorter arrays with NULLs, and an
/// empty array costs nothing to send.
fn trim_trailing_nulls<T>(mut column: Vec<Option<T>>) -> Vec<Option<T>> {
    let last = column.iter().rposition(Option::is_some);
    column.truncate(last.map_or(0, |last| last + 1));
    column
}

columns! {
    /// Columns of new rows of the journal.
    EventColumns {
        number: i64, id: i64, prev: Option<i64>, event_type: String, key: Option<String>,
        sub_object: Option<String>, tenant: String, value: String, context: Option<String>,
        cause_event: Option<i64>, cause_task: Option<i64>, cause_depth: i32, first_task: i64, task_count: i32,
    }
}

impl EventColumns {
    pub(crate) fn from_events(events: Vec<EventInsert>) -> Self {
        let mut columns = Self::default();
        for EventInsert { event, event_number: number, first_task_seq, task_count } in events {
            columns.number.push(number);
            columns.id.push(event.id.as_i64());
            columns.prev.push(event.prev.map(EventId::as_i64));
            columns.event_type.push(event.event_type.as_str().into());
            columns.key.push(event.key.as_ref().map(|key| key.as_str().into()));
            columns.sub_object.push(event.sub_object.as_ref().map(|key| key.as_str().into()));
            columns.tenant.push(event.tenant.as_str().into());
            columns.value.push(event.value.as_str().into());
            // Names and values are strings, which always serialize.
            let context = (!event.context.is_empty()).then(|| serde_json::to_string(&event.context).ok());
            columns.context.push(context.flatten());
            columns.cause_event.push(event.cause.and_then(|cause| cause.event).map(EventId::as_i64));
            columns.cause_task.push(event.cause.map(|cause| cause.task.0));
            columns.cause_depth.push(event.cause_depth().into());
            columns.first_task.push(first_task_seq);
            columns.task_count.push(i32::try_from(task_count).unwrap_or(i32::MAX));
        }
        columns
    }

    pub(crate) fn into_params(self) -> Vec<BoxedParam> {
        params![
            self.number,
            self.id,
            trim_trailing_nulls(self.prev),
            self.event_type,
            self.key,
            trim_trailing_nulls(self.sub_object),
            self.tenant,
            self.value,
            trim_trailing_nulls(self.context),
            trim_trailing_nulls(self.cause_event),
            trim_trailing_nulls(self.cause_task),
            self.cause_depth,
            self.first_task,
            self.task_count,
        ]
    }
}

columns! {
    /// Columns of active tasks.
    ActiveTaskColumns {
        seq: i64, queue: i64, event: Option<i64>, order_number: Option<i64>, phase: i16, lane: Option<i64>,
        lane_position: Option<i64>, concurrency_group: Option<i64>, key_bucket: Option<i32>, is_sync: bool,
        sync_stage: i64, priority: i64, score: i64, rank: i64, due: i64, attempt: i64, retries: i64,
        crashes: i64, out_of_order: bool, node: Option<i64>, fence: Option<i64>, leased_until: Option<i64>,
        started: Option<i64>, prev_sent_event: Option<i64>, planned: Option<i64>, created: i64,
        reason: Option<i16>, error: Option<String>,
    }
}

impl ActiveTaskColumns {
    pub(crate) fn from_tasks(tasks: impl Iterator<Item = ActiveTaskRow>) -> Self {
        let mut columns = Self::default();
        for task_row in tasks {
            let lease = task_row.lease();
            columns.seq.push(task_row.seq.0);
            columns.queue.push(task_row.queue);
            columns.event.push(task_row.event.map(EventId::as_i64));
            columns.order_number.push(task_row.order_number);
            columns.phase.push(task_row.phase.code() as i16);
            columns.lane.push(task_row.lane);
            columns.lane_position.push(task_row.lane_position);
            columns.concurrency_group.push(task_row.concurrency_group);
            columns.key_bucket.push(task_row.key_bucket.map(i32::from));
            columns.is_sync.push(task_row.is_sync);
            columns.sync_stage.push(task_row.sync_stage);
            columns.priority.push(task_row.priority);
            columns.score.push(task_row.score);
            columns.rank.push(task_row.rank);
            columns.due.push(task_row.due_time().micros());
            columns.attempt.push(task_row.lifecycle.attempt.into());
            columns.retries.push(task_row.lifecycle.retries.into());
            columns.crashes.push(task_row.lifecycle.crashes.into());
            columns.out_of_order.push(task_row.lifecycle.out_of_order);
            columns.node.push(lease.map(|lease| lease.node));
            columns.fence.push(lease.map(|lease| lease.fence));
            columns.leased_until.push(lease.and_then(|lease| lease.until).map(Timestamp::micros));
            columns.started.push(task_row.started_at.map(Timestamp::micros));
            columns.prev_sent_event.push(task_row.prev_sent_event.map(EventId::as_i64));
            columns.planned.push(task_row.planned_at.map(Timestamp::micros));
            columns.created.push(task_row.created_at.micros());
            columns.reason.push(encode_state_reason(&task_row.lifecycle.state));
            columns.error.push(task_row.error.map(replace_nul_chars));
        }
        columns
    }

    pub(crate) fn all_params(self) -> Vec<BoxedParam> {
        params![
            self.seq,
            self.queue,
            self.event,
            trim_trailing_nulls(self.order_number),
            self.phase,
            self.lane,
            self.lane_position,
            trim_trailing_nulls(self.concurrency_group),
            self.key_bucket,
            self.is_sync,
            self.sync_stage,
            self.priority,
            self.score,
            self.rank,
            self.due,
            self.attempt,
            self.retries,
            self.crashes,
            self.out_of_order,
            trim_trailing_nulls(self.node),
            trim_trailing_nulls(self.fence),
            trim_trailing_nulls(self.leased_until),
            trim_trailing_nulls(self.started),
            trim_trailing_nulls(self.prev_sent_event),
            trim_trailing_nulls(self.planned),
            self.created,
            trim_trailing_nulls(self.reason),
            trim_trailing_nulls(self.error),
        ]
    }

    /// Returns the columns that may change while a task is unfinished, as parameters of `task/update_tasks`.
    pub(crate) fn changeable_params(self) -> Vec<BoxedParam> {
        params![
            self.seq,
            self.phase,
            self.lane_position,
            self.rank,
            self.due,
            self.attempt,
            self.retries,
            self.crashes,
            self.out_of_order,
            trim_trailing_nulls(self.node),
            trim_trailing_nulls(self.fence),
            trim_trailing_nulls(self.leased_until),
            trim_trailing_nulls(self.started),
            trim_trailing_nulls(self.reason),
            trim_trailing_nulls(self.error),
        ]
    }
}

columns! {
    /// The columns of active tasks that change when the tasks are leased.
    LockColumns {
        seq: i64, attempt: i64, node: Option<i64>, fence: Option<i64>, leased_until: Option<i64>, started: Option<i64>,
    }
}

impl LockColumns {
    pub(crate) fn from_tasks(tasks: &[ActiveTaskRow]) -> Self {
        let mut columns = Self::default();
        for task_row in tasks {
            let lease = task_row.lease();
            columns.seq.push(task_row.seq.0);
            columns.attempt.push(task_row.lifecycle.attempt.into());
            columns.node.push(lease.map(|lease| lease.node));
            columns.fence.push(lease.map(|lease| lease.fence));
            columns.leased_until.push(lease.and_then(|lease| lease.until).map(Timestamp::micros));
            columns.started.push(task_row.started_at.map(Timestamp::micros));
        }
        columns
    }

    pub(crate) fn into_params(self) -> Vec<BoxedParam> {
        let Self { seq, attempt, node, fence, leased_until, started } = self;
        params![seq, attempt, node, fence, trim_trailing_nulls(leased_until), started]
    }
}

fn encode_state_reason(state: &TaskState) -> Option<i16> {
    state.error_reason().map(|reason| encode_error_reason(reason) as i16)
}

columns! {
    /// Columns of archived tasks.
    ArchivedTaskColumns {
        archive_number: i64, seq: i64, queue: i64, event: Option<i64>, subject_name: String,
        key: Option<String>, status: i16, reason: Option<i16>, is_sync: bool, sync_stage: i64, priority: i64,
        attempt: i64, retries: i64, crashes: i64, out_of_order: bool, has_lane: bool,
        prev_sent_event: Option<i64>, planned: Option<i64>, created: i64, started: Option<i64>, finished: i64,
        error: Option<String>, result: Option<String>,
    }
}

impl ArchivedTaskColumns {
    pub(crate) fn from_tasks(numbered_rows: impl Iterator<Item = (i64, ArchivedTaskRow)>) -> Self {
        let mut columns = Self::default();
        for (archive_number, archived_row) in numbered_rows {
            columns.archive_number.push(archive_number);
            columns.seq.push(archived_row.seq.0);
            columns.queue.push(archived_row.queue);
            columns.event.push(archived_row.event.map(EventId::as_i64));
            columns.status.push(archived_row.encode_status() as i16);
            columns.subject_name.push(archived_row.subject_name);
            columns.key.push(archived_row.key);
            columns.reason.push(encode_state_reason(&archived_row.lifecycle.state));
            columns.is_sync.push(archived_row.is_sync);
            columns.sync_stage.push(archived_row.sync_stage);
            columns.priority.push(archived_row.priority);
            columns.attempt.push(archived_row.lifecycle.attempt.into());
            columns.retries.push(archived_row.lifecycle.retries.into());
            columns.crashes.push(archived_row.lifecycle.crashes.into());
            columns.out_of_order.push(archived_row.lifecycle.out_of_order);
            columns.has_lane.push(archived_row.lifecycle.has_lane);
            columns.prev_sent_event.push(archived_row.prev_sent_event.map(EventId::as_i64));
            columns.planned.push(archived_row.planned_at.map(Timestamp::micros));
            columns.created.push(archived_row.created_at.micros());
            columns.started.push(archived_row.started_at.map(Timestamp::micros));
            columns.finished.push(archived_row.finished_at.micros());
            columns.error.push(archived_row.error.map(replace_nul_chars));
            columns.result.push(archived_row.result);
        }
        columns
    }

    pub(crate) fn into_params(self) -> Vec<BoxedParam> {
        params![
            self.archive_number,
            self.seq,
            self.queue,
            self.event,
            self.subject_name,
            self.key,
            self.status,
            trim_trailing_nulls(self.reason),
            self.is_sync,
            self.sync_stage,
            self.priority,
            self.attempt,
            self.retries,
            self.crashes,
            self.out_of_order,
            self.has_lane,
            trim_trailing_nulls(self.prev_sent_event),
            trim_trailing_nulls(self.planned),
            self.created,
            trim_trailing_nulls(self.started),
            self.finished,
            trim_trailing_nulls(self.error),
            trim_trailing_nulls(self.result),
        ]
    }
}

columns! {
    /// Columns of attempts.
    AttemptColumns { task: i64, number: i64, started: i64, ended: i64, outcome: i16, error: Option<String> }
}

impl AttemptColumns {
    pub(crate) fn is_empty(&self) -> bool {
        self.task.is_empty()
    }

    pub(crate) fn push(&mut self, attempt: &AttemptRow<'_>) {
        self.task.push(attempt.task.0);
        self.number.push(attempt.number.into());
        self.started.push(attempt.started_at.micros());
        self.ended.push(attempt.ended_at.micros());
        self.outcome.push(encode_attempt_outcome(attempt.outcome) as i16);
        self.error.push(attempt.error.map(|error| replace_nul_chars(error.into())));
    }

    /// Returns the parameters of `attempt/upsert_attempts`; none if there are no rows.
    pub(crate) fn into_params(self, archive_number: i64) -> Option<Vec<BoxedParam>> {
        let Self { task, number, started, ended, outcome, error } = self;
        (!task.is_empty()).then(|| params![task, number, started, ended, outcome, error, archive_number])
    }
}

/// Columns of log lines. The lines that a transaction adds to a task are counted from 1.
#[derive(Default)]
pub(crate) struct LogLineColumns {
    task: Vec<i64>,
    line_number: Vec<i64>,
    time: Vec<i64>,
    level: Vec<i16>,
    message: Vec<String>,
    line_counts_by_task: HashMap<TaskSeq, i64>,
}

impl LogLineColumns {
    pub(crate) fn is_empty(&self) -> bool {
        self.task.is_empty()
    }

    pub(crate) fn push(&mut self, task: TaskSeq, lines: Vec<LogLine>) {
        let line_count = self.line_counts_by_task.entry(task).or_default();
        for line in lines {
            *line_count += 1;
            self.task.push(task.0);
            self.line_number.push(*line_count);
            self.time.push(line.time.micros());
            self.level.push(encode_log_level(line.level) as i16);
            self.message.push(replace_nul_chars(line.message));
        }
    }

    /// Returns the parameters of `log/append_log_lines`; none if there are no rows.
    pub(crate) fn into_params(self, archive_number: i64) -> Option<Vec<BoxedParam>> {
        let Self { task, line_number: line, time, level, message, line_counts_by_task: _ } = self;
        (!task.is_empty()).then(|| params![archive_number, task, line, time, level, message])
    }
}

/// Lane, concurrency group and key bucket of a task.
pub(crate) type TaskGrouping = (Option<i64>, Option<i64>, Option<i32>);

/// A pending update of the row of an existing task.
#[derive(Clone, Debug)]
pub(crate) enum TaskUpdate {
    PhaseAndRank(TaskPhase, i64),
    /// The task is leased: only phase, attempt, lease and start time change.
    Lock(Box<ActiveTaskRow>),
    /// All columns change that may change while a task is unfinished.
    ChangeableFields(Box<ActiveTaskRow>),
}

/// A pending write of the row of an order.
#[derive(Clone, Debug)]
pub(crate) enum OrderWrite {
    Insert(Order),
    Update(Order),
    Delete,
}

columns! {
    /// Columns of unfinished orders.
    OrderColumns {
        number: i64, key: String, chain: String, chain_node: String, tenant: String, value: String,
        priority: i64, planned: Option<i64>, created: i64, started: Option<i64>, suspended: bool,
        task: Option<i64>, origin_event: Option<i64>, cause_depth: i64, step_succeeded: bool,
        suspended_by_task: Option<i64>, took_on_error: bool,
    }
}

impl OrderColumns {
    pub(crate) fn from_orders(orders: Vec<(i64, Order)>) -> Self {
        let mut columns = Self::default();
        for (number, order) in orders {
            columns.number.push(number);
            columns.key.push(order.key.to_string());
            columns.chain.push(order.key.chain.to_string());
            columns.chain_node.push(order.node.to_string());
            columns.tenant.push(order.tenant.to_string());
            columns.value.push(order.value.as_str().into());
            columns.priority.push(order.priority.into());
            columns.planned.push(order.planned_at.map(Timestamp::micros));
            columns.created.push(order.created_at.micros());
            columns.started.push(order.started_at.map(Timestamp::micros));
            columns.suspended.push(order.suspended);
            columns.task.push(order.task_seq.map(|task| task.0));
            columns.origin_event.push(order.origin.map(|origin| origin.event_id.as_i64()));
            columns.cause_depth.push(order.origin.map_or(0, |origin| origin.cause_depth.into()));
            columns.step_succeeded.push(order.step_succeeded_at_removed_node);
            columns.suspended_by_task.push(order.suspended_by_task_seq.map(|task| task.0));
            columns.took_on_error.push(order.took_on_error);
        }
        columns
    }

    pub(crate) fn all_params(self) -> Vec<BoxedParam> {
        params![
            self.number,
            self.key,
            self.chain,
            self.chain_node,
            self.tenant,
            self.value,
            self.priority,
            trim_trailing_nulls(self.planned),
            self.created,
            trim_trailing_nulls(self.started),
            self.suspended,
            trim_trailing_nulls(self.task),
            trim_trailing_nulls(self.origin_event),
            self.cause_depth,
            self.step_succeeded,
            trim_trailing_nulls(self.suspended_by_task),
            self.took_on_error,
        ]
    }

    /// Returns the columns that may change while an order is unfinished, as parameters of `orders/update_orders`.
    pub(crate) fn changeable_params(self) -> Vec<BoxedParam> {
        params![
            self.number,
            self.chain_node,
            self.value,
            trim_trailing_nulls(self.planned),
            trim_trailing_nulls(self.started),
            self.suspended,
            trim_trailing_nulls(self.task),
            self.step_succeeded,
            trim_trailing_nulls(self.suspended_by_task),
            self.took_on_error,
        ]
    }
}

columns! {
    /// Columns of ended orders.
    EndedOrderColumns { key: String, tenant: String, outcome: String, chain_node: String, ended: i64 }
}

impl EndedOrderColumns {
    pub(crate) fn from_orders(orders: Vec<EndedOrder>) -> Self {
        let mut columns = Self::default();
        for EndedOrder { key, tenant, outcome, node, ended_at } in orders {
            columns.key.push(key.to_string());
            columns.tenant.push(tenant.to_string());
            columns.outcome.push(outcome.to_string());
            columns.chain_node.push(node.to_string());
            columns.ended.push(ended_at.micros());
        }
        columns
    }

    pub(crate) fn all_params(self) -> Vec<BoxedParam> {
        params![self.key, self.tenant, self.outcome, self.chain_node, self.ended]
    }
}

/// Replaces NUL characters, which PostgreSQL does not store in texts; output of handlers and commands may contain them.
pub(crate) fn replace_nul_chars(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text }
}
