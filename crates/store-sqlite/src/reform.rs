//! What a changed registration means for tasks that wait already. Rare, and as long as the backlog is.

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_core::{Order, Priority, Timestamp};

use crate::error::{Fault, Result};
use crate::lanes::{Track, Waiting};
use crate::phase::Phase;
use crate::queues::QueueId;
use crate::state::Handler;
use crate::writer::Txn;

impl Txn<'_> {
    /// Goes through the handlers that are treated otherwise than before.
    pub(crate) fn reform(&mut self, before: &[Arc<Handler>], now: Timestamp) -> Result<()> {
        for old in before {
            let new = self.state.handler(old.id)?.clone();
            let queues = self.state.all_queues().filter(|queue| queue.handler == new.id);
            let queues: Vec<QueueId> = queues.map(|queue| queue.id).collect();
            for queue in queues {
                if new.def.pull || !new.defined {
                    self.unschedule(queue, now)?;
                }
                let widths = [&old.def, &new.def].map(|def| def.limits.concurrency_per_key);
                if widths[0] != widths[1] && new.def.order == Order::None {
                    self.regroup(queue, &new, now)?;
                }
            }
        }
        Ok(())
    }

    /// Where a handler counts the age of its tasks otherwise than before, they are put in order anew.
    pub(crate) fn rescore(&mut self, before: &[Arc<Handler>]) -> Result<()> {
        for old in before {
            let new = self.state.handler(old.id)?.clone();
            if new.def.limits.ageing != old.def.limits.ageing {
                let queues = self.state.all_queues().filter(|queue| queue.handler == new.id);
                let queues: Vec<QueueId> = queues.map(|queue| queue.id).collect();
                for queue in queues {
                    self.rescore_queue(queue, &new)?;
                    self.state.reload_head(self.conn, queue)?;
                }
            }
        }
        Ok(())
    }

    fn rescore_queue(&mut self, queue: QueueId, handler: &Handler) -> Result<()> {
        let sql = "SELECT seq, priority, created FROM pointsman_task WHERE queue = ?1";
        let waiting: Vec<(i64, i64, i64)> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([queue], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        let mut update = self.conn.prepare_cached("UPDATE pointsman_task SET score = ?2 WHERE seq = ?1")?;
        for (seq, priority, created) in waiting {
            let priority = Priority::try_from(priority).map_err(Fault::damaged)?;
            update.execute((seq, handler.def.limits.score(priority, Timestamp::from_micros(created))))?;
        }
        Ok(())
    }

    /// The handler lets more or fewer of an object's tasks run at a time: those that run count first, then the
    /// oldest have the places that are left.
    fn regroup(&mut self, queue: QueueId, handler: &Handler, now: Timestamp) -> Result<()> {
        let most = handler.def.limits.concurrency_per_key.map_or(usize::MAX, |most| most as usize);
        let tenant = self.state.queue(queue)?.tenant.clone();
        let sql = "SELECT t.seq, t.queue, t.bucket, t.crowd, t.score, t.due, t.phase, j.key
                   FROM pointsman_task t JOIN pointsman_journal j ON j.id = t.event
                   WHERE t.queue = ?1 AND t.phase <= 5 AND t.lane IS NULL AND j.key IS NOT NULL
                   ORDER BY t.phase >= 4 DESC, t.seq";
        let found: Vec<(Waiting, i64, String)> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([queue], |r| Ok((Waiting::from_row(r)?, r.get(6)?, r.get(7)?)))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        let mut inside: HashMap<String, usize> = HashMap::new();
        for (mut waiting, phase, key) in found {
            let phase = Phase::from_code(phase).ok_or_else(|| Fault::damaged("a task's phase"))?;
            let object = self.object_of(&tenant, Some(&key))?;
            waiting.crowd = Track::of(self.state.salt, handler, object).crowd;
            let sql = "UPDATE pointsman_task SET crowd = ?2 WHERE seq = ?1";
            self.conn.prepare_cached(sql)?.execute((waiting.seq, waiting.crowd))?;
            let inside = inside.entry(key).or_default();
            match phase {
                Phase::Scheduled | Phase::Locked => *inside += 1,
                Phase::Ready | Phase::Blocked if *inside < most => {
                    *inside += 1;
                    if phase == Phase::Blocked {
                        self.put(&waiting, phase, Phase::Ready)?;
                    }
                }
                Phase::Ready => self.put(&waiting, phase, Phase::Blocked)?,
                Phase::Blocked | Phase::Gated | Phase::Delayed | Phase::Halted | Phase::Missing => {}
            }
        }
        // What runs must give its place up by the new rule.
        let mut crowds = HashMap::new();
        for (seq, running) in self.state.running.iter().filter(|(_, running)| running.live.queue == queue) {
            let object = self.object_of(&tenant, running.subject.key().map(|key| key.as_str()))?;
            crowds.insert(*seq, Track::of(self.state.salt, handler, object).crowd);
        }
        for (seq, crowd) in crowds {
            if let Some(running) = self.state.running.get_mut(&seq) {
                running.live.crowd = crowd;
            }
        }
        self.state.regulate(handler.id, now)
    }

    fn put(&mut self, waiting: &Waiting, from: Phase, to: Phase) -> Result<()> {
        let rank = match to {
            Phase::Ready => self.state.rank(self.conn, waiting.queue, waiting.score, waiting.bucket)?,
            _ => 0,
        };
        let sql = "UPDATE pointsman_task SET phase = ?2, rank = ?3 WHERE seq = ?1";
        self.conn.prepare_cached(sql)?.execute((waiting.seq, to.code(), rank))?;
        self.state.moved(waiting.queue, Some(from), Some(to))
    }
}
