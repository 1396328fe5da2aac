//! Queries, and the conversion of rows to domain types.

use pointsman_core::chain::ChainNodeId;
use pointsman_core::fire::Fire;
use pointsman_core::order::{Order, OrderOrigin};
use pointsman_core::task::{Lease, TaskLifecycle};
use pointsman_core::{Event, EventId, Json, Priority, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, OrderRow, TaskPhase, WaitingTask};
use pointsman_store::views::EventColumns;
use rusqlite::{Connection, Params, Row};

use crate::error::{Fault, TableResult};

/// The columns of an active task, in the order that [`active_task_from_row`] reads them.
macro_rules! active_task_columns {
    () => {
        "seq, queue, event, phase, lane, lane_position, concurrency_group, key_bucket, sync, stage, priority, score, rank, \
         due, attempt, retries, crashes, late, node, fence, leased_until, started, prev_sent, planned, created, reason, \
         error, order_number"
    };
}
pub(crate) use active_task_columns;

/// The columns of an archived task, in the order that [`archived_task_from_row`] reads them.
macro_rules! archived_task_columns {
    () => {
        "seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late, \
         has_lane, prev_sent, planned, created, started, finished, error, result"
    };
}
pub(crate) use archived_task_columns;

/// The columns of an order, in the order that [`order_from_row`] reads them; from `pointsman_order o`. The phase
/// of its task is read by a subquery, because SQLite prepares the statement again for each order if the
/// table of tasks, with its partial indexes, is joined.
macro_rules! order_columns {
    () => {
        "o.n, o.key, o.node, o.tenant, o.value, o.priority, o.planned, o.created, o.started, o.suspended, o.task, \
         (SELECT phase FROM pointsman_task WHERE seq = o.task), o.origin, o.depth, o.step_succeeded, \
         o.suspended_by_task, o.took_on_error"
    };
}
pub(crate) use order_columns;

/// The columns of an event, in the order that [`event_from_row`] reads them.
macro_rules! event_columns {
    () => {
        "id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth"
    };
}
pub(crate) use event_columns;

/// The columns of a fire, in the order that [`fire_from_row`] reads them.
macro_rules! fire_columns {
    () => {
        "planned, at, outcome, event, task"
    };
}
pub(crate) use fire_columns;

pub(crate) fn read_text<'r>(row: &'r Row<'_>, index: usize) -> TableResult<&'r str> {
    row.get_ref(index)?.as_str().map_err(Fault::damaged)
}

pub(crate) fn read_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_micros)
}

pub(crate) fn read_optional_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_micros))
}

pub(crate) fn read_optional_event_id(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<EventId>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(EventId::from_i64))
}

pub(crate) fn read_phase(row: &Row<'_>, index: usize) -> TableResult<TaskPhase> {
    TaskPhase::from_code(row.get(index)?).ok_or_else(|| Fault::damaged("a task has an unknown phase"))
}

/// Returns all rows of a statement.
pub(crate) fn query_all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl FnMut(&Row<'_>) -> TableResult<T>,
) -> TableResult<Vec<T>> {
    query_up_to(conn, sql, params, usize::MAX, decode)
}

/// Returns at most `limit` rows of a statement. A bound LIMIT could make SQLite prepare the statement again each time.
pub(crate) fn query_up_to<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    limit: usize,
    mut decode: impl FnMut(&Row<'_>) -> TableResult<T>,
) -> TableResult<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        found.push(decode(row)?);
    }
    Ok(found)
}

/// Returns the first row of a statement.
pub(crate) fn query_first<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl FnOnce(&Row<'_>) -> TableResult<T>,
) -> TableResult<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(decode).transpose()
}

pub(crate) fn task_seq_from_row(row: &Row<'_>) -> TableResult<TaskSeq> {
    Ok(TaskSeq(row.get(0)?))
}

pub(crate) fn active_task_from_row(row: &Row<'_>) -> TableResult<ActiveTaskRow> {
    let phase = read_phase(row, 3)?;
    let started_at = read_optional_time(row, 21)?;
    let lease = || {
        Ok(Lease {
            node: row.get(18)?,
            fence: row.get(19)?,
            since: started_at.unwrap_or_default(),
            until: read_optional_time(row, 20)?,
        })
    };
    let state = ActiveTaskRow::decode_state(phase, read_time(row, 13)?, lease, row.get(25)?)?;
    let (lane, lane_position): (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
    Ok(ActiveTaskRow {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        event: read_optional_event_id(row, 2)?,
        order_number: row.get(27)?,
        phase,
        lane,
        lane_position,
        concurrency_group: row.get(6)?,
        key_bucket: row.get(7)?,
        is_sync: row.get(8)?,
        sync_stage: row.get(9)?,
        priority: row.get(10)?,
        score: row.get(11)?,
        rank: row.get(12)?,
        prev_sent_event: read_optional_event_id(row, 22)?,
        planned_at: read_optional_time(row, 23)?,
        created_at: read_time(row, 24)?,
        started_at,
        error: row.get(26)?,
        lifecycle: TaskLifecycle {
            state,
            attempt: row.get(14)?,
            retries: row.get(15)?,
            crashes: row.get(16)?,
            out_of_order: row.get(17)?,
            has_lane: lane.is_some(),
            in_lane: lane_position.is_some(),
        },
    })
}

pub(crate) fn archived_task_from_row(row: &Row<'_>) -> TableResult<ArchivedTaskRow> {
    Ok(ArchivedTaskRow {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        event: read_optional_event_id(row, 2)?,
        subject_name: row.get(3)?,
        key: row.get(4)?,
        is_sync: row.get(7)?,
        sync_stage: row.get(8)?,
        priority: row.get(9)?,
        lifecycle: TaskLifecycle {
            state: ArchivedTaskRow::decode_state(row.get(5)?, row.get(6)?)?,
            attempt: row.get(10)?,
            retries: row.get(11)?,
            crashes: row.get(12)?,
            out_of_order: row.get(13)?,
            has_lane: row.get(14)?,
            in_lane: false,
        },
        prev_sent_event: read_optional_event_id(row, 15)?,
        planned_at: read_optional_time(row, 16)?,
        created_at: read_time(row, 17)?,
        started_at: read_optional_time(row, 18)?,
        finished_at: read_time(row, 19)?,
        error: row.get(20)?,
        result: row.get(21)?,
    })
}

/// Reads the columns seq, queue, key_bucket, concurrency_group, score and due.
pub(crate) fn waiting_task_from_row(row: &Row<'_>) -> TableResult<WaitingTask> {
    Ok(WaitingTask {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        key_bucket: row.get(2)?,
        concurrency_group: row.get(3)?,
        score: row.get(4)?,
        due: read_time(row, 5)?,
    })
}

pub(crate) fn order_from_row(row: &Row<'_>) -> TableResult<OrderRow> {
    let order = Order {
        key: read_text(row, 1)?.parse().map_err(Fault::damaged)?,
        node: ChainNodeId::new(read_text(row, 2)?).map_err(Fault::damaged)?,
        tenant: Tenant::new(read_text(row, 3)?).map_err(Fault::damaged)?,
        value: Json::from_trusted(read_text(row, 4)?),
        priority: Priority::try_from(row.get::<_, i64>(5)?).map_err(Fault::damaged)?,
        planned_at: read_optional_time(row, 6)?,
        created_at: read_time(row, 7)?,
        started_at: read_optional_time(row, 8)?,
        suspended: row.get(9)?,
        task_seq: row.get::<_, Option<i64>>(10)?.map(TaskSeq),
        step_running: row.get::<_, Option<i64>>(11)? == Some(TaskPhase::Locked.code()),
        step_succeeded_at_removed_node: row.get(14)?,
        suspended_by_task_seq: row.get::<_, Option<i64>>(15)?.map(TaskSeq),
        took_on_error: row.get(16)?,
        origin: match read_optional_event_id(row, 12)? {
            Some(event) => Some(OrderOrigin { event_id: event, cause_depth: row.get(13)? }),
            None => None,
        },
    };
    Ok(OrderRow { number: row.get(0)?, order })
}

pub(crate) fn event_from_row(row: &Row<'_>) -> TableResult<Event> {
    let optional_text = |index: usize| row.get_ref(index)?.as_str_or_null().map_err(Fault::damaged);
    let columns = EventColumns {
        id: row.get(0)?,
        prev: row.get(1)?,
        event_type: read_text(row, 2)?,
        key: optional_text(3)?,
        sub: optional_text(4)?,
        tenant: read_text(row, 5)?,
        value: read_text(row, 6)?,
        context: optional_text(7)?,
        cause_event: row.get(8)?,
        cause_task: row.get(9)?,
        cause_depth: row.get(10)?,
    };
    columns.into_event()
}

pub(crate) fn fire_from_row(row: &Row<'_>) -> TableResult<Fire> {
    Ok(Fire {
        planned_at: read_time(row, 0)?,
        recorded_at: read_time(row, 1)?,
        outcome: serde_json::from_str(read_text(row, 2)?).map_err(Fault::damaged)?,
        event_id: read_optional_event_id(row, 3)?,
        task: row.get::<_, Option<String>>(4)?.map(|text| TaskId::from_text(&text)),
    })
}
