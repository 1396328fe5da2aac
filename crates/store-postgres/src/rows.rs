//! Rows as they come over the wire, and what they mean.
//!
//! Whoever reads a whole row spells its columns out in the order that is written here, from any place `at` on, so that
//! columns of other tables may stand before and behind them.

use pointsman_core::chain::NodeId;
use pointsman_core::fire::Fire;
use pointsman_core::order::{Order, Origin};
use pointsman_core::task::{Attempt, Lease, Life};
use pointsman_core::{Event, EventId, Json, Priority, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Known, Live, Numbered, Past, Phase, end_of};
use pointsman_store::views::EventColumns;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// One column. What is not of the type that it should be is damage.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(Fault::damaged)
}

pub(crate) fn time(row: &Row, at: usize) -> Result<Timestamp> {
    get(row, at).map(Timestamp::from_micros)
}

pub(crate) fn maybe_time(row: &Row, at: usize) -> Result<Option<Timestamp>> {
    Ok(get::<Option<i64>>(row, at)?.map(Timestamp::from_micros))
}

pub(crate) fn maybe_event_id(row: &Row, at: usize) -> Result<Option<EventId>> {
    Ok(get::<Option<i64>>(row, at)?.map(EventId::from_i64))
}

pub(crate) fn maybe_seq(row: &Row, at: usize) -> Result<Option<TaskSeq>> {
    Ok(get::<Option<i64>>(row, at)?.map(TaskSeq))
}

/// A count, which is kept as a larger number than it needs.
pub(crate) fn count(row: &Row, at: usize) -> Result<u32> {
    u32::try_from(get::<i64>(row, at)?).map_err(Fault::damaged)
}

pub(crate) fn phase(row: &Row, at: usize) -> Result<Phase> {
    phase_of(get(row, at)?)
}

pub(crate) fn maybe_phase(row: &Row, at: usize) -> Result<Option<Phase>> {
    get::<Option<i16>>(row, at)?.map(phase_of).transpose()
}

fn phase_of(code: i16) -> Result<Phase> {
    Phase::from_code(code.into()).ok_or_else(|| Fault::damaged("a task's phase"))
}

/// The place of a key in its queue's round robin.
pub(crate) fn bucket(row: &Row, at: usize) -> Result<Option<u16>> {
    get::<Option<i32>>(row, at)?.map(u16::try_from).transpose().map_err(Fault::damaged)
}

/// An unfinished task: seq, queue, event, ord, phase, lane, place, crowd, bucket, sync, stage, priority, score, rank,
/// due, attempt, retries, crashes, late, node, fence, until, started, prev_sent, planned, created, reason, error.
pub(crate) fn live_of(row: &Row, at: usize) -> Result<Live> {
    let phase = phase(row, at + 4)?;
    let (lane, place): (Option<i64>, Option<i64>) = (get(row, at + 5)?, get(row, at + 6)?);
    let started = maybe_time(row, at + 22)?;
    let lease = || {
        Ok(Lease {
            node: get(row, at + 19)?,
            fence: get(row, at + 20)?,
            since: started.unwrap_or_default(),
            until: maybe_time(row, at + 21)?,
        })
    };
    let reason: Option<i16> = get(row, at + 26)?;
    let life = Life {
        state: Live::state(phase, time(row, at + 14)?, lease, reason.map(i64::from))?,
        attempt: count(row, at + 15)?,
        retries: count(row, at + 16)?,
        crashes: count(row, at + 17)?,
        late: get(row, at + 18)?,
        laned: lane.is_some(),
        ordered: place.is_some(),
    };
    Ok(Live {
        seq: TaskSeq(get(row, at)?),
        queue: get(row, at + 1)?,
        event: maybe_event_id(row, at + 2)?,
        order: get(row, at + 3)?,
        phase,
        lane,
        place,
        crowd: get(row, at + 7)?,
        bucket: bucket(row, at + 8)?,
        sync: get(row, at + 9)?,
        stage: get(row, at + 10)?,
        priority: get(row, at + 11)?,
        score: get(row, at + 12)?,
        rank: get(row, at + 13)?,
        prev_sent: maybe_event_id(row, at + 23)?,
        planned: maybe_time(row, at + 24)?,
        created: time(row, at + 25)?,
        started,
        error: get(row, at + 27)?,
        life,
    })
}

/// How many columns an unfinished task has.
pub(crate) const LIVE: usize = 28;

/// An ended task: seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late,
/// laned, prev_sent, planned, created, started, finished, error, result.
pub(crate) fn past_of(row: &Row, at: usize) -> Result<Past> {
    let (status, reason): (i16, Option<i16>) = (get(row, at + 5)?, get(row, at + 6)?);
    let life = Life {
        state: Past::state(status.into(), reason.map(i64::from))?,
        attempt: count(row, at + 10)?,
        retries: count(row, at + 11)?,
        crashes: count(row, at + 12)?,
        late: get(row, at + 13)?,
        laned: get(row, at + 14)?,
        ordered: false,
    };
    Ok(Past {
        seq: TaskSeq(get(row, at)?),
        queue: get(row, at + 1)?,
        event: maybe_event_id(row, at + 2)?,
        collection: get(row, at + 3)?,
        key: get(row, at + 4)?,
        sync: get(row, at + 7)?,
        stage: get(row, at + 8)?,
        priority: get(row, at + 9)?,
        life,
        prev_sent: maybe_event_id(row, at + 15)?,
        planned: maybe_time(row, at + 16)?,
        created: time(row, at + 17)?,
        started: maybe_time(row, at + 18)?,
        finished: time(row, at + 19)?,
        error: get(row, at + 20)?,
        result: get(row, at + 21)?,
    })
}

/// How many columns an ended task has.
pub(crate) const PAST: usize = 22;

/// An event: id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth.
pub(crate) fn event_of(row: &Row, at: usize) -> Result<Event> {
    let columns = EventColumns {
        id: get(row, at)?,
        prev: get(row, at + 1)?,
        kind: get(row, at + 2)?,
        key: get(row, at + 3)?,
        sub: get(row, at + 4)?,
        tenant: get(row, at + 5)?,
        value: get(row, at + 6)?,
        context: get(row, at + 7)?,
        cause_event: get(row, at + 8)?,
        cause_task: get(row, at + 9)?,
        depth: u16::try_from(get::<i32>(row, at + 10)?).map_err(Fault::damaged)?,
    };
    columns.event()
}

/// An order: n, key, node, tenant, value, priority, planned, created, started, suspended, task, running (whether its
/// task is locked), origin, depth, stepped, halted_by, took_on_error.
pub(crate) fn order_of(row: &Row, at: usize) -> Result<Numbered> {
    let origin = match maybe_event_id(row, at + 12)? {
        Some(event) => {
            let depth = u16::try_from(get::<i64>(row, at + 13)?).map_err(Fault::damaged)?;
            Some(Origin { event, depth })
        }
        None => None,
    };
    let order = Order {
        key: get::<&str>(row, at + 1)?.parse().map_err(Fault::damaged)?,
        node: NodeId::new(get::<&str>(row, at + 2)?).map_err(Fault::damaged)?,
        tenant: Tenant::new(get::<&str>(row, at + 3)?).map_err(Fault::damaged)?,
        value: Json::trusted(get::<&str>(row, at + 4)?),
        priority: Priority::try_from(get::<i64>(row, at + 5)?).map_err(Fault::damaged)?,
        planned: maybe_time(row, at + 6)?,
        created: time(row, at + 7)?,
        started: maybe_time(row, at + 8)?,
        suspended: get(row, at + 9)?,
        task: maybe_seq(row, at + 10)?,
        running: get(row, at + 11)?,
        origin,
        stepped: get(row, at + 14)?,
        halted_by: maybe_seq(row, at + 15)?,
        took_on_error: get(row, at + 16)?,
    };
    Ok(Numbered { n: get(row, at)?, order })
}

/// How many columns an order has.
pub(crate) const ORDER: usize = 17;

/// An attempt: number, started, ended, how, error.
pub(crate) fn attempt_of(row: &Row, at: usize) -> Result<Attempt> {
    Ok(Attempt {
        number: count(row, at)?,
        started_at: time(row, at + 1)?,
        ended_at: time(row, at + 2)?,
        end: end_of(get::<i16>(row, at + 3)?.into())?,
        error: get(row, at + 4)?,
    })
}

/// A row of the fire ledger: planned, at, outcome, event, task.
pub(crate) fn fire_of(row: &Row) -> Result<Fire> {
    Ok(Fire {
        planned: time(row, 0)?,
        at: time(row, 1)?,
        outcome: serde_json::from_str(get(row, 2)?).map_err(Fault::damaged)?,
        event: maybe_event_id(row, 3)?,
        task: get::<Option<&str>>(row, 4)?.map(TaskId::from_text),
    })
}

/// A chain: def, defined, state.
pub(crate) fn chain_of(row: &Row) -> Result<Known> {
    Ok(Known {
        chain: serde_json::from_str(get(row, 0)?).map_err(Fault::damaged)?,
        defined: get(row, 1)?,
        state: serde_json::from_str(get(row, 2)?).map_err(Fault::damaged)?,
    })
}
