//! Archived tasks, and the attempts and log lines of all tasks.

use std::borrow::Cow;

use pointsman_core::task::{AttemptRecord, LogLine, TaskLifecycle};
use pointsman_core::{EventId, TaskSeq, Timestamp};

use super::columns;
use crate::error::TableResult;
use crate::row::{
    ArchivedTaskRow, AttemptRow, decode_attempt_outcome, decode_log_level, encode_attempt_outcome,
    encode_error_reason, encode_log_level,
};

columns! {
    /// The columns of an archived task.
    ArchivedTaskColumns<'a> key(seq) {
        seq: i64,
        queue: i64,
        event: Option<i64>,
        /// The event's type, the source's collection, or the chain node of the step.
        subject_name: Cow<'a, str> as "type",
        key: Option<Cow<'a, str>>,
        status: i16,
        /// The code of the reason for `error`.
        reason: Option<i16>,
        sync: bool,
        stage: i64,
        priority: i64,
        attempt: u32,
        retries: u32,
        crashes: u32,
        late: bool,
        has_lane: bool,
        prev_sent: Option<i64>,
        planned: Option<i64>,
        created: i64,
        started: Option<i64>,
        finished: i64,
        error: Option<Cow<'a, str>>,
        result: Option<Cow<'a, str>>,
    }
}

impl<'a> ArchivedTaskColumns<'a> {
    pub fn from_row(row: &'a ArchivedTaskRow) -> Self {
        let TaskLifecycle { state, attempt, retries, crashes, out_of_order, has_lane, in_lane: _ } =
            row.lifecycle;
        Self {
            seq: row.seq.0,
            queue: row.queue,
            event: row.event.map(EventId::as_i64),
            subject_name: row.subject_name.as_str().into(),
            key: row.key.as_deref().map(Cow::Borrowed),
            status: row.encode_status(),
            reason: state.error_reason().map(encode_error_reason),
            sync: row.is_sync,
            stage: row.sync_stage,
            priority: row.priority,
            attempt,
            retries,
            crashes,
            late: out_of_order,
            has_lane,
            prev_sent: row.prev_sent_event.map(EventId::as_i64),
            planned: row.planned_at.map(Timestamp::micros),
            created: row.created_at.micros(),
            started: row.started_at.map(Timestamp::micros),
            finished: row.finished_at.micros(),
            error: row.error.as_deref().map(Cow::Borrowed),
            result: row.result.as_deref().map(Cow::Borrowed),
        }
    }

    pub fn into_row(self) -> TableResult<ArchivedTaskRow> {
        Ok(ArchivedTaskRow {
            seq: TaskSeq(self.seq),
            queue: self.queue,
            event: self.event.map(EventId::from_i64),
            subject_name: self.subject_name.into(),
            key: self.key.map(Cow::into_owned),
            is_sync: self.sync,
            sync_stage: self.stage,
            priority: self.priority,
            lifecycle: TaskLifecycle {
                state: ArchivedTaskRow::decode_state(self.status, self.reason)?,
                attempt: self.attempt,
                retries: self.retries,
                crashes: self.crashes,
                out_of_order: self.late,
                has_lane: self.has_lane,
                in_lane: false,
            },
            prev_sent_event: self.prev_sent.map(EventId::from_i64),
            planned_at: self.planned.map(Timestamp::from_micros),
            created_at: Timestamp::from_micros(self.created),
            started_at: self.started.map(Timestamp::from_micros),
            finished_at: Timestamp::from_micros(self.finished),
            error: self.error.map(Cow::into_owned),
            result: self.result.map(Cow::into_owned),
        })
    }
}

columns! {
    /// The columns of an attempt that did not succeed.
    AttemptColumns<'a> key(task, number) {
        task: i64,
        number: u32,
        started: i64,
        ended: i64,
        outcome: i16,
        error: Option<Cow<'a, str>>,
    }
}

impl<'a> AttemptColumns<'a> {
    pub fn from_row(row: &AttemptRow<'a>) -> Self {
        Self {
            task: row.task.0,
            number: row.number,
            started: row.started_at.micros(),
            ended: row.ended_at.micros(),
            outcome: encode_attempt_outcome(row.outcome),
            error: row.error.map(Cow::Borrowed),
        }
    }

    pub fn into_record(self) -> TableResult<AttemptRecord> {
        Ok(AttemptRecord {
            number: self.number,
            started_at: Timestamp::from_micros(self.started),
            ended_at: Timestamp::from_micros(self.ended),
            outcome: decode_attempt_outcome(self.outcome)?,
            error: self.error.map(Cow::into_owned),
        })
    }
}

columns! {
    /// The columns of a log line.
    LogLineColumns<'a> key(task, n) {
        task: i64,
        /// The position in the log of the task.
        n: i64,
        time: i64,
        level: i16,
        message: Cow<'a, str>,
    }
}

impl<'a> LogLineColumns<'a> {
    pub fn from_line(task: TaskSeq, number: i64, line: &'a LogLine) -> Self {
        Self {
            task: task.0,
            n: number,
            time: line.time.micros(),
            level: encode_log_level(line.level),
            message: line.message.as_str().into(),
        }
    }

    pub fn into_line(self) -> LogLine {
        LogLine {
            time: Timestamp::from_micros(self.time),
            level: decode_log_level(self.level),
            message: self.message.into(),
        }
    }
}
