//! Rows of unfinished and ended tasks, and what they mean in the domain.

use pointsman_core::task::{AttemptEnd, EndReason, Lease, Life, State, Status, TaskSeq};
use pointsman_core::{EventId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::phase::Phase;
use crate::state::QueueId;

/// An unfinished task as it lies in the table.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) seq: TaskSeq,
    pub(crate) queue: QueueId,
    pub(crate) event: EventId,
    pub(crate) phase: Phase,
    /// The lane it stands in; none if its handler knows no order, or it runs late.
    pub(crate) lane: Option<i64>,
    pub(crate) sync: bool,
    pub(crate) stage: i64,
    pub(crate) priority: i64,
    pub(crate) prev_sent: Option<EventId>,
    pub(crate) created: Timestamp,
    /// When its latest attempt began.
    pub(crate) started: Option<Timestamp>,
    pub(crate) error: Option<String>,
    pub(crate) life: Life,
}

/// The columns of an unfinished task, in the order that [`Live::from_row`] reads them.
macro_rules! live {
    () => {
        "seq, queue, event, phase, lane, sync, stage, priority, due, attempt, retries, crashes, late, node, fence, \
         started, prev_sent, created, reason, error"
    };
}
pub(crate) use live;

impl Live {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self> {
        let phase = Phase::from_code(row.get(3)?).ok_or_else(|| Fault::damaged("a task's phase"))?;
        let started = row.get::<_, Option<i64>>(15)?.map(Timestamp::from_micros);
        let state = match phase {
            Phase::Blocked | Phase::Gated | Phase::Delayed | Phase::Ready => {
                State::New { due: Timestamp::from_micros(row.get(8)?) }
            }
            Phase::Scheduled => State::Scheduled,
            Phase::Locked => State::Locked(Lease {
                node: row.get(13)?,
                fence: row.get(14)?,
                since: started.unwrap_or_default(),
            }),
            Phase::Halted => State::Error { reason: reason(row.get(18)?)?, halts: true },
            Phase::Missing => State::Missing { due: Timestamp::from_micros(row.get(8)?) },
        };
        Ok(Self {
            seq: TaskSeq(row.get(0)?),
            queue: row.get(1)?,
            event: EventId::from_i64(row.get(2)?),
            phase,
            lane: row.get(4)?,
            sync: row.get(5)?,
            stage: row.get(6)?,
            priority: row.get(7)?,
            prev_sent: row.get::<_, Option<i64>>(16)?.map(EventId::from_i64),
            created: Timestamp::from_micros(row.get(17)?),
            started,
            error: row.get(19)?,
            life: Life {
                state,
                attempt: row.get(9)?,
                retries: row.get(10)?,
                crashes: row.get(11)?,
                late: row.get(12)?,
                ordered: row.get::<_, Option<i64>>(4)?.is_some(),
            },
        })
    }

    pub(crate) fn load(conn: &Connection, seq: TaskSeq) -> Result<Option<Self>> {
        let sql = concat!("SELECT ", live!(), " FROM pointsman_task WHERE seq = ?1");
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([seq.0])?;
        rows.next()?.map(Self::from_row).transpose()
    }

    pub(crate) fn insert(&self, conn: &Connection) -> Result<()> {
        let sql = concat!(
            "INSERT INTO pointsman_task (",
            live!(),
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, NULL, ?19)"
        );
        let (due, lease) = match self.life.state {
            State::New { due } => (due, None),
            State::Locked(lease) => (self.created, Some(lease)),
            State::Scheduled | State::Done | State::Error { .. } | State::Missing { .. } => {
                (self.created, None)
            }
        };
        conn.prepare_cached(sql)?.execute(rusqlite::params![
            self.seq.0,
            self.queue,
            self.event.as_i64(),
            self.phase.code(),
            self.lane,
            self.sync,
            self.stage,
            self.priority,
            due.micros(),
            self.life.attempt,
            self.life.retries,
            self.life.crashes,
            self.life.late,
            lease.map(|l| l.node),
            lease.map(|l| l.fence),
            self.started.map(Timestamp::micros),
            self.prev_sent.map(EventId::as_i64),
            self.created.micros(),
            self.error,
        ])?;
        Ok(())
    }

    pub(crate) fn delete(&self, conn: &Connection) -> Result<()> {
        conn.prepare_cached("DELETE FROM pointsman_task WHERE seq = ?1")?.execute([self.seq.0])?;
        Ok(())
    }
}

/// An ended task as it lies in the history.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) seq: TaskSeq,
    pub(crate) queue: QueueId,
    pub(crate) event: EventId,
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
    pub(crate) sync: bool,
    pub(crate) stage: i64,
    pub(crate) priority: i64,
    pub(crate) life: Life,
    pub(crate) prev_sent: Option<EventId>,
    pub(crate) created: Timestamp,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
    pub(crate) error: Option<String>,
    pub(crate) result: Option<String>,
}

/// The columns of an ended task, in the order that [`Past::from_row`] reads them.
macro_rules! past {
    () => {
        "seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late, \
         prev_sent, created, started, finished, error, result"
    };
}
pub(crate) use past;

impl Past {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self> {
        let state = match row.get::<_, i64>(5)? {
            DONE => State::Done,
            _ => State::Error { reason: reason(row.get(6)?)?, halts: false },
        };
        Ok(Self {
            seq: TaskSeq(row.get(0)?),
            queue: row.get(1)?,
            event: EventId::from_i64(row.get(2)?),
            kind: row.get(3)?,
            key: row.get(4)?,
            sync: row.get(7)?,
            stage: row.get(8)?,
            priority: row.get(9)?,
            life: Life {
                state,
                attempt: row.get(10)?,
                retries: row.get(11)?,
                crashes: row.get(12)?,
                late: row.get(13)?,
                ordered: false,
            },
            prev_sent: row.get::<_, Option<i64>>(14)?.map(EventId::from_i64),
            created: Timestamp::from_micros(row.get(15)?),
            started: row.get::<_, Option<i64>>(16)?.map(Timestamp::from_micros),
            finished: Timestamp::from_micros(row.get(17)?),
            error: row.get(18)?,
            result: row.get(19)?,
        })
    }

    pub(crate) fn load(conn: &Connection, seq: TaskSeq) -> Result<Option<Self>> {
        let sql = concat!("SELECT ", past!(), " FROM pointsman_history WHERE seq = ?1");
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([seq.0])?;
        rows.next()?.map(Self::from_row).transpose()
    }

    pub(crate) fn delete(&self, conn: &Connection) -> Result<()> {
        conn.prepare_cached("DELETE FROM pointsman_history WHERE seq = ?1")?.execute([self.seq.0])?;
        Ok(())
    }

    /// Writes an ended task. Its type and key go along, because its event may be forgotten before it.
    pub(crate) fn archive(
        conn: &Connection,
        live: &Live,
        (kind, key): (&str, Option<&str>),
        life: &Life,
        finished: Timestamp,
        remains: Remains<'_>,
    ) -> Result<()> {
        let sql = concat!(
            "INSERT INTO pointsman_history (",
            past!(),
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
        );
        let status = if life.state.status() == Status::Done { DONE } else { ERROR };
        conn.prepare_cached(sql)?.execute(rusqlite::params![
            live.seq.0,
            live.queue,
            live.event.as_i64(),
            kind,
            key,
            status,
            life.state.reason().map(reason_code),
            live.sync,
            live.stage,
            live.priority,
            life.attempt,
            life.retries,
            life.crashes,
            life.late,
            live.prev_sent.map(EventId::as_i64),
            live.created.micros(),
            live.started.map(Timestamp::micros),
            finished.micros(),
            remains.error.or(live.error.as_deref().filter(|_| status == ERROR)),
            remains.result,
        ])?;
        Ok(())
    }
}

pub(crate) const DONE: i64 = 0;
pub(crate) const ERROR: i64 = 1;

pub(crate) fn reason_code(reason: EndReason) -> i64 {
    match reason {
        EndReason::Failed => 0,
        EndReason::Crashed => 1,
        EndReason::Canceled => 2,
    }
}

fn reason(code: Option<i64>) -> Result<EndReason> {
    match code {
        Some(0) => Ok(EndReason::Failed),
        Some(1) => Ok(EndReason::Crashed),
        Some(2) => Ok(EndReason::Canceled),
        _ => Err(Fault::damaged("the reason of a task's end")),
    }
}

pub(crate) fn end_code(end: AttemptEnd) -> i64 {
    match end {
        AttemptEnd::Succeeded => 0,
        AttemptEnd::Failed => 1,
        AttemptEnd::Snoozed => 2,
        AttemptEnd::Released => 3,
        AttemptEnd::Crashed => 4,
        AttemptEnd::Canceled => 5,
    }
}

pub(crate) fn end_of(code: i64) -> Result<AttemptEnd> {
    const ALL: [AttemptEnd; 6] = [
        AttemptEnd::Succeeded,
        AttemptEnd::Failed,
        AttemptEnd::Snoozed,
        AttemptEnd::Released,
        AttemptEnd::Crashed,
        AttemptEnd::Canceled,
    ];
    let end = usize::try_from(code).ok().and_then(|index| ALL.get(index).copied());
    end.ok_or_else(|| Fault::damaged("the end of an attempt"))
}

/// Whether the journal still has an event.
pub(crate) fn event_is_kept(conn: &Connection, event: EventId) -> Result<bool> {
    let mut statement = conn.prepare_cached("SELECT 1 FROM pointsman_journal WHERE id = ?1")?;
    Ok(statement.query_row([event.as_i64()], |_| Ok(())).optional()?.is_some())
}
