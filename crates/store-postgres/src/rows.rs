//! Decodes rows.
//!
//! A query that reads a whole row selects its columns in the order given here, from any `index` on, so that columns of
//! other tables may precede and follow.

use pointsman_core::chain::ChainNodeId;
use pointsman_core::fire::Fire;
use pointsman_core::order::{Order, OrderOrigin};
use pointsman_core::task::{AttemptRecord, Lease, TaskLifecycle};
use pointsman_core::{Event, EventId, Json, Priority, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, ChainRow, OrderRow, TaskPhase, decode_attempt_outcome,
};
use pointsman_store::views::EventColumns;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// Reads a column; a value of an unexpected type means that the database is damaged.
pub(crate) fn read_column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> TableResult<T> {
    row.try_get(index).map_err(Fault::damaged)
}

pub(crate) fn read_time(row: &Row, index: usize) -> TableResult<Timestamp> {
    read_column(row, index).map(Timestamp::from_micros)
}

pub(crate) fn read_optional_time(row: &Row, index: usize) -> TableResult<Option<Timestamp>> {
    Ok(read_column::<Option<i64>>(row, index)?.map(Timestamp::from_micros))
}

pub(crate) fn read_optional_event_id(row: &Row, index: usize) -> TableResult<Option<EventId>> {
    Ok(read_column::<Option<i64>>(row, index)?.map(EventId::from_i64))
}

pub(crate) fn read_optional_task_seq(row: &Row, index: usize) -> TableResult<Option<TaskSeq>> {
    Ok(read_column::<Option<i64>>(row, index)?.map(TaskSeq))
}

/// Reads a number that PostgreSQL stores as bigint, because it has no unsigned type.
pub(crate) fn read_u32(row: &Row, index: usize) -> TableResult<u32> {
    u32::try_from(read_column::<i64>(row, index)?).map_err(Fault::damaged)
}

pub(crate) fn read_phase(row: &Row, index: usize) -> TableResult<TaskPhase> {
    decode_phase(read_column(row, index)?)
}

pub(crate) fn read_optional_phase(row: &Row, index: usize) -> TableResult<Option<TaskPhase>> {
    read_column::<Option<i16>>(row, index)?.map(decode_phase).transpose()
}

fn decode_phase(code: i16) -> TableResult<TaskPhase> {
    TaskPhase::from_code(code.into()).ok_or_else(|| Fault::damaged("a task's phase"))
}

/// Reads the bucket of a key in its queue's round robin.
pub(crate) fn read_key_bucket(row: &Row, index: usize) -> TableResult<Option<u16>> {
    read_column::<Option<i32>>(row, index)?.map(u16::try_from).transpose().map_err(Fault::damaged)
}

/// Decodes an unfinished task from the columns seq, queue, event, order_number, phase, lane, lane_position,
/// concurrency_group, key_bucket, sync, stage, priority, score, rank, due, attempt, retries, crashes, late, node,
/// fence, leased_until, started, prev_sent, planned, created, reason, error.
pub(crate) fn decode_active_task(row: &Row, index: usize) -> TableResult<ActiveTaskRow> {
    let phase = read_phase(row, index + 4)?;
    let (lane, lane_position): (Option<i64>, Option<i64>) =
        (read_column(row, index + 5)?, read_column(row, index + 6)?);
    let started = read_optional_time(row, index + 22)?;
    let lease = || {
        Ok(Lease {
            node: read_column(row, index + 19)?,
            fence: read_column(row, index + 20)?,
            since: started.unwrap_or_default(),
            until: read_optional_time(row, index + 21)?,
        })
    };
    let reason: Option<i16> = read_column(row, index + 26)?;
    let lifecycle = TaskLifecycle {
        state: ActiveTaskRow::decode_state(phase, read_time(row, index + 14)?, lease, reason.map(i64::from))?,
        attempt: read_u32(row, index + 15)?,
        retries: read_u32(row, index + 16)?,
        crashes: read_u32(row, index + 17)?,
        out_of_order: read_column(row, index + 18)?,
        has_lane: lane.is_some(),
        in_lane: lane_position.is_some(),
    };
    Ok(ActiveTaskRow {
        seq: TaskSeq(read_column(row, index)?),
        queue: read_column(row, index + 1)?,
        event: read_optional_event_id(row, index + 2)?,
        order_number: read_column(row, index + 3)?,
        phase,
        lane,
        lane_position,
        concurrency_group: read_column(row, index + 7)?,
        key_bucket: read_key_bucket(row, index + 8)?,
        is_sync: read_column(row, index + 9)?,
        sync_stage: read_column(row, index + 10)?,
        priority: read_column(row, index + 11)?,
        score: read_column(row, index + 12)?,
        rank: read_column(row, index + 13)?,
        prev_sent_event: read_optional_event_id(row, index + 23)?,
        planned_at: read_optional_time(row, index + 24)?,
        created_at: read_time(row, index + 25)?,
        started_at: started,
        error: read_column(row, index + 27)?,
        lifecycle,
    })
}

/// Number of columns that [`decode_active_task`] reads.
pub(crate) const ACTIVE_TASK_COLUMN_COUNT: usize = 28;

/// Decodes an ended task from the columns seq, queue, event, type, key, status, reason, sync, stage, priority, attempt,
/// retries, crashes, late, has_lane, prev_sent, planned, created, started, finished, error, result.
pub(crate) fn decode_archived_task(row: &Row, index: usize) -> TableResult<ArchivedTaskRow> {
    let (status, reason): (i16, Option<i16>) = (read_column(row, index + 5)?, read_column(row, index + 6)?);
    let lifecycle = TaskLifecycle {
        state: ArchivedTaskRow::decode_state(status.into(), reason.map(i64::from))?,
        attempt: read_u32(row, index + 10)?,
        retries: read_u32(row, index + 11)?,
        crashes: read_u32(row, index + 12)?,
        out_of_order: read_column(row, index + 13)?,
        has_lane: read_column(row, index + 14)?,
        in_lane: false,
    };
    Ok(ArchivedTaskRow {
        seq: TaskSeq(read_column(row, index)?),
        queue: read_column(row, index + 1)?,
        event: read_optional_event_id(row, index + 2)?,
        subject_name: read_column(row, index + 3)?,
        key: read_column(row, index + 4)?,
        is_sync: read_column(row, index + 7)?,
        sync_stage: read_column(row, index + 8)?,
        priority: read_column(row, index + 9)?,
        lifecycle,
        prev_sent_event: read_optional_event_id(row, index + 15)?,
        planned_at: read_optional_time(row, index + 16)?,
        created_at: read_time(row, index + 17)?,
        started_at: read_optional_time(row, index + 18)?,
        finished_at: read_time(row, index + 19)?,
        error: read_column(row, index + 20)?,
        result: read_column(row, index + 21)?,
    })
}

/// Number of columns that [`decode_archived_task`] reads.
pub(crate) const ARCHIVED_TASK_COLUMN_COUNT: usize = 22;

/// Decodes an event from the columns id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth.
pub(crate) fn decode_event(row: &Row, index: usize) -> TableResult<Event> {
    let columns = EventColumns {
        id: read_column(row, index)?,
        prev: read_column(row, index + 1)?,
        event_type: read_column(row, index + 2)?,
        key: read_column(row, index + 3)?,
        sub: read_column(row, index + 4)?,
        tenant: read_column(row, index + 5)?,
        value: read_column(row, index + 6)?,
        context: read_column(row, index + 7)?,
        cause_event: read_column(row, index + 8)?,
        cause_task: read_column(row, index + 9)?,
        cause_depth: u16::try_from(read_column::<i32>(row, index + 10)?).map_err(Fault::damaged)?,
    };
    columns.into_event()
}

/// Decodes an order from the columns n, key, node, tenant, value, priority, planned, created, started, suspended, task,
/// running (whether its task is locked), origin, depth, step_succeeded, suspended_by_task, took_on_error.
pub(crate) fn decode_order(row: &Row, index: usize) -> TableResult<OrderRow> {
    let origin = match read_optional_event_id(row, index + 12)? {
        Some(event) => {
            let depth = u16::try_from(read_column::<i64>(row, index + 13)?).map_err(Fault::damaged)?;
            Some(OrderOrigin { event_id: event, cause_depth: depth })
        }
        None => None,
    };
    let order = Order {
        key: read_column::<&str>(row, index + 1)?.parse().map_err(Fault::damaged)?,
        node: ChainNodeId::new(read_column::<&str>(row, index + 2)?).map_err(Fault::damaged)?,
        tenant: Tenant::new(read_column::<&str>(row, index + 3)?).map_err(Fault::damaged)?,
        value: Json::from_trusted(read_column::<&str>(row, index + 4)?),
        priority: Priority::try_from(read_column::<i64>(row, index + 5)?).map_err(Fault::damaged)?,
        planned_at: read_optional_time(row, index + 6)?,
        created_at: read_time(row, index + 7)?,
        started_at: read_optional_time(row, index + 8)?,
        suspended: read_column(row, index + 9)?,
        task_seq: read_optional_task_seq(row, index + 10)?,
        step_running: read_column(row, index + 11)?,
        origin,
        step_succeeded_at_removed_node: read_column(row, index + 14)?,
        suspended_by_task_seq: read_optional_task_seq(row, index + 15)?,
        took_on_error: read_column(row, index + 16)?,
    };
    Ok(OrderRow { number: read_column(row, index)?, order })
}

/// Number of columns that [`decode_order`] reads.
pub(crate) const ORDER_COLUMN_COUNT: usize = 17;

/// Decodes an attempt from the columns number, started, ended, outcome, error.
pub(crate) fn decode_attempt(row: &Row, index: usize) -> TableResult<AttemptRecord> {
    Ok(AttemptRecord {
        number: read_u32(row, index)?,
        started_at: read_time(row, index + 1)?,
        ended_at: read_time(row, index + 2)?,
        outcome: decode_attempt_outcome(read_column::<i16>(row, index + 3)?.into())?,
        error: read_column(row, index + 4)?,
    })
}

/// Decodes a row of the fire ledger from the columns planned, at, outcome, event, task.
pub(crate) fn decode_fire(row: &Row) -> TableResult<Fire> {
    Ok(Fire {
        planned_at: read_time(row, 0)?,
        recorded_at: read_time(row, 1)?,
        outcome: serde_json::from_str(read_column(row, 2)?).map_err(Fault::damaged)?,
        event_id: read_optional_event_id(row, 3)?,
        task: read_column::<Option<&str>>(row, 4)?.map(TaskId::from_text),
    })
}

/// Decodes a chain from the columns def, defined, state.
pub(crate) fn decode_chain(row: &Row) -> TableResult<ChainRow> {
    Ok(ChainRow {
        chain: serde_json::from_str(read_column(row, 0)?).map_err(Fault::damaged)?,
        is_defined: read_column(row, 1)?,
        state: serde_json::from_str(read_column(row, 2)?).map_err(Fault::damaged)?,
    })
}
