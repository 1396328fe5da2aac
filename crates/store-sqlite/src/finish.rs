//! The end of attempts, with everything that commits together with it.

use std::sync::Arc;

use pointsman_core::limit::Target;
use pointsman_core::store::{Ended, Ending, Finished, NewLogLine};
use pointsman_core::task::lifecycle::transition;
use pointsman_core::task::{Command, Level, LogLine, Rejected, State, TaskSeq};
use pointsman_core::{Json, Timestamp};

use crate::claim::Room;
use crate::error::Result;
use crate::life::Remains;
use crate::phase::Phase;
use crate::row::{Live, Past};
use crate::state::Handler;
use crate::writer::Txn;

impl Txn<'_> {
    pub(crate) fn finish(
        &mut self,
        ending: Ending,
        room: &mut Room,
        now: Timestamp,
    ) -> Result<std::result::Result<Finished, Rejected>> {
        let Ending { task, fence, ended, target, emits, logs } = ending;
        // Most attempts tell nothing of a target, and then nobody need look whose it was.
        let handler = if target.is_some() { self.handler_of(task)? } else { None };
        let command = match &ended {
            Ended::Succeeded { .. } => Command::Succeed { fence },
            Ended::Failed { after, last, .. } => Command::Fail { fence, after: *after, last: *last },
            Ended::Snoozed { until } => Command::Snooze { fence, until: *until },
            Ended::Released => Command::Release { fence },
        };
        let remains = match &ended {
            Ended::Succeeded { result } => {
                Remains { result: result.as_ref().map(Json::as_str), ..Remains::default() }
            }
            Ended::Failed { error, code, .. } => Remains { code: *code, ..Remains::of_error(error) },
            Ended::Snoozed { .. } | Ended::Released => Remains::default(),
        };
        let life = match self.command(task, command, remains, now)? {
            Ok(life) => life,
            Err(rejected) => return Ok(Err(rejected)),
        };
        if let (Some(target), Some(handler)) = (target, handler) {
            self.told(&handler, target, now)?;
        }
        self.add_log_lines(task, logs)?;
        let emitted = self.journal(emits, room, now)?;
        let due = match life.state {
            State::New { due } => Some(due),
            State::Scheduled
            | State::Locked(_)
            | State::Done
            | State::Error { .. }
            | State::Missing { .. } => None,
        };
        Ok(Ok(Finished { status: life.state.status(), due, emitted }))
    }

    fn handler_of(&self, task: TaskSeq) -> Result<Option<Arc<Handler>>> {
        let queue = match self.state.running.get(&task) {
            Some(running) => Some(running.live.queue),
            None => Live::load(self.conn, task)?.map(|live| live.queue),
        };
        queue.map(|queue| self.state.handler(self.state.queue(queue)?.handler).cloned()).transpose()
    }

    /// How a handler's target fares: it concerns all of its tasks.
    fn told(&mut self, handler: &Handler, target: Target, now: Timestamp) -> Result<()> {
        self.state.change_pace(handler.id, |pace| pace.told(target, &handler.def.retry, now))?;
        self.state.regulate(handler.id, now)
    }

    /// Lines of running attempts; those of an attempt that is over are dropped. Answers how many were kept.
    pub(crate) fn log(&mut self, lines: Vec<NewLogLine>) -> Result<usize> {
        let mut kept = 0;
        let mut lines = lines.into_iter().peekable();
        while let Some(first) = lines.next() {
            let mut of_task = vec![first.line];
            while let Some(next) = lines.next_if(|l| l.task == first.task && l.fence == first.fence) {
                of_task.push(next.line);
            }
            let holds = Live::load(self.conn, first.task)?.is_some_and(|live| {
                live.phase == Phase::Locked
                    && matches!(live.life.state, State::Locked(lease) if lease.fence == first.fence)
            });
            if holds {
                kept += of_task.len();
                self.add_log_lines(first.task, of_task)?;
            }
        }
        Ok(kept)
    }

    /// A worker is still at it.
    pub(crate) fn renew(
        &mut self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> Result<std::result::Result<(), Rejected>> {
        let Some(live) = Live::load(self.conn, task)? else {
            let ended = Past::load(self.conn, task)?.map(|past| past.life.state.status());
            return Ok(Err(ended.map_or(Rejected::NoSuchTask, Rejected::WrongState)));
        };
        let handler = self.state.handler(self.state.queue(live.queue)?.handler)?.clone();
        let renew = Command::Renew { fence, until };
        match transition(task, live.life, renew, &handler.def, until) {
            Err(rejected) => Ok(Err(rejected)),
            Ok((life, _)) => {
                let sql = "UPDATE pointsman_task SET until = ?2 WHERE seq = ?1 AND until IS NOT NULL";
                self.conn.prepare_cached(sql)?.execute((task.0, until.micros()))?;
                if let Some(running) = self.state.running.get_mut(&task) {
                    running.live.life = life;
                }
                Ok(Ok(()))
            }
        }
    }

    fn add_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let next = "SELECT coalesce(max(n), -1) + 1 FROM pointsman_log WHERE task = ?1";
        let first: i64 = self.conn.prepare_cached(next)?.query_row([task.0], |r| r.get(0))?;
        let sql = "INSERT INTO pointsman_log (task, n, time, level, message) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.conn.prepare_cached(sql)?;
        for (n, line) in (first..).zip(lines) {
            insert.execute((task.0, n, line.time.micros(), level_code(line.level), line.message))?;
        }
        Ok(())
    }
}

pub(crate) fn level_code(level: Level) -> i64 {
    match level {
        Level::Info => 0,
        Level::Error => 1,
    }
}

pub(crate) fn level_of(code: i64) -> Level {
    if code == 1 { Level::Error } else { Level::Info }
}
