//! Rows of the file, read as what they mean.

use pointsman_core::chain::NodeId;
use pointsman_core::fire::Fire;
use pointsman_core::order::{Order, Origin};
use pointsman_core::task::{Lease, Life};
use pointsman_core::{Event, EventId, Json, Priority, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::row::{Live, Numbered, Past, Phase, Waiting};
use pointsman_store::views::EventColumns;
use rusqlite::{Connection, Params, Row};

use crate::error::{Fault, Result};

/// The columns of an unfinished task, in the order that [`live_of`] reads them.
macro_rules! live {
    () => {
        "seq, queue, event, phase, lane, place, crowd, bucket, sync, stage, priority, score, rank, due, attempt, retries, \
         crashes, late, node, fence, until, started, prev_sent, planned, created, reason, error, ord"
    };
}
pub(crate) use live;

/// The columns of an ended task, in the order that [`past_of`] reads them.
macro_rules! past {
    () => {
        "seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late, laned, \
         prev_sent, planned, created, started, finished, error, result"
    };
}
pub(crate) use past;

/// The columns of an order, in the order that [`order_of`] reads them; from `pointsman_order o`. That a step
/// runs is told by its task. It is asked for apart, because SQLite prepares a statement anew for each order if the
/// table of tasks, with its partial indexes, is joined.
macro_rules! order {
    () => {
        "o.n, o.key, o.node, o.tenant, o.value, o.priority, o.planned, o.created, o.started, o.suspended, o.task, \
         coalesce((SELECT phase = 5 FROM pointsman_task WHERE seq = o.task), 0), o.origin, o.depth, o.stepped, \
         o.halted_by, o.took_on_error"
    };
}
pub(crate) use order;

/// The columns of an event, in the order that [`event_of`] reads them.
macro_rules! event {
    () => {
        "id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth"
    };
}
pub(crate) use event;

/// The columns of a fire, in the order that [`fire_of`] reads them.
macro_rules! fire {
    () => {
        "planned, at, outcome, event, task"
    };
}
pub(crate) use fire;

pub(crate) fn text<'r>(row: &'r Row<'_>, index: usize) -> Result<&'r str> {
    row.get_ref(index)?.as_str().map_err(Fault::damaged)
}

pub(crate) fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_micros)
}

pub(crate) fn time_if_any(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_micros))
}

pub(crate) fn event_if_any(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<EventId>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(EventId::from_i64))
}

pub(crate) fn phase(row: &Row<'_>, index: usize) -> Result<Phase> {
    Phase::from_code(row.get(index)?).ok_or_else(|| Fault::damaged("a task's phase"))
}

/// All rows of a statement.
pub(crate) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    some(conn, sql, params, usize::MAX, read)
}

/// The first rows of a statement. A bound LIMIT could make SQLite prepare it anew each time.
pub(crate) fn some<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    most: usize,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row of a statement.
pub(crate) fn first<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

pub(crate) fn seq_of(row: &Row<'_>) -> Result<TaskSeq> {
    Ok(TaskSeq(row.get(0)?))
}

pub(crate) fn live_of(row: &Row<'_>) -> Result<Live> {
    let phase = phase(row, 3)?;
    let started = time_if_any(row, 21)?;
    let lease = || {
        Ok(Lease {
            node: row.get(18)?,
            fence: row.get(19)?,
            since: started.unwrap_or_default(),
            until: time_if_any(row, 20)?,
        })
    };
    let state = Live::state(phase, time(row, 13)?, lease, row.get(25)?)?;
    let (lane, place): (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
    Ok(Live {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        event: event_if_any(row, 2)?,
        order: row.get(27)?,
        phase,
        lane,
        place,
        crowd: row.get(6)?,
        bucket: row.get(7)?,
        sync: row.get(8)?,
        stage: row.get(9)?,
        priority: row.get(10)?,
        score: row.get(11)?,
        rank: row.get(12)?,
        prev_sent: event_if_any(row, 22)?,
        planned: time_if_any(row, 23)?,
        created: time(row, 24)?,
        started,
        error: row.get(26)?,
        life: Life {
            state,
            attempt: row.get(14)?,
            retries: row.get(15)?,
            crashes: row.get(16)?,
            late: row.get(17)?,
            laned: lane.is_some(),
            ordered: place.is_some(),
        },
    })
}

pub(crate) fn past_of(row: &Row<'_>) -> Result<Past> {
    Ok(Past {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        event: event_if_any(row, 2)?,
        collection: row.get(3)?,
        key: row.get(4)?,
        sync: row.get(7)?,
        stage: row.get(8)?,
        priority: row.get(9)?,
        life: Life {
            state: Past::state(row.get(5)?, row.get(6)?)?,
            attempt: row.get(10)?,
            retries: row.get(11)?,
            crashes: row.get(12)?,
            late: row.get(13)?,
            laned: row.get(14)?,
            ordered: false,
        },
        prev_sent: event_if_any(row, 15)?,
        planned: time_if_any(row, 16)?,
        created: time(row, 17)?,
        started: time_if_any(row, 18)?,
        finished: time(row, 19)?,
        error: row.get(20)?,
        result: row.get(21)?,
    })
}

/// From the columns seq, queue, bucket, crowd, score, due.
pub(crate) fn waiting_of(row: &Row<'_>) -> Result<Waiting> {
    Ok(Waiting {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        bucket: row.get(2)?,
        crowd: row.get(3)?,
        score: row.get(4)?,
        due: time(row, 5)?,
    })
}

pub(crate) fn order_of(row: &Row<'_>) -> Result<Numbered> {
    let order = Order {
        key: text(row, 1)?.parse().map_err(Fault::damaged)?,
        node: NodeId::new(text(row, 2)?).map_err(Fault::damaged)?,
        tenant: Tenant::new(text(row, 3)?).map_err(Fault::damaged)?,
        value: Json::trusted(text(row, 4)?),
        priority: Priority::try_from(row.get::<_, i64>(5)?).map_err(Fault::damaged)?,
        planned: time_if_any(row, 6)?,
        created: time(row, 7)?,
        started: time_if_any(row, 8)?,
        suspended: row.get(9)?,
        task: row.get::<_, Option<i64>>(10)?.map(TaskSeq),
        running: row.get(11)?,
        stepped: row.get(14)?,
        halted_by: row.get::<_, Option<i64>>(15)?.map(TaskSeq),
        took_on_error: row.get(16)?,
        origin: match event_if_any(row, 12)? {
            Some(event) => Some(Origin { event, depth: row.get(13)? }),
            None => None,
        },
    };
    Ok(Numbered { n: row.get(0)?, order })
}

pub(crate) fn event_of(row: &Row<'_>) -> Result<Event> {
    let text_if_any = |index: usize| row.get_ref(index)?.as_str_or_null().map_err(Fault::damaged);
    let columns = EventColumns {
        id: row.get(0)?,
        prev: row.get(1)?,
        kind: text(row, 2)?,
        key: text_if_any(3)?,
        sub: text_if_any(4)?,
        tenant: text(row, 5)?,
        value: text(row, 6)?,
        context: text_if_any(7)?,
        cause_event: row.get(8)?,
        cause_task: row.get(9)?,
        depth: row.get(10)?,
    };
    columns.event()
}

pub(crate) fn fire_of(row: &Row<'_>) -> Result<Fire> {
    Ok(Fire {
        planned: time(row, 0)?,
        at: time(row, 1)?,
        outcome: serde_json::from_str(text(row, 2)?).map_err(Fault::damaged)?,
        event: event_if_any(row, 3)?,
        task: row.get::<_, Option<String>>(4)?.map(|text| TaskId::from_text(&text)),
    })
}
