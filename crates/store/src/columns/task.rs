//! Active tasks.

use std::borrow::Cow;

use pointsman_core::task::{Lease, TaskLifecycle};
use pointsman_core::{EventId, TaskSeq, Timestamp};

use super::columns;
use crate::error::{Fault, TableResult};
use crate::row::{ActiveTaskRow, TaskPhase, encode_error_reason};

columns! {
    /// The columns of an active task.
    ActiveTaskColumns<'a> key(seq) {
        seq: i64,
        /// The id of the task's event. A script of the Redis store reads this column.
        event: Option<i64>,
        queue: i64,
        order_number: Option<i64>,
        phase: i16,
        lane: Option<i64>,
        lane_position: Option<i64>,
        concurrency_group: Option<i64>,
        key_bucket: Option<u16>,
        sync: bool,
        stage: i64,
        priority: i64,
        score: i64,
        rank: i64,
        due: i64,
        attempt: u32,
        retries: u32,
        crashes: u32,
        late: bool,
        /// The node that has locked the task.
        node: Option<i64>,
        fence: Option<i64>,
        leased_until: Option<i64>,
        started: Option<i64>,
        prev_sent: Option<i64>,
        planned: Option<i64>,
        created: i64,
        /// The code of the reason for `error`.
        reason: Option<i16>,
        error: Option<Cow<'a, str>>,
    }
}

impl<'a> ActiveTaskColumns<'a> {
    pub fn from_row(row: &'a ActiveTaskRow) -> Self {
        let lease = row.lease();
        let TaskLifecycle { state, attempt, retries, crashes, out_of_order, has_lane: _, in_lane: _ } =
            row.lifecycle;
        Self {
            seq: row.seq.0,
            event: row.event.map(EventId::as_i64),
            queue: row.queue,
            order_number: row.order_number,
            phase: row.phase.code(),
            lane: row.lane,
            lane_position: row.lane_position,
            concurrency_group: row.concurrency_group,
            key_bucket: row.key_bucket,
            sync: row.is_sync,
            stage: row.sync_stage,
            priority: row.priority,
            score: row.score,
            rank: row.rank,
            due: row.due_time().micros(),
            attempt,
            retries,
            crashes,
            late: out_of_order,
            node: lease.map(|lease| lease.node),
            fence: lease.map(|lease| lease.fence),
            leased_until: lease.and_then(|lease| lease.until).map(Timestamp::micros),
            started: row.started_at.map(Timestamp::micros),
            prev_sent: row.prev_sent_event.map(EventId::as_i64),
            planned: row.planned_at.map(Timestamp::micros),
            created: row.created_at.micros(),
            reason: state.error_reason().map(encode_error_reason),
            error: row.error.as_deref().map(Cow::Borrowed),
        }
    }

    /// Converts the columns to a row. The due time of a locked task is lost: its state does not contain one.
    pub fn into_row(self) -> TableResult<ActiveTaskRow> {
        let phase = TaskPhase::from_code(self.phase);
        let phase = phase.ok_or_else(|| Fault::damaged("a task has an unknown phase"))?;
        let started_at = self.started.map(Timestamp::from_micros);
        let lease = || {
            let node_and_fence = self.node.zip(self.fence);
            let (node, fence) = node_and_fence.ok_or_else(|| Fault::damaged("a locked task has no lease"))?;
            let until = self.leased_until.map(Timestamp::from_micros);
            Ok(Lease { node, fence, since: started_at.unwrap_or_default(), until })
        };
        let due = Timestamp::from_micros(self.due);
        Ok(ActiveTaskRow {
            seq: TaskSeq(self.seq),
            queue: self.queue,
            event: self.event.map(EventId::from_i64),
            order_number: self.order_number,
            phase,
            lane: self.lane,
            lane_position: self.lane_position,
            concurrency_group: self.concurrency_group,
            key_bucket: self.key_bucket,
            is_sync: self.sync,
            sync_stage: self.stage,
            priority: self.priority,
            score: self.score,
            rank: self.rank,
            prev_sent_event: self.prev_sent.map(EventId::from_i64),
            planned_at: self.planned.map(Timestamp::from_micros),
            created_at: Timestamp::from_micros(self.created),
            started_at,
            lifecycle: TaskLifecycle {
                state: ActiveTaskRow::decode_state(phase, due, lease, self.reason)?,
                attempt: self.attempt,
                retries: self.retries,
                crashes: self.crashes,
                out_of_order: self.late,
                has_lane: self.lane.is_some(),
                in_lane: self.lane_position.is_some(),
            },
            error: self.error.map(Cow::into_owned),
        })
    }
}
