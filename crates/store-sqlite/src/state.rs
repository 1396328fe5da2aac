//! What the writer keeps in memory beside the file. There is one writer, so this is a cache that cannot be
//! stale; after a transaction that failed it is read again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use pointsman_core::store::NodeId;
use pointsman_core::task::Realm;
use pointsman_core::{
    Event, EventId, HandlerDef, HandlerName, HandlingKey, IdClock, Routes, Rule, RuleKind, TaskId, TaskSeq,
    Tenant, Timestamp,
};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Fault, Result};
use crate::phase::Phase;
use crate::recent::Recent;
use crate::row::Live;

pub(crate) type HandlerId = i64;
pub(crate) type QueueId = i64;

/// A handler that was ever registered. Tasks refer to it by number.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) id: HandlerId,
    pub(crate) def: HandlerDef,
    pub(crate) defined: bool,
}

/// A queue: its place in the round robin and its counters.
#[derive(Clone, Debug)]
pub(crate) struct QueueState {
    pub(crate) id: QueueId,
    pub(crate) handler: HandlerId,
    pub(crate) tenant: Tenant,
    /// How much it has been served; the least served goes first.
    pub(crate) turn: i64,
    pub(crate) counts: Counts,
    pub(crate) held: bool,
    dirty: bool,
}

/// How many tasks a queue has in each group of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) ready: i64,
    pub(crate) waiting: i64,
    pub(crate) scheduled: i64,
    pub(crate) running: i64,
    pub(crate) halted: i64,
    pub(crate) missing: i64,
}

impl Counts {
    fn of(&mut self, phase: Phase) -> &mut i64 {
        match phase {
            Phase::Ready => &mut self.ready,
            Phase::Blocked | Phase::Gated | Phase::Delayed => &mut self.waiting,
            Phase::Scheduled => &mut self.scheduled,
            Phase::Locked => &mut self.running,
            Phase::Halted => &mut self.halted,
            Phase::Missing => &mut self.missing,
        }
    }
}

/// A task that runs. Nobody else can change it, so that its end need not be read from the file first.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) live: Live,
    pub(crate) event: Arc<Event>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) ids: IdClock,
    pub(crate) forgotten: EventId,
    pub(crate) realm: Realm,
    /// Mixed into lane numbers, so that nobody can choose keys that share one.
    pub(crate) salt: u64,
    next_task: i64,
    next_fence: i64,
    fences_reserved: i64,
    /// How many events were ever journaled.
    pub(crate) journaled: i64,
    pub(crate) handlers: Vec<Arc<Handler>>,
    handler_by_name: HashMap<HandlerName, HandlerId>,
    pub(crate) routes: Routes,
    /// Routes resolved for each type seen, until the registration changes.
    resolved: HashMap<HandlingKey, Arc<[(HandlerId, bool)]>>,
    pub(crate) queues: HashMap<QueueId, QueueState>,
    queue_by_name: HashMap<(HandlerId, Tenant), QueueId>,
    /// Queues that have something ready and are not held, the least served first.
    pub(crate) runnable: BTreeSet<(i64, QueueId)>,
    /// The turn of the queue that was served last: where a queue that wakes up joins in.
    pub(crate) turn: i64,
    pub(crate) rules: Vec<Rule>,
    /// Nodes that have joined and have neither left nor been given up.
    pub(crate) nodes: HashSet<NodeId>,
    pub(crate) recent: Recent,
    /// Tasks that were locked since the start; as many as there are slots.
    pub(crate) running: HashMap<TaskSeq, Running>,
    /// How many ended tasks the history holds.
    pub(crate) ended: i64,
    ended_written: i64,
    /// How far the pruner has come in this round over forgotten events.
    pub(crate) swept: EventId,
    /// How many tasks stand `scheduled` in all queues.
    pub(crate) scheduled: i64,
    /// Not later than the earliest due time of a delayed task.
    pub(crate) next_due: Option<Timestamp>,
    /// Something became ready in this transaction.
    pub(crate) woke: bool,
    /// Something will fall due earlier than all that waited before this transaction.
    pub(crate) sooner: bool,
    /// Queues changed in this transaction, to be written before the commit.
    dirty: Vec<QueueId>,
}

const FENCES_AT_ONCE: i64 = 1_000_000;
/// So many types are kept resolved; more would be somebody playing with names.
const RESOLVED_TYPES: usize = 10_000;

impl State {
    pub(crate) fn load(conn: &Connection, now: Timestamp) -> Result<Self> {
        let meta = |name: &str| -> Result<Option<i64>> {
            let sql = "SELECT value FROM pointsman_meta WHERE name = ?1";
            Ok(conn.query_row(sql, [name], |r| r.get(0)).optional()?)
        };
        let number = |sql: &str| -> Result<i64> { Ok(conn.query_row(sql, [], |r| r.get(0))?) };

        let forgotten = EventId::from_i64(meta("forgotten")?.unwrap_or(0));
        let newest = EventId::from_i64(number("SELECT coalesce(max(id), 0) FROM pointsman_journal")?);
        let tasks = number("SELECT coalesce(max(seq), 0) FROM pointsman_task")?
            .max(number("SELECT coalesce(max(seq), 0) FROM pointsman_history")?)
            .max(meta("task_floor")?.unwrap_or(0));
        let (marked, mark): (i64, i64) = conn
            .query_row("SELECT n, id FROM pointsman_mark ORDER BY n DESC LIMIT 1", [], |r| {
                Ok((r.get(0)?, r.get(1)?))
            })
            .optional()?
            .unwrap_or((0, 0));
        let since: i64 =
            conn.query_row("SELECT count(*) FROM pointsman_journal WHERE id > ?1", [mark], |r| r.get(0))?;
        let fences = meta("fences")?.unwrap_or(0);
        let ended = meta("ended")?.unwrap_or(0);

        let mut state = Self {
            ids: IdClock::starting(newest.max(forgotten), now),
            forgotten,
            realm: Realm(meta("realm")?.ok_or_else(|| Fault::damaged("no realm"))? as u64),
            salt: meta("salt")?.ok_or_else(|| Fault::damaged("no salt"))? as u64,
            next_task: tasks + 1,
            next_fence: fences + 1,
            fences_reserved: fences,
            journaled: marked + since,
            handlers: Vec::new(),
            handler_by_name: HashMap::new(),
            routes: Routes::new(),
            resolved: HashMap::new(),
            queues: HashMap::new(),
            queue_by_name: HashMap::new(),
            runnable: BTreeSet::new(),
            turn: 0,
            rules: Vec::new(),
            nodes: HashSet::new(),
            recent: Recent::default(),
            running: HashMap::new(),
            scheduled: 0,
            ended,
            ended_written: ended,
            swept: EventId::ZERO,
            next_due: None,
            woke: false,
            sooner: false,
            dirty: Vec::new(),
        };
        state.load_registry(conn)?;
        state.load_rules(conn)?;
        state.load_nodes(conn)?;
        state.load_queues(conn)?;
        state.reload_next_due(conn)?;
        Ok(state)
    }

    pub(crate) fn load_registry(&mut self, conn: &Connection) -> Result<()> {
        self.handlers.clear();
        self.handler_by_name.clear();
        self.resolved.clear();
        let mut rows = conn.prepare("SELECT id, def, defined FROM pointsman_handler ORDER BY id")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let def: HandlerDef = serde_json::from_str(row.get_ref(1)?.as_str().map_err(Fault::damaged)?)
                .map_err(|e| Fault::damaged(format!("a handler's definition: {e}")))?;
            let id: HandlerId = row.get(0)?;
            self.handler_by_name.insert(def.name.clone(), id);
            self.handlers.push(Arc::new(Handler { id, def, defined: row.get(2)? }));
        }
        let routes: Option<String> = conn
            .query_row("SELECT value FROM pointsman_meta WHERE name = 'routes'", [], |r| r.get(0))
            .optional()?;
        if let Some(routes) = routes {
            self.routes =
                serde_json::from_str(&routes).map_err(|e| Fault::damaged(format!("the routes: {e}")))?;
        }
        Ok(())
    }

    pub(crate) fn load_rules(&mut self, conn: &Connection) -> Result<()> {
        self.rules = crate::registry::read_rules(conn)?;
        Ok(())
    }

    fn load_nodes(&mut self, conn: &Connection) -> Result<()> {
        let mut statement = conn.prepare("SELECT id FROM pointsman_node WHERE gone = 0")?;
        self.nodes = statement.query_map([], |r| r.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(())
    }

    fn load_queues(&mut self, conn: &Connection) -> Result<()> {
        let sql = "SELECT id, handler, tenant, turn, ready, waiting, scheduled, running, halted, missing
                   FROM pointsman_queue";
        let mut rows = conn.prepare(sql)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let tenant: String = row.get(2)?;
            let counts = Counts {
                ready: row.get(4)?,
                waiting: row.get(5)?,
                scheduled: row.get(6)?,
                running: row.get(7)?,
                halted: row.get(8)?,
                missing: row.get(9)?,
            };
            let queue = QueueState {
                id: row.get(0)?,
                handler: row.get(1)?,
                tenant: Tenant::new(tenant).map_err(Fault::damaged)?,
                turn: row.get(3)?,
                counts,
                held: false,
                dirty: false,
            };
            self.turn = self.turn.max(queue.turn);
            self.scheduled += queue.counts.scheduled;
            self.adopt_queue(queue);
        }
        // Rejoin where the least served stands: nobody starts with a lead or a debt from before.
        self.turn = self.runnable.first().map_or(self.turn, |(turn, _)| *turn);
        Ok(())
    }

    fn adopt_queue(&mut self, mut queue: QueueState) {
        queue.held = self.is_held(queue.handler, &queue.tenant);
        if queue.counts.ready > 0 && !queue.held {
            self.runnable.insert((queue.turn, queue.id));
        }
        self.queue_by_name.insert((queue.handler, queue.tenant.clone()), queue.id);
        self.queues.insert(queue.id, queue);
    }

    pub(crate) fn reload_next_due(&mut self, conn: &Connection) -> Result<()> {
        let mut earliest = conn.prepare_cached("SELECT min(due) FROM pointsman_task WHERE phase = 2")?;
        let due: Option<i64> = earliest.query_row([], |r| r.get(0))?;
        self.next_due = due.map(Timestamp::from_micros);
        Ok(())
    }

    pub(crate) fn handler(&self, id: HandlerId) -> Result<&Arc<Handler>> {
        let index = usize::try_from(id - 1).unwrap_or(usize::MAX);
        self.handlers.get(index).ok_or_else(|| Fault::damaged(format!("no handler {id}")))
    }

    pub(crate) fn handler_named(&self, name: &HandlerName) -> Option<&Arc<Handler>> {
        let id = self.handler_by_name.get(name)?;
        self.handler(*id).ok()
    }

    pub(crate) fn queue(&self, id: QueueId) -> Result<&QueueState> {
        self.queues.get(&id).ok_or_else(|| Fault::damaged(format!("no queue {id}")))
    }

    /// The handlers of a type, and whether each is synchronous; synchronous ones first.
    pub(crate) fn resolve(&mut self, kind: &HandlingKey) -> Arc<[(HandlerId, bool)]> {
        if let Some(known) = self.resolved.get(kind) {
            return known.clone();
        }
        let bindings = self.routes.resolve(kind);
        let found: Arc<[_]> = bindings
            .iter()
            .filter_map(|b| self.handler_by_name.get(&b.handler).map(|id| (*id, b.sync)))
            .collect();
        if self.resolved.len() >= RESOLVED_TYPES {
            self.resolved.clear();
        }
        self.resolved.insert(kind.clone(), found.clone());
        found
    }

    /// The queue of a handler and a tenant, made if there is none yet.
    pub(crate) fn queue_for(
        &mut self,
        conn: &Connection,
        handler: HandlerId,
        tenant: &Tenant,
    ) -> Result<QueueId> {
        if let Some(id) = self.queue_by_name.get(&(handler, tenant.clone())) {
            return Ok(*id);
        }
        let sql = "INSERT INTO pointsman_queue
                     (handler, tenant, turn, ready, waiting, scheduled, running, halted, missing)
                   VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, 0)";
        conn.prepare_cached(sql)?.execute((handler, tenant.as_str(), self.turn))?;
        let id = conn.last_insert_rowid();
        let (counts, held) = (Counts::default(), false);
        self.adopt_queue(QueueState {
            id,
            handler,
            tenant: tenant.clone(),
            turn: self.turn,
            counts,
            held,
            dirty: false,
        });
        Ok(id)
    }

    pub(crate) fn is_held(&self, handler: HandlerId, tenant: &Tenant) -> bool {
        let Ok(handler) = self.handler(handler) else { return false };
        self.rules.iter().any(|rule| rule.holds(&handler.def.name, tenant))
    }

    /// Looks at the rules again for all queues of a handler.
    pub(crate) fn refresh_held(&mut self, handler: HandlerId) -> Result<Vec<QueueId>> {
        let ids: Vec<QueueId> = self.queues.values().filter(|q| q.handler == handler).map(|q| q.id).collect();
        for id in &ids {
            let queue = self.queue(*id)?;
            let held = self.is_held(queue.handler, &queue.tenant);
            self.change_queue(*id, |queue| queue.held = held)?;
        }
        Ok(ids)
    }

    pub(crate) fn has_rule(&self, kind: RuleKind, handler: &HandlerName, tenant: Option<&Tenant>) -> bool {
        self.rules.iter().any(|r| r.kind == kind && r.handler == *handler && r.tenant.as_ref() == tenant)
    }

    /// A task went from one phase to another; `None` means it came or went.
    pub(crate) fn moved(&mut self, queue: QueueId, from: Option<Phase>, to: Option<Phase>) -> Result<()> {
        if from == to {
            return Ok(());
        }
        self.woke |= to == Some(Phase::Ready);
        self.scheduled += i64::from(to == Some(Phase::Scheduled)) - i64::from(from == Some(Phase::Scheduled));
        let turn = self.turn;
        self.change_queue(queue, |queue| {
            if to == Some(Phase::Ready) && queue.counts.ready == 0 {
                // A queue that slept does not come back with a lead over those that worked.
                queue.turn = queue.turn.max(turn);
            }
            if let Some(from) = from {
                *queue.counts.of(from) -= 1;
            }
            if let Some(to) = to {
                *queue.counts.of(to) += 1;
            }
        })
    }

    /// A queue was given `served` turns.
    pub(crate) fn served(&mut self, queue: QueueId, served: i64) -> Result<()> {
        let before = self.queue(queue)?.turn;
        self.turn = self.turn.max(before);
        self.change_queue(queue, |queue| queue.turn += served)
    }

    /// Changes a queue and keeps the set of runnable ones right.
    fn change_queue(&mut self, id: QueueId, change: impl FnOnce(&mut QueueState)) -> Result<()> {
        let queue = self.queues.get_mut(&id).ok_or_else(|| Fault::damaged(format!("no queue {id}")))?;
        let before = (queue.counts.ready > 0 && !queue.held).then_some((queue.turn, id));
        change(queue);
        let after = (queue.counts.ready > 0 && !queue.held).then_some((queue.turn, id));
        if !queue.dirty {
            queue.dirty = true;
            self.dirty.push(id);
        }
        if before != after {
            if let Some(place) = before {
                self.runnable.remove(&place);
            }
            if let Some(place) = after {
                self.runnable.insert(place);
            }
        }
        Ok(())
    }

    /// Writes the counters that changed. Called once before each commit.
    pub(crate) fn flush(&mut self, conn: &Connection) -> Result<()> {
        if self.ended != self.ended_written {
            put_meta(conn, "ended", self.ended)?;
            self.ended_written = self.ended;
        }
        let sql = "UPDATE pointsman_queue
                   SET turn = ?2, ready = ?3, waiting = ?4, scheduled = ?5, running = ?6, halted = ?7, missing = ?8
                   WHERE id = ?1";
        for id in std::mem::take(&mut self.dirty) {
            let Some(queue) = self.queues.get_mut(&id) else { continue };
            queue.dirty = false;
            let c = queue.counts;
            conn.prepare_cached(sql)?.execute((
                id,
                queue.turn,
                c.ready,
                c.waiting,
                c.scheduled,
                c.running,
                c.halted,
                c.missing,
            ))?;
        }
        Ok(())
    }

    /// Numbers for `count` tasks in a row.
    pub(crate) fn take_tasks(&mut self, count: usize) -> TaskSeq {
        let first = self.next_task;
        self.next_task += count as i64;
        TaskSeq(first)
    }

    /// The last number given to a task.
    pub(crate) fn last_task(&self) -> i64 {
        self.next_task - 1
    }

    /// The token of a new attempt. Reserved in blocks, so that a restart never gives one out again.
    pub(crate) fn take_fence(&mut self, conn: &Connection) -> Result<i64> {
        let fence = self.next_fence;
        if fence > self.fences_reserved {
            self.fences_reserved = fence + FENCES_AT_ONCE;
            put_meta(conn, "fences", self.fences_reserved)?;
        }
        self.next_fence += 1;
        Ok(fence)
    }

    pub(crate) fn task_id(&self, handler: HandlerId, kind: &str, seq: TaskSeq) -> Result<TaskId> {
        Ok(TaskId::new(self.handler(handler)?.def.name.as_str(), kind, self.realm.uuid(seq)))
    }
}

pub(crate) fn put_meta(conn: &Connection, name: &str, value: i64) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES (?1, ?2)";
    conn.prepare_cached(sql)?.execute((name, value))?;
    Ok(())
}
