//! Choosing what runs next: fairly between queues, by priority and age within one.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::store::{Claim, Claimed, Claims, NodeId};
use pointsman_core::task::{Command, Lease, TaskSeq};
use pointsman_core::{HandlerName, Timestamp};

use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::phase::Phase;
use crate::read_journal::load_event;
use crate::row::{Live, live};
use crate::state::QueueId;
use crate::writer::Txn;

/// So many tasks at most become ready in one go because their time has come.
const DUE_AT_ONCE: i64 = 1000;

impl Txn<'_> {
    /// Makes up to `ahead` tasks in all `scheduled`; answers how many are.
    pub(crate) fn schedule(&mut self, ahead: usize, now: Timestamp) -> Result<usize> {
        self.wake_due(now)?;
        let standing = usize::try_from(self.state.scheduled).unwrap_or(0);
        let mut scheduled = standing;
        for live in self.pick(ahead.saturating_sub(standing), None)? {
            if self.command_live(live, Command::Schedule, Remains::default(), now)?.is_ok() {
                scheduled += 1;
            }
        }
        Ok(scheduled)
    }

    pub(crate) fn claim(&mut self, claim: &Claim, now: Timestamp) -> Result<Claims> {
        self.wake_due(now)?;
        let mut tasks = Vec::new();
        if claim.max > 0 {
            let mut chosen = self.scheduled_for(claim)?;
            chosen.extend(self.pick(claim.max - chosen.len(), Some(&claim.handlers))?);
            for live in chosen {
                tasks.push(self.lock(live, claim.node, now)?);
            }
        }
        let more = self.runnable_for(Some(&claim.handlers)).next().is_some();
        Ok(Claims { tasks, more, next_due: self.state.next_due })
    }

    /// What has been scheduled for handlers that the node can run.
    fn scheduled_for(&self, claim: &Claim) -> Result<Vec<Live>> {
        let mut chosen = Vec::new();
        if self.state.scheduled == 0 {
            return Ok(chosen);
        }
        let sql =
            concat!("SELECT ", live!(), " FROM pointsman_task WHERE phase = 4 ORDER BY priority DESC, seq");
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let live = Live::from_row(row)?;
            let handler = self.state.handler(self.state.queue(live.queue)?.handler)?;
            if claim.handlers.contains(&handler.def.name) {
                chosen.push(live);
            }
            if chosen.len() == claim.max {
                break;
            }
        }
        Ok(chosen)
    }

    fn lock(&mut self, live: Live, node: NodeId, now: Timestamp) -> Result<Claimed> {
        let fence = self.state.take_fence(self.conn)?;
        let event = load_event(self.conn, live.event)?
            .ok_or_else(|| Fault::damaged(format!("task {} has lost its event", live.seq)))?;
        let handler = self.state.handler(self.state.queue(live.queue)?.handler)?.clone();
        let id = self.state.task_id(handler.id, event.kind.as_str(), live.seq)?;
        let (seq, prev_sent) = (live.seq, live.prev_sent);
        let command = Command::Lock(Lease { node, fence, since: now });
        let life = self
            .command_live(live, command, Remains::default(), now)?
            .map_err(|rejected| Fault::damaged(format!("task {seq} was chosen to run, but: {rejected}")))?;
        Ok(Claimed {
            seq,
            id,
            handler: handler.def.name.clone(),
            event: Arc::new(event),
            attempt: life.attempt,
            retries: life.retries,
            fence,
            prev_sent,
            late: life.late,
        })
    }

    /// Queues that have something ready, the least served first.
    fn runnable_for<'a>(
        &'a self,
        handlers: Option<&'a BTreeSet<HandlerName>>,
    ) -> impl Iterator<Item = (i64, QueueId)> + 'a {
        self.state.runnable.iter().copied().filter(move |(_, id)| {
            let handler = self.state.queue(*id).and_then(|queue| self.state.handler(queue.handler));
            handler.is_ok_and(|h| h.defined && handlers.is_none_or(|set| set.contains(&h.def.name)))
        })
    }

    /// The next `max` tasks: queues take turns, one task each, until none has more or the room is full.
    fn pick(&mut self, max: usize, handlers: Option<&BTreeSet<HandlerName>>) -> Result<Vec<Live>> {
        let mut picked = Vec::new();
        for (queue, share) in self.shares(max, handlers)? {
            let sql = concat!(
                "SELECT ",
                live!(),
                " FROM pointsman_task WHERE queue = ?1 AND phase = 3 ORDER BY priority DESC, seq LIMIT ?2"
            );
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query((queue, share))?;
            while let Some(row) = rows.next()? {
                picked.push(Live::from_row(row)?);
            }
            self.state.served(queue, share)?;
        }
        Ok(picked)
    }

    /// How many tasks each queue may give: dealt out in rounds, the least served queue first.
    fn shares(&self, max: usize, handlers: Option<&BTreeSet<HandlerName>>) -> Result<Vec<(QueueId, i64)>> {
        let mut dealing: BTreeSet<(i64, QueueId)> = self.runnable_for(handlers).take(max).collect();
        let mut shares: Vec<(QueueId, i64)> = Vec::new();
        for _ in 0..max {
            let Some((turn, queue)) = dealing.pop_first() else { break };
            let ready = self.state.queue(queue)?.counts.ready;
            let place = shares.iter().position(|(q, _)| *q == queue);
            let share = match place {
                Some(index) => &mut shares[index].1,
                None => {
                    shares.push((queue, 0));
                    let last = shares.len() - 1;
                    &mut shares[last].1
                }
            };
            *share += 1;
            if *share < ready {
                dealing.insert((turn + 1, queue));
            }
        }
        Ok(shares)
    }

    /// Makes ready what has fallen due.
    fn wake_due(&mut self, now: Timestamp) -> Result<()> {
        if self.state.next_due.is_none_or(|due| due > now) {
            return Ok(());
        }
        let sql = "SELECT seq, queue FROM pointsman_task WHERE phase = 2 AND due <= ?1 ORDER BY due LIMIT ?2";
        let due: Vec<(i64, QueueId)> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map((now.micros(), DUE_AT_ONCE), |r| Ok((r.get(0)?, r.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for (seq, queue) in due {
            self.set_phase(TaskSeq(seq), Phase::Ready)?;
            self.state.moved(queue, Some(Phase::Delayed), Some(Phase::Ready))?;
        }
        self.state.reload_next_due(self.conn)
    }
}
