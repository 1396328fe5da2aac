//! Choosing what runs next: fairly between queues, by priority and age within one.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::store::{Claim, Claimed, Claims};
use pointsman_core::task::lifecycle::transition;
use pointsman_core::task::{Command, Lease, Life, TaskSeq};
use pointsman_core::{Event, HandlerName, NewEvent, Priority, TaskId, Timestamp};

use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::phase::Phase;
use crate::row::{Live, live};
use crate::state::{Handler, QueueId, Running};
use crate::writer::Txn;

/// So many tasks at most become ready in one go because their time has come.
const DUE_AT_ONCE: usize = 1000;

/// What a node asked for along with another verb, and what it has been given already.
#[derive(Debug, Default)]
pub(crate) struct Room {
    claim: Option<Claim>,
    tasks: Vec<Claimed>,
    /// The highest priority among the events of this transaction: only tasks of that may be born locked, or one
    /// that comes later in the batch would be passed by.
    top: Option<Priority>,
}

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

    /// Room for what a node asks for, in a transaction that will journal these events. What has fallen due is
    /// woken first: it has waited longer than what is made now.
    pub(crate) fn room<'e>(
        &mut self,
        claim: Option<Claim>,
        events: impl Iterator<Item = &'e NewEvent>,
        now: Timestamp,
    ) -> Result<Room> {
        if claim.is_none() {
            return Ok(Room::default());
        }
        self.wake_due(now)?;
        Ok(Room { claim, tasks: Vec::new(), top: events.map(|event| event.priority).max() })
    }

    /// Locks what can run for the room that is left.
    pub(crate) fn claim(&mut self, room: Room, now: Timestamp) -> Result<Claims> {
        let Room { claim: Some(claim), mut tasks, .. } = room else { return Ok(Claims::default()) };
        let alive = self.state.nodes.contains(&claim.node);
        let left = if alive { claim.max.saturating_sub(tasks.len()) } else { 0 };
        if left > 0 {
            let mut chosen = self.scheduled_for(&claim, left)?;
            chosen.extend(self.pick(left - chosen.len(), Some(&claim.handlers))?);
            for live in chosen {
                tasks.push(self.lock(live, &claim, now)?);
            }
        }
        let more = self.runnable_for(Some(&claim.handlers)).next().is_some()
            || !self.scheduled_for(&claim, 1)?.is_empty();
        Ok(Claims { tasks, more, next_due: self.state.next_due })
    }

    /// What has been scheduled for handlers that the node can run.
    fn scheduled_for(&self, claim: &Claim, max: usize) -> Result<Vec<Live>> {
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
            if chosen.len() == max {
                break;
            }
        }
        Ok(chosen)
    }

    fn lock(&mut self, mut live: Live, claim: &Claim, now: Timestamp) -> Result<Claimed> {
        let event = self.event_of(&live)?;
        let handler = self.state.handler(self.state.queue(live.queue)?.handler)?.clone();
        let id = self.state.task_id(handler.id, event.kind.as_str(), live.seq)?;
        let before = live.phase;
        let lease = self.lease(&mut live, &handler, claim, now)?;
        let sql = "UPDATE pointsman_task SET phase = 5, attempt = ?2, node = ?3, fence = ?4, started = ?5 WHERE seq = ?1";
        let row = (live.seq.0, live.life.attempt, lease.node, lease.fence, now.micros());
        self.conn.prepare_cached(sql)?.execute(row)?;
        self.state.moved(live.queue, Some(before), Some(Phase::Locked))?;
        Ok(self.running(live, &handler, &event, id, lease))
    }

    /// Locks a task in memory; the caller writes it.
    fn lease(&mut self, live: &mut Live, handler: &Handler, claim: &Claim, now: Timestamp) -> Result<Lease> {
        let lease = Lease { node: claim.node, fence: self.state.take_fence(self.conn)?, since: now };
        let (life, _) = transition(live.seq, live.life, Command::Lock(lease), &handler.def, now)
            .map_err(|why| Fault::damaged(format!("task {} was chosen to run, but: {why}", live.seq)))?;
        live.life = life;
        live.phase = Phase::Locked;
        live.started = Some(now);
        Ok(lease)
    }

    /// Whether a task that could run may be locked in the moment it is made: nobody else has waited longer.
    pub(crate) fn may_be_born_locked(&self, live: &Live, handler: &Handler, room: &Room) -> Result<bool> {
        let Some(claim) = &room.claim else { return Ok(false) };
        Ok(live.phase == Phase::Ready
            && room.top.map(i64::from) == Some(live.priority)
            && room.tasks.len() < claim.max
            && self.state.nodes.contains(&claim.node)
            && self.state.runnable.is_empty()
            && self.state.scheduled == 0
            && claim.handlers.contains(&handler.def.name)
            && !self.state.queue(live.queue)?.held)
    }

    /// Writes a new task that is locked from the start: one row instead of a row and a change.
    pub(crate) fn bear_locked(
        &mut self,
        mut live: Live,
        handler: &Handler,
        event: &Arc<Event>,
        room: &mut Room,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<()> {
        let Some(claim) = room.claim.clone() else { return Ok(()) };
        let lease = self.lease(&mut live, handler, &claim, now)?;
        live.insert(self.conn)?;
        self.state.moved(live.queue, None, Some(Phase::Locked))?;
        self.state.served(live.queue, 1)?;
        room.tasks.push(self.running(live, handler, event, id.clone(), lease));
        Ok(())
    }

    /// Remembers a running task, so that its end need not be looked up.
    fn running(
        &mut self,
        live: Live,
        handler: &Handler,
        event: &Arc<Event>,
        id: TaskId,
        lease: Lease,
    ) -> Claimed {
        let Life { attempt, retries, late, .. } = live.life;
        let (seq, prev_sent) = (live.seq, live.prev_sent);
        self.state.running.insert(seq, Running { live, event: event.clone() });
        let handler = handler.def.name.clone();
        Claimed {
            seq,
            id,
            handler,
            event: event.clone(),
            attempt,
            retries,
            fence: lease.fence,
            prev_sent,
            late,
        }
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
            // No LIMIT: a bound one would make SQLite prepare the statement anew for every share.
            let sql = concat!(
                "SELECT ",
                live!(),
                " FROM pointsman_task WHERE queue = ?1 AND phase = 3 ORDER BY priority DESC, seq"
            );
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query([queue])?;
            for _ in 0..share {
                let Some(row) = rows.next()? else { break };
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
        let sql = "SELECT seq, queue FROM pointsman_task WHERE phase = 2 AND due <= ?1 ORDER BY due";
        let due: Vec<(i64, QueueId)> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([now.micros()], |r| Ok((r.get(0)?, r.get(1)?)))?;
            rows.take(DUE_AT_ONCE).collect::<rusqlite::Result<_>>()?
        };
        for (seq, queue) in due {
            self.set_phase(TaskSeq(seq), Phase::Ready)?;
            self.state.moved(queue, Some(Phase::Delayed), Some(Phase::Ready))?;
        }
        self.state.reload_next_due(self.conn)
    }
}
