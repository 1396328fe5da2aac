//! Carries out what the lifecycle decides: loads a task, asks [`transition`], writes what it says.

use std::sync::Arc;

use pointsman_core::task::lifecycle::{Effect, transition};
use pointsman_core::task::{AttemptEnd, Command, Life, Rejected, State, TaskSeq};
use pointsman_core::{Event, EventId, Timestamp};

use crate::error::{Fault, Result};
use crate::phase::Phase;
use crate::read_journal::load_event;
use crate::row::{Live, Past, end_code, event_is_kept, reason_code};
use crate::state::QueueId;
use crate::writer::Txn;

/// What an attempt left to be kept with the task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remains<'a> {
    pub(crate) error: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
}

/// The task that stands first in a lane.
struct Head {
    seq: TaskSeq,
    queue: QueueId,
    /// It waited for those before it.
    blocked: bool,
    due: Timestamp,
}

impl Txn<'_> {
    /// Does `command` to a task, wherever it is. A refusal changes nothing.
    pub(crate) fn command(
        &mut self,
        seq: TaskSeq,
        command: Command,
        remains: Remains<'_>,
        now: Timestamp,
    ) -> Result<std::result::Result<Life, Rejected>> {
        let live = match self.state.running.get(&seq) {
            Some(running) => Some(running.live.clone()),
            None => Live::load(self.conn, seq)?,
        };
        match live {
            Some(live) => self.command_live(live, command, remains, now),
            None => match Past::load(self.conn, seq)? {
                Some(past) => self.command_past(past, command, now),
                None => Ok(Err(Rejected::NoSuchTask)),
            },
        }
    }

    pub(crate) fn command_live(
        &mut self,
        live: Live,
        command: Command,
        remains: Remains<'_>,
        now: Timestamp,
    ) -> Result<std::result::Result<Life, Rejected>> {
        let handler = self.state.handler(self.state.queue(live.queue)?.handler)?.clone();
        let (life, effects) = match transition(live.seq, live.life, command, &handler.def, now) {
            Ok(outcome) => outcome,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let running = self.state.running.remove(&live.seq);
        if effects.contains(&Effect::Archive) {
            live.delete(self.conn)?;
            let event = match running {
                Some(running) => running.event,
                None => self.event_of(&live)?,
            };
            let named = (event.kind.as_str(), event.key.as_ref().map(|key| key.as_str()));
            Past::archive(self.conn, &live, named, &life, now, remains)?;
            self.state.moved(live.queue, Some(live.phase), None)?;
            self.state.ended += 1;
        } else {
            self.rewrite(&live, &life, remains.error, now)?;
        }
        for effect in effects {
            match effect {
                Effect::RecordAttempt(end) => self.record_attempt(&live, end, remains.error, now)?,
                Effect::OpenGate if live.sync => self.open_gates(live.event, now)?,
                Effect::AdvanceLane => self.advance_lane(live.lane, now)?,
                Effect::OpenGate | Effect::Archive | Effect::Restore => {}
            }
        }
        Ok(Ok(life))
    }

    /// The event of an unfinished task, which is kept as long as the task is.
    pub(crate) fn event_of(&self, live: &Live) -> Result<Arc<Event>> {
        if let Some(event) = self.state.recent.get(live.event) {
            return Ok(event);
        }
        let event = load_event(self.conn, live.event)?;
        event.map(Arc::new).ok_or_else(|| Fault::damaged(format!("task {} has lost its event", live.seq)))
    }

    /// The only thing that can be done to an ended task is to run it again.
    fn command_past(
        &mut self,
        past: Past,
        command: Command,
        now: Timestamp,
    ) -> Result<std::result::Result<Life, Rejected>> {
        let handler = self.state.handler(self.state.queue(past.queue)?.handler)?.clone();
        let (life, _) = match transition(past.seq, past.life, command, &handler.def, now) {
            Ok(outcome) => outcome,
            Err(rejected) => return Ok(Err(rejected)),
        };
        if !event_is_kept(self.conn, past.event)? {
            return Ok(Err(Rejected::Forgotten));
        }
        past.delete(self.conn)?;
        self.state.ended -= 1;
        let phase = match self.is_gated(past.event, past.stage)? {
            true => Phase::Gated,
            false => Phase::Ready,
        };
        let live = Live {
            seq: past.seq,
            queue: past.queue,
            event: past.event,
            phase,
            lane: None,
            sync: past.sync,
            stage: past.stage,
            priority: past.priority,
            prev_sent: past.prev_sent,
            created: past.created,
            started: past.started,
            error: past.error,
            life,
        };
        live.insert(self.conn)?;
        self.state.moved(live.queue, None, Some(phase))?;
        Ok(Ok(life))
    }

    /// Writes the new state of a task that stays unfinished.
    fn rewrite(&mut self, live: &Live, life: &Life, error: Option<&str>, now: Timestamp) -> Result<()> {
        let lane = live.lane.filter(|_| life.ordered);
        let (phase, due, lease, reason) = match life.state {
            State::New { due } => (self.new_phase(live, lane, due, now)?, due, None, None),
            State::Scheduled => (Phase::Scheduled, now, None, None),
            State::Locked(lease) => (Phase::Locked, now, Some(lease), None),
            State::Error { reason, .. } => (Phase::Halted, now, None, Some(reason_code(reason))),
            State::Missing { due } => (Phase::Missing, due, None, None),
            State::Done => return Err(Fault::damaged("a done task is history")),
        };
        // What was wrong before the task was lost says nothing of it once it is taken up again.
        let error = error.or(live.error.as_deref()).filter(|_| live.phase != Phase::Missing);
        let sql = "UPDATE pointsman_task
                   SET phase = ?2, lane = ?3, due = ?4, attempt = ?5, retries = ?6, crashes = ?7, late = ?8,
                       node = ?9, fence = ?10, started = coalesce(?11, started), reason = ?12,
                       error = ?13
                   WHERE seq = ?1";
        self.conn.prepare_cached(sql)?.execute(rusqlite::params![
            live.seq.0,
            phase.code(),
            lane,
            due.micros(),
            life.attempt,
            life.retries,
            life.crashes,
            life.late,
            lease.map(|l| l.node),
            lease.map(|l| l.fence),
            lease.map(|l| l.since.micros()),
            reason,
            error,
        ])?;
        self.state.moved(live.queue, Some(live.phase), Some(phase))
    }

    /// What a task that is `new` waits for.
    fn new_phase(&mut self, live: &Live, lane: Option<i64>, due: Timestamp, now: Timestamp) -> Result<Phase> {
        if live.phase == Phase::Missing && self.is_gated(live.event, live.stage)? {
            return Ok(Phase::Gated);
        }
        if let Some(lane) = lane
            && !self.is_lane_head(lane, live.seq)?
        {
            return Ok(Phase::Blocked);
        }
        Ok(self.phase_when_free(due, now))
    }

    /// The phase of a task that only its time can hold back.
    pub(crate) fn phase_when_free(&mut self, due: Timestamp, now: Timestamp) -> Phase {
        if due <= now {
            return Phase::Ready;
        }
        if self.state.next_due.is_none_or(|earliest| due < earliest) {
            self.state.next_due = Some(due);
            self.state.sooner = true;
        }
        Phase::Delayed
    }

    /// The first task of a lane: of those that are unfinished, the oldest.
    fn lane_head(&self, lane: i64) -> Result<Option<Head>> {
        // The index yields a lane's tasks by age. Asked for in words (ORDER BY, or min), that order would make
        // SQLite prepare the statement anew for every lane, which took an eighth of the writer's time.
        let sql = "SELECT seq, queue, phase, due FROM pointsman_task INDEXED BY pointsman_task_lane
                   WHERE lane = ?1 LIMIT 1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([lane])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(Head {
            seq: TaskSeq(row.get(0)?),
            queue: row.get(1)?,
            blocked: row.get::<_, i64>(2)? == Phase::Blocked.code(),
            due: Timestamp::from_micros(row.get(3)?),
        }))
    }

    fn is_lane_head(&self, lane: i64, seq: TaskSeq) -> Result<bool> {
        Ok(self.lane_head(lane)?.is_some_and(|head| head.seq == seq))
    }

    /// Lets the head of a lane run, if it was waiting for that.
    fn advance_lane(&mut self, lane: Option<i64>, now: Timestamp) -> Result<()> {
        let Some(lane) = lane else { return Ok(()) };
        let Some(head) = self.lane_head(lane)?.filter(|head| head.blocked) else { return Ok(()) };
        let phase = self.phase_when_free(head.due, now);
        self.set_phase(head.seq, phase)?;
        self.state.moved(head.queue, Some(Phase::Blocked), Some(phase))
    }

    /// Whether a synchronous task of the event comes before this stage and has not had its first attempt yet.
    fn is_gated(&self, event: EventId, stage: i64) -> Result<bool> {
        if stage == 0 {
            return Ok(false);
        }
        let sql = "SELECT count(*) FROM pointsman_journal j
                   JOIN pointsman_task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
                   WHERE j.id = ?1 AND t.sync AND t.stage < ?2 AND NOT t.late AND t.phase <= 5 AND NOT EXISTS
                       (SELECT 1 FROM pointsman_attempt a WHERE a.task = t.seq AND a.how <> ?3)";
        let released = end_code(AttemptEnd::Released);
        let waiting: i64 =
            self.conn.prepare_cached(sql)?.query_row((event.as_i64(), stage, released), |r| r.get(0))?;
        Ok(waiting > 0)
    }

    /// Lets those of the event run that no synchronous task holds back any more.
    fn open_gates(&mut self, event: EventId, now: Timestamp) -> Result<()> {
        let sql = "SELECT seq, queue, lane, due, stage FROM pointsman_task
                   WHERE phase = 1 AND event = ?1 ORDER BY stage, seq";
        let gated: Vec<(i64, i64, Option<i64>, i64, i64)> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([event.as_i64()], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?))
            })?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for (seq, queue, lane, due, stage) in gated {
            if self.is_gated(event, stage)? {
                // Whoever holds this one back holds back all that come after it.
                break;
            }
            let behind = match lane {
                Some(lane) => !self.is_lane_head(lane, TaskSeq(seq))?,
                None => false,
            };
            let phase =
                if behind { Phase::Blocked } else { self.phase_when_free(Timestamp::from_micros(due), now) };
            self.set_phase(TaskSeq(seq), phase)?;
            self.state.moved(queue, Some(Phase::Gated), Some(phase))?;
        }
        Ok(())
    }

    pub(crate) fn set_phase(&mut self, seq: TaskSeq, phase: Phase) -> Result<()> {
        let mut statement =
            self.conn.prepare_cached("UPDATE pointsman_task SET phase = ?2 WHERE seq = ?1")?;
        statement.execute((seq.0, phase.code()))?;
        Ok(())
    }

    fn record_attempt(
        &mut self,
        live: &Live,
        end: AttemptEnd,
        error: Option<&str>,
        now: Timestamp,
    ) -> Result<()> {
        if end == AttemptEnd::Succeeded {
            return Ok(());
        }
        let sql = "INSERT OR REPLACE INTO pointsman_attempt (task, number, started, ended, how, error)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let started = live.started.unwrap_or(now).micros();
        let mut statement = self.conn.prepare_cached(sql)?;
        statement.execute((live.seq.0, live.life.attempt, started, now.micros(), end_code(end), error))?;
        Ok(())
    }
}
