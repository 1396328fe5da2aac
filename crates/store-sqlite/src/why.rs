//! Gathers what there is to know of a task that waits. What it means, the core says.

use pointsman_core::task::why::{Facts, Gate, MOST_AHEAD, explain};
use pointsman_core::task::{Status, TaskId, TaskSeq};
use pointsman_core::{HandlerName, Timestamp};
use rusqlite::OptionalExtension;

use crate::error::Result;
use crate::people;
use crate::phase::Phase;
use crate::read_tasks;
use crate::row::Live;
use crate::state::HandlerId;
use crate::writer::Txn;

/// So many of the tasks that hold a limit are named.
const NAMED: usize = 10;

impl Txn<'_> {
    pub(crate) fn why(&self, id: &TaskId, now: Timestamp) -> Result<Option<Vec<Gate>>> {
        let Some(task) = read_tasks::task_named(self.conn, id)? else { return Ok(None) };
        let Some(live) = Live::load(self.conn, task.seq)? else { return Ok(Some(vec![])) };
        Ok(Some(explain(&self.facts(&live, &task.handler)?, now)))
    }

    fn facts(&self, live: &Live, name: &HandlerName) -> Result<Facts> {
        let queue = self.state.queue(live.queue)?;
        let handler = self.state.handler(queue.handler)?;
        let gauge = self.state.gauge(handler.id)?;
        let holds = |rule: &&pointsman_core::Rule| rule.holds(name, &queue.of, &queue.tenant);
        let crowd = match live.crowd.filter(|_| live.phase == Phase::Blocked) {
            Some(crowd) => self.crowd_of(crowd, live.queue)?.0,
            None => vec![],
        };
        Ok(Facts {
            state: live.life.state,
            handler: name.clone(),
            defined: queue.defined,
            pull: handler.def.pull,
            sync: self.sync_before(live)?,
            lane: self.before_in_lane(live)?,
            order: self.state.chains.stopped(&queue.of),
            rules: self.state.rules.iter().filter(holds).cloned().collect(),
            limits: handler.def.limits.clone(),
            pace: gauge.pace,
            running: u32::try_from(gauge.running).unwrap_or(0),
            runners: self.runners(handler.id)?,
            crowd: crowd
                .into_iter()
                .take(NAMED)
                .filter_map(|seq| self.named(seq).transpose())
                .collect::<Result<_>>()?,
            nodes: self.able_nodes(name)?,
            asked: self.state.asked.get(&handler.id).copied(),
            ahead: self.ahead_of(live)?,
        })
    }

    fn named(&self, seq: i64) -> Result<Option<TaskId>> {
        Ok(read_tasks::task(self.conn, TaskSeq(seq))?.map(|task| task.id))
    }

    fn standing(&self, seq: Option<i64>) -> Result<Option<(TaskId, Status)>> {
        let Some(seq) = seq else { return Ok(None) };
        let task = read_tasks::task(self.conn, TaskSeq(seq))?;
        Ok(task.map(|task| (task.id, task.life.state.status())))
    }

    /// The synchronous task of the same event that a gated one waits for.
    fn sync_before(&self, live: &Live) -> Result<Option<(TaskId, Status)>> {
        let Some(event) = live.event.filter(|_| live.phase == Phase::Gated) else { return Ok(None) };
        let sql = "SELECT t.seq FROM pointsman_journal j
                   JOIN pointsman_task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
                   WHERE j.id = ?1 AND t.sync AND t.stage < ?2 AND t.phase <= 5 ORDER BY t.stage LIMIT 1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let seq = statement.query_row((event.as_i64(), live.stage), |r| r.get(0)).optional()?;
        self.standing(seq)
    }

    /// The task that stands before this one in its lane.
    fn before_in_lane(&self, live: &Live) -> Result<Option<(TaskId, Status)>> {
        let (Some(lane), Some(place)) = (live.lane, live.place) else { return Ok(None) };
        let sql = "SELECT seq FROM pointsman_task WHERE lane = ?1 AND place IS NOT NULL AND place < ?2
                   ORDER BY place LIMIT 1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let seq = statement.query_row((lane, place), |r| r.get(0)).optional()?;
        self.standing(seq)
    }

    /// Some of a handler's tasks that run.
    fn runners(&self, handler: HandlerId) -> Result<Vec<TaskId>> {
        let sql = "SELECT t.seq FROM pointsman_task t JOIN pointsman_queue q ON q.id = t.queue
                   WHERE t.phase = 5 AND q.handler = ?1 LIMIT ?2";
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map((handler, NAMED as i64), |r| r.get(0))?;
        let seqs: Vec<i64> = rows.collect::<rusqlite::Result<_>>()?;
        seqs.into_iter().filter_map(|seq| self.named(seq).transpose()).collect()
    }

    fn able_nodes(&self, handler: &HandlerName) -> Result<Vec<String>> {
        let alive = people::nodes(self.conn)?.into_iter().filter(|node| self.state.nodes.contains(&node.id));
        let able = alive.filter(|node| node.abilities.handlers.contains(handler));
        Ok(able.map(|node| node.name).collect())
    }

    /// How many of its queue come before a ready task.
    fn ahead_of(&self, live: &Live) -> Result<u64> {
        if live.phase != Phase::Ready {
            return Ok(0);
        }
        if self.state.queue(live.queue)?.collection().is_some() {
            return Ok(self.state.sources_before(live.queue)?.min(MOST_AHEAD));
        }
        let sql =
            "SELECT seq FROM pointsman_task WHERE queue = ?1 AND phase = 3 ORDER BY score DESC, rank, seq";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([live.queue])?;
        let mut ahead = 0;
        while ahead < MOST_AHEAD
            && let Some(row) = rows.next()?
        {
            if row.get::<_, i64>(0)? == live.seq.0 {
                break;
            }
            ahead += 1;
        }
        Ok(ahead)
    }
}
