//! Rows as columns: each column is sent to PostgreSQL as one array.

use std::collections::HashMap;

use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::task::{LogLine, TaskState};
use pointsman_core::{Event, EventId, TaskSeq, Timestamp};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, encode_attempt_outcome, encode_error_reason, encode_log_level,
};

use crate::writer_connection::{BoxedParam, params};

/// A pending insert of an event: its number, the number of its first task, and its number of tasks.
pub(crate) struct EventInsert {
    pub(crate) event: Event,
    pub(crate) number: i64,
    pub(crate) first_task_seq: i64,
    pub(crate) task_count: usize,
}

/// Declares a struct of column vectors, initially empty.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { $($column:ident: $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name { $($column: Vec<$kind>),* }
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
    /// Events.
    EventColumns {
        number: i64, id: i64, prev: Option<i64>, kind: String, key: Option<String>, sub: Option<String>, tenant: String,
        value: String, context: Option<String>, cause_event: Option<i64>, cause_task: Option<i64>, depth: i32,
        first_task: i64, tasks: i32,
    }
}

impl EventColumns {
    pub(crate) fn from_events(events: Vec<EventInsert>) -> Self {
        let mut columns = Self::default();
        for EventInsert { event, number, first_task_seq: first_task, task_count: tasks } in events {
            columns.number.push(number);
            columns.id.push(event.id.as_i64());
            columns.prev.push(event.prev.map(EventId::as_i64));
            columns.kind.push(event.kind.as_str().into());
            columns.key.push(event.key.as_ref().map(|key| key.as_str().into()));
            columns.sub.push(event.sub_object.as_ref().map(|key| key.as_str().into()));
            columns.tenant.push(event.tenant.as_str().into());
            columns.value.push(event.value.as_str().into());
            // Names and values are strings, which always serialize.
            let context = (!event.context.is_empty()).then(|| serde_json::to_string(&event.context).ok());
            columns.context.push(context.flatten());
            columns.cause_event.push(event.cause.and_then(|cause| cause.event).map(EventId::as_i64));
            columns.cause_task.push(event.cause.map(|cause| cause.task.0));
            columns.depth.push(event.cause_depth().into());
            columns.first_task.push(first_task);
            columns.tasks.push(i32::try_from(tasks).unwrap_or(i32::MAX));
        }
        columns
    }

    pub(crate) fn into_params(self) -> Vec<BoxedParam> {
        params![
            self.number,
            self.id,
            trim_trailing_nulls(self.prev),
            self.kind,
            self.key,
            trim_trailing_nulls(self.sub),
            self.tenant,
            self.value,
            trim_trailing_nulls(self.context),
            trim_trailing_nulls(self.cause_event),
            trim_trailing_nulls(self.cause_task),
            self.depth,
            self.first_task,
            self.tasks,
        ]
    }
}

columns! {
    /// Active tasks.
    ActiveTaskColumns {
        seq: i64, queue: i64, event: Option<i64>, order: Option<i64>, phase: i16, lane: Option<i64>, lane_position: Option<i64>,
        concurrency_group: Option<i64>, key_bucket: Option<i32>, sync: bool, stage: i64, priority: i64, score: i64, rank: i64, due: i64,
        attempt: i64, retries: i64, crashes: i64, late: bool, node: Option<i64>, fence: Option<i64>, until: Option<i64>,
        started: Option<i64>, prev_sent: Option<i64>, planned: Option<i64>, created: i64, reason: Option<i16>,
        error: Option<String>,
    }
}

impl ActiveTaskColumns {
    pub(crate) fn from_tasks(tasks: impl Iterator<Item = ActiveTaskRow>) -> Self {
        let mut columns = Self::default();
        for live in tasks {
            let lease = live.lease();
            columns.seq.push(live.seq.0);
            columns.queue.push(live.queue);
            columns.event.push(live.event.map(EventId::as_i64));
            columns.order.push(live.order_number);
            columns.phase.push(live.phase.code() as i16);
            columns.lane.push(live.lane);
            columns.lane_position.push(live.lane_position);
            columns.concurrency_group.push(live.concurrency_group);
            columns.key_bucket.push(live.key_bucket.map(i32::from));
            columns.sync.push(live.is_sync);
            columns.stage.push(live.stage);
            columns.priority.push(live.priority);
            columns.score.push(live.score);
            columns.rank.push(live.rank);
            columns.due.push(live.due_time().micros());
            columns.attempt.push(live.lifecycle.attempt.into());
            columns.retries.push(live.lifecycle.retries.into());
            columns.crashes.push(live.lifecycle.crashes.into());
            columns.late.push(live.lifecycle.late);
            columns.node.push(lease.map(|lease| lease.node));
            columns.fence.push(lease.map(|lease| lease.fence));
            columns.until.push(lease.and_then(|lease| lease.until).map(Timestamp::micros));
            columns.started.push(live.started_at.map(Timestamp::micros));
            columns.prev_sent.push(live.prev_sent_event.map(EventId::as_i64));
            columns.planned.push(live.planned_at.map(Timestamp::micros));
            columns.created.push(live.created_at.micros());
            columns.reason.push(encode_state_reason(&live.lifecycle.state));
            columns.error.push(live.error.map(replace_nul_chars));
        }
        columns
    }

    pub(crate) fn all_params(self) -> Vec<BoxedParam> {
        params![
            self.seq,
            self.queue,
            self.event,
            trim_trailing_nulls(self.order),
            self.phase,
            self.lane,
            self.lane_position,
            trim_trailing_nulls(self.concurrency_group),
            self.key_bucket,
            self.sync,
            self.stage,
            self.priority,
            self.score,
            self.rank,
            self.due,
            self.attempt,
            self.retries,
            self.crashes,
            self.late,
            trim_trailing_nulls(self.node),
            trim_trailing_nulls(self.fence),
            trim_trailing_nulls(self.until),
            trim_trailing_nulls(self.started),
            trim_trailing_nulls(self.prev_sent),
            trim_trailing_nulls(self.planned),
            self.created,
            trim_trailing_nulls(self.reason),
            trim_trailing_nulls(self.error),
        ]
    }

    /// The columns that change in a task's life.
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
            self.late,
            trim_trailing_nulls(self.node),
            trim_trailing_nulls(self.fence),
            trim_trailing_nulls(self.until),
            trim_trailing_nulls(self.started),
            trim_trailing_nulls(self.reason),
            trim_trailing_nulls(self.error),
        ]
    }
}

columns! {
    /// The columns that change when tasks are locked.
    LockColumns {
        seq: i64, attempt: i64, node: Option<i64>, fence: Option<i64>, until: Option<i64>, started: Option<i64>,
    }
}

impl LockColumns {
    pub(crate) fn from_tasks(tasks: &[ActiveTaskRow]) -> Self {
        let mut columns = Self::default();
        for live in tasks {
            let lease = live.lease();
            columns.seq.push(live.seq.0);
            columns.attempt.push(live.lifecycle.attempt.into());
            columns.node.push(lease.map(|lease| lease.node));
            columns.fence.push(lease.map(|lease| lease.fence));
            columns.until.push(lease.and_then(|lease| lease.until).map(Timestamp::micros));
            columns.started.push(live.started_at.map(Timestamp::micros));
        }
        columns
    }

    pub(crate) fn into_params(self) -> Vec<BoxedParam> {
        let Self { seq, attempt, node, fence, until, started } = self;
        params![seq, attempt, node, fence, trim_trailing_nulls(until), started]
    }
}

fn encode_state_reason(state: &TaskState) -> Option<i16> {
    state.error_reason().map(|reason| encode_error_reason(reason) as i16)
}

columns! {
    /// Archived tasks.
    ArchivedTaskColumns {
        n: i64, seq: i64, queue: i64, event: Option<i64>, kind: String, key: Option<String>, status: i16,
        reason: Option<i16>, sync: bool, stage: i64, priority: i64, attempt: i64, retries: i64, crashes: i64, late: bool,
        has_lane: bool, prev_sent: Option<i64>, planned: Option<i64>, created: i64, started: Option<i64>, finished: i64,
        error: Option<String>, result: Option<String>,
    }
}

impl ArchivedTaskColumns {
    pub(crate) fn from_tasks(ended: impl Iterator<Item = (i64, ArchivedTaskRow)>) -> Self {
        let mut columns = Self::default();
        for (n, archived) in ended {
            columns.n.push(n);
            columns.seq.push(archived.seq.0);
            columns.queue.push(archived.queue);
            columns.event.push(archived.event.map(EventId::as_i64));
            columns.status.push(archived.encode_status() as i16);
            columns.kind.push(archived.subject_name);
            columns.key.push(archived.key);
            columns.reason.push(encode_state_reason(&archived.lifecycle.state));
            columns.sync.push(archived.is_sync);
            columns.stage.push(archived.stage);
            columns.priority.push(archived.priority);
            columns.attempt.push(archived.lifecycle.attempt.into());
            columns.retries.push(archived.lifecycle.retries.into());
            columns.crashes.push(archived.lifecycle.crashes.into());
            columns.late.push(archived.lifecycle.late);
            columns.has_lane.push(archived.lifecycle.has_lane);
            columns.prev_sent.push(archived.prev_sent_event.map(EventId::as_i64));
            columns.planned.push(archived.planned_at.map(Timestamp::micros));
            columns.created.push(archived.created_at.micros());
            columns.started.push(archived.started_at.map(Timestamp::micros));
            columns.finished.push(archived.finished_at.micros());
            columns.error.push(archived.error.map(replace_nul_chars));
            columns.result.push(archived.result);
        }
        columns
    }

    pub(crate) fn into_params(self) -> Vec<BoxedParam> {
        params![
            self.n,
            self.seq,
            self.queue,
            self.event,
            self.kind,
            self.key,
            self.status,
            trim_trailing_nulls(self.reason),
            self.sync,
            self.stage,
            self.priority,
            self.attempt,
            self.retries,
            self.crashes,
            self.late,
            self.has_lane,
            trim_trailing_nulls(self.prev_sent),
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
    /// Attempts.
    AttemptColumns { task: i64, number: i64, started: i64, ended: i64, how: i16, error: Option<String> }
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
        self.how.push(encode_attempt_outcome(attempt.outcome) as i16);
        self.error.push(attempt.error.map(|error| replace_nul_chars(error.into())));
    }

    /// None if there are no rows.
    pub(crate) fn into_params(self, archive_number: i64) -> Option<Vec<BoxedParam>> {
        let Self { task, number, started, ended, how, error } = self;
        (!task.is_empty()).then(|| params![task, number, started, ended, how, error, archive_number])
    }
}

/// Log lines; those of each task are counted from 1.
#[derive(Default)]
pub(crate) struct LogLineColumns {
    task: Vec<i64>,
    line_number: Vec<i64>,
    time: Vec<i64>,
    level: Vec<i16>,
    message: Vec<String>,
    lines_per_task: HashMap<TaskSeq, i64>,
}

impl LogLineColumns {
    pub(crate) fn is_empty(&self) -> bool {
        self.task.is_empty()
    }

    pub(crate) fn push(&mut self, task: TaskSeq, lines: Vec<LogLine>) {
        let line_counts = self.lines_per_task.entry(task).or_default();
        for line in lines {
            *line_counts += 1;
            self.task.push(task.0);
            self.line_number.push(*line_counts);
            self.time.push(line.time.micros());
            self.level.push(encode_log_level(line.level) as i16);
            self.message.push(replace_nul_chars(line.message));
        }
    }

    /// None if there are no rows.
    pub(crate) fn into_params(self, archive_number: i64) -> Option<Vec<BoxedParam>> {
        let Self { task, line_number: line, time, level, message, lines_per_task: _ } = self;
        (!task.is_empty()).then(|| params![archive_number, task, line, time, level, message])
    }
}

/// A pending write of the row of an order.
#[derive(Clone, Debug)]
pub(crate) enum OrderWrite {
    Insert(Order),
    Update(Order),
    Delete,
}

columns! {
    /// Orders.
    OrderColumns {
        n: i64, key: String, chain: String, node: String, tenant: String, value: String, priority: i64,
        planned: Option<i64>, created: i64, started: Option<i64>, suspended: bool, task: Option<i64>, origin: Option<i64>,
        depth: i64, step_succeeded: bool, suspended_by_task: Option<i64>, took_on_error: bool,
    }
}

impl OrderColumns {
    pub(crate) fn from_orders(orders: Vec<(i64, Order)>) -> Self {
        let mut columns = Self::default();
        for (n, order) in orders {
            columns.n.push(n);
            columns.key.push(order.key.to_string());
            columns.chain.push(order.key.chain.to_string());
            columns.node.push(order.node.to_string());
            columns.tenant.push(order.tenant.to_string());
            columns.value.push(order.value.as_str().into());
            columns.priority.push(order.priority.into());
            columns.planned.push(order.planned_at.map(Timestamp::micros));
            columns.created.push(order.created_at.micros());
            columns.started.push(order.started_at.map(Timestamp::micros));
            columns.suspended.push(order.suspended);
            columns.task.push(order.task.map(|task| task.0));
            columns.origin.push(order.origin.map(|origin| origin.event.as_i64()));
            columns.depth.push(order.origin.map_or(0, |origin| origin.cause_depth.into()));
            columns.step_succeeded.push(order.step_succeeded);
            columns.suspended_by_task.push(order.suspended_by_task.map(|task| task.0));
            columns.took_on_error.push(order.took_on_error);
        }
        columns
    }

    pub(crate) fn all_params(self) -> Vec<BoxedParam> {
        params![
            self.n,
            self.key,
            self.chain,
            self.node,
            self.tenant,
            self.value,
            self.priority,
            trim_trailing_nulls(self.planned),
            self.created,
            trim_trailing_nulls(self.started),
            self.suspended,
            trim_trailing_nulls(self.task),
            trim_trailing_nulls(self.origin),
            self.depth,
            self.step_succeeded,
            trim_trailing_nulls(self.suspended_by_task),
            self.took_on_error,
        ]
    }

    /// The columns that change while an order runs.
    pub(crate) fn changeable_params(self) -> Vec<BoxedParam> {
        params![
            self.n,
            self.node,
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
    /// Orders that have ended.
    EndedOrderColumns { key: String, tenant: String, outcome: String, node: String, ended: i64 }
}

impl EndedOrderColumns {
    pub(crate) fn from_orders(orders: Vec<EndedOrder>) -> Self {
        let mut columns = Self::default();
        for EndedOrder { key, tenant, outcome, node, ended_at: ended } in orders {
            columns.key.push(key.to_string());
            columns.tenant.push(tenant.to_string());
            columns.outcome.push(outcome.to_string());
            columns.node.push(node.to_string());
            columns.ended.push(ended.micros());
        }
        columns
    }

    pub(crate) fn all_params(self) -> Vec<BoxedParam> {
        params![self.key, self.tenant, self.outcome, self.node, self.ended]
    }
}

/// Replaces NUL characters, which PostgreSQL does not store in texts; output of handlers and commands may contain them.
pub(crate) fn replace_nul_chars(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text }
}
