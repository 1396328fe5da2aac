//! Rows of unfinished and ended tasks, and what they mean in the domain.

use pointsman_core::task::{AttemptEnd, EndReason, Lease, Life, State, Status, Subject, TaskSeq};
use pointsman_core::{EventId, ObjectKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::phase::Phase;
use crate::queues::QueueId;

/// An unfinished task as it lies in the table.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) seq: TaskSeq,
    pub(crate) queue: QueueId,
    /// None for a source's task and for a step.
    pub(crate) event: Option<EventId>,
    /// The number of the order whose step it is.
    pub(crate) order: Option<i64>,
    pub(crate) phase: Phase,
    /// The lane it belongs in; none if its handler knows no order.
    pub(crate) lane: Option<i64>,
    /// Where it stands in its lane; none if it does not.
    pub(crate) place: Option<i64>,
    /// Those of the same object, of which only so many may run at a time.
    pub(crate) crowd: Option<i64>,
    /// The place of its key in the queue's round robin of keys.
    pub(crate) bucket: Option<u16>,
    pub(crate) sync: bool,
    pub(crate) stage: i64,
    pub(crate) priority: i64,
    pub(crate) score: i64,
    /// Where it stands among those of the same score; given when it becomes ready.
    pub(crate) rank: i64,
    pub(crate) prev_sent: Option<EventId>,
    /// The time that a schedule planned it for.
    pub(crate) planned: Option<Timestamp>,
    pub(crate) created: Timestamp,
    /// When its latest attempt began.
    pub(crate) started: Option<Timestamp>,
    pub(crate) error: Option<String>,
    pub(crate) life: Life,
}

/// The columns of an unfinished task, in the order that [`Live::from_row`] reads them.
macro_rules! live {
    () => {
        "seq, queue, event, phase, lane, place, crowd, bucket, sync, stage, priority, score, rank, due, attempt, retries, \
         crashes, late, node, fence, until, started, prev_sent, planned, created, reason, error, ord"
    };
}
pub(crate) use live;

impl Live {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self> {
        let phase = Phase::from_code(row.get(3)?).ok_or_else(|| Fault::damaged("a task's phase"))?;
        let time = |index: usize| -> Result<Option<Timestamp>> {
            Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_micros))
        };
        let started = time(21)?;
        let state = match phase {
            Phase::Blocked | Phase::Gated | Phase::Delayed | Phase::Ready => {
                State::New { due: Timestamp::from_micros(row.get(13)?) }
            }
            Phase::Scheduled => State::Scheduled,
            Phase::Locked => State::Locked(Lease {
                node: row.get(18)?,
                fence: row.get(19)?,
                since: started.unwrap_or_default(),
                until: time(20)?,
            }),
            Phase::Halted => State::Error { reason: reason(row.get(25)?)?, halts: true },
            Phase::Missing => State::Missing { due: Timestamp::from_micros(row.get(13)?) },
        };
        let (lane, place): (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
        Ok(Self {
            seq: TaskSeq(row.get(0)?),
            queue: row.get(1)?,
            event: row.get::<_, Option<i64>>(2)?.map(EventId::from_i64),
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
            prev_sent: row.get::<_, Option<i64>>(22)?.map(EventId::from_i64),
            planned: time(23)?,
            created: Timestamp::from_micros(row.get(24)?),
            started,
            error: row.get(26)?,
            order: row.get(27)?,
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
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
             ?22, ?23, ?24, ?25, NULL, ?26, ?27)"
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
            self.event.map(EventId::as_i64),
            self.phase.code(),
            self.lane,
            self.place,
            self.crowd,
            self.bucket,
            self.sync,
            self.stage,
            self.priority,
            self.score,
            self.rank,
            due.micros(),
            self.life.attempt,
            self.life.retries,
            self.life.crashes,
            self.life.late,
            lease.map(|l| l.node),
            lease.map(|l| l.fence),
            lease.and_then(|l| l.until).map(Timestamp::micros),
            self.started.map(Timestamp::micros),
            self.prev_sent.map(EventId::as_i64),
            self.planned.map(Timestamp::micros),
            self.created.micros(),
            self.error,
            self.order,
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
    /// None for a source's task and for a step.
    pub(crate) event: Option<EventId>,
    /// The event's type, the source's collection, or the node of the step.
    pub(crate) collection: String,
    pub(crate) key: Option<String>,
    pub(crate) sync: bool,
    pub(crate) stage: i64,
    pub(crate) priority: i64,
    pub(crate) life: Life,
    pub(crate) prev_sent: Option<EventId>,
    pub(crate) planned: Option<Timestamp>,
    pub(crate) created: Timestamp,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
    pub(crate) error: Option<String>,
    pub(crate) result: Option<String>,
}

/// The columns of an ended task, in the order that [`Past::from_row`] reads them.
macro_rules! past {
    () => {
        "seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late, laned, \
         prev_sent, planned, created, started, finished, error, result"
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
            event: row.get::<_, Option<i64>>(2)?.map(EventId::from_i64),
            collection: row.get(3)?,
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
                laned: row.get(14)?,
                ordered: false,
            },
            prev_sent: row.get::<_, Option<i64>>(15)?.map(EventId::from_i64),
            planned: row.get::<_, Option<i64>>(16)?.map(Timestamp::from_micros),
            created: Timestamp::from_micros(row.get(17)?),
            started: row.get::<_, Option<i64>>(18)?.map(Timestamp::from_micros),
            finished: Timestamp::from_micros(row.get(19)?),
            error: row.get(20)?,
            result: row.get(21)?,
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
        subject: &Subject,
        life: &Life,
        finished: Timestamp,
        remains: Remains<'_>,
    ) -> Result<()> {
        let sql = concat!(
            "INSERT INTO pointsman_history (",
            past!(),
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
             ?22)"
        );
        let status = if life.state.status() == Status::Done { DONE } else { ERROR };
        conn.prepare_cached(sql)?.execute(rusqlite::params![
            live.seq.0,
            live.queue,
            live.event.map(EventId::as_i64),
            subject.collection(),
            subject.key().map(ObjectKey::as_str),
            status,
            life.state.reason().map(reason_code),
            live.sync,
            live.stage,
            live.priority,
            life.attempt,
            life.retries,
            life.crashes,
            life.late,
            life.laned,
            live.prev_sent.map(EventId::as_i64),
            live.planned.map(Timestamp::micros),
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
