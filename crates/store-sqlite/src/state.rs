//! What the writer keeps in memory beside the file. There is one writer, so this is a cache that cannot be
//! stale; after a transaction that failed it is read again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pointsman_core::limit::Pace;
use pointsman_core::store::NodeId;
use pointsman_core::task::{QueueOf, Realm, Subject};
use pointsman_core::{
    EventId, HandlerDef, HandlerName, HandlingKey, IdClock, Place, Routes, Rule, RuleKind, ScheduleName,
    TaskId, TaskSeq, Tenant, Timestamp, Weight,
};
use rusqlite::{Connection, OptionalExtension};

use crate::chains::Chains;
use crate::error::{Fault, Result};
use crate::gauges::Gauges;
use crate::orders::Numbered;
use crate::queues::Queues;
use crate::recent::Recent;
use crate::row::Live;

pub(crate) type HandlerId = i64;

/// A handler that was ever registered. Tasks refer to it by number.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) id: HandlerId,
    pub(crate) def: HandlerDef,
    pub(crate) defined: bool,
}

/// A task that runs. Nobody else can change it, so that its end need not be read from the file first.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) live: Live,
    pub(crate) subject: Subject,
    /// The order whose step it is.
    pub(crate) order: Option<Numbered>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) ids: IdClock,
    pub(crate) forgotten: EventId,
    pub(crate) realm: Realm,
    /// Mixed into lane numbers, so that nobody can choose keys that share one.
    pub(crate) salt: u64,
    next_task: i64,
    /// The tokens of attempts.
    pub(crate) fences: Numbers,
    /// The numbers of objects.
    pub(crate) objects: Numbers,
    /// How many events were ever journaled.
    pub(crate) journaled: i64,
    pub(crate) handlers: Vec<Arc<Handler>>,
    handler_by_name: HashMap<HandlerName, HandlerId>,
    pub(crate) routes: Routes,
    /// Routes resolved for each type seen, until the registration changes.
    resolved: HashMap<HandlingKey, Arc<[(HandlerId, bool)]>>,
    /// The shares of tenants; 1 for those not named.
    pub(crate) weights: BTreeMap<Tenant, Weight>,
    pub(crate) queues: Queues,
    pub(crate) gauges: Gauges,
    pub(crate) rules: Vec<Rule>,
    pub(crate) chains: Chains,
    /// Nodes that have joined and have neither left nor been given up.
    pub(crate) nodes: HashSet<NodeId>,
    /// When workers last asked for tasks of each handler that is pulled.
    pub(crate) asked: HashMap<HandlerId, Timestamp>,
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
}

/// So many types are kept resolved; more would be somebody playing with names.
pub(crate) const RESOLVED_TYPES: usize = 10_000;

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
        let ended = meta("ended")?.unwrap_or(0);

        let mut state = Self {
            ids: IdClock::starting(newest.max(forgotten), now),
            forgotten,
            realm: Realm(meta("realm")?.ok_or_else(|| Fault::damaged("no realm"))? as u64),
            salt: meta("salt")?.ok_or_else(|| Fault::damaged("no salt"))? as u64,
            next_task: tasks + 1,
            fences: Numbers::after("fences", meta("fences")?.unwrap_or(0)),
            objects: Numbers::after("objects", meta("objects")?.unwrap_or(0)),
            journaled: marked + since,
            handlers: Vec::new(),
            handler_by_name: HashMap::new(),
            routes: Routes::new(),
            resolved: HashMap::new(),
            weights: BTreeMap::new(),
            queues: Queues::default(),
            gauges: Gauges::default(),
            rules: Vec::new(),
            chains: Chains::load(conn)?,
            nodes: HashSet::new(),
            asked: HashMap::new(),
            recent: Recent::default(),
            running: HashMap::new(),
            scheduled: 0,
            ended,
            ended_written: ended,
            swept: EventId::ZERO,
            next_due: None,
            woke: false,
            sooner: false,
        };
        state.load_registry(conn)?;
        state.load_rules(conn)?;
        state.load_nodes(conn)?;
        state.load_queues(conn)?;
        state.resume_turns(now)?;
        state.reload_next_due(conn)?;
        Ok(state)
    }

    pub(crate) fn load_registry(&mut self, conn: &Connection) -> Result<()> {
        self.handlers.clear();
        self.handler_by_name.clear();
        self.resolved.clear();
        let mut rows = conn.prepare("SELECT id, def, defined, pace FROM pointsman_handler ORDER BY id")?;
        let mut rows = rows.query([])?;
        let mut paces = Vec::new();
        while let Some(row) = rows.next()? {
            let def: HandlerDef = serde_json::from_str(row.get_ref(1)?.as_str().map_err(Fault::damaged)?)
                .map_err(|e| Fault::damaged(format!("a handler's definition: {e}")))?;
            let id: HandlerId = row.get(0)?;
            self.handler_by_name.insert(def.name.clone(), id);
            self.handlers.push(Arc::new(Handler { id, def, defined: row.get(2)? }));
            let pace: String = row.get(3)?;
            paces.push(if pace.is_empty() {
                Pace::default()
            } else {
                serde_json::from_str(&pace).map_err(|e| Fault::damaged(format!("a handler's pace: {e}")))?
            });
        }
        self.fit_gauges(paces);
        self.routes = from_meta(conn, "routes")?.unwrap_or_default();
        self.weights = from_meta(conn, "tenants")?.unwrap_or_default();
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

    pub(crate) fn is_held(&self, handler: HandlerId, of: &QueueOf, tenant: &Tenant) -> bool {
        let Ok(handler) = self.handler(handler) else { return false };
        self.rules.iter().any(|rule| rule.holds(&handler.def.name, of, tenant)) || self.chains.holds(of)
    }

    pub(crate) fn schedule_is_held(&self, schedule: &ScheduleName) -> bool {
        self.rules.iter().any(|rule| rule.holds_schedule(schedule))
    }

    pub(crate) fn has_rule(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> bool {
        self.rules.iter().any(|r| r.kind == kind && r.place == *place && r.tenant.as_ref() == tenant)
    }

    /// Writes the counters that changed. Called once before each commit.
    pub(crate) fn flush(&mut self, conn: &Connection) -> Result<()> {
        if self.ended != self.ended_written {
            put_meta(conn, "ended", self.ended)?;
            self.ended_written = self.ended;
        }
        self.flush_queues(conn)?;
        self.flush_gauges(conn)
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

    pub(crate) fn task_id(&self, handler: HandlerId, collection: &str, seq: TaskSeq) -> Result<TaskId> {
        Ok(TaskId::new(self.handler(handler)?.def.name.as_str(), collection, self.realm.uuid(seq)))
    }
}

/// Ascending numbers. They are reserved in blocks, so that a restart never gives one out again.
#[derive(Debug)]
pub(crate) struct Numbers {
    name: &'static str,
    last: i64,
    reserved: i64,
}

impl Numbers {
    const AT_ONCE: i64 = 1_000_000;

    fn after(name: &'static str, reserved: i64) -> Self {
        Self { name, last: reserved, reserved }
    }

    pub(crate) fn take(&mut self, conn: &Connection) -> Result<i64> {
        self.last += 1;
        if self.last > self.reserved {
            self.reserved = self.last + Self::AT_ONCE;
            put_meta(conn, self.name, self.reserved)?;
        }
        Ok(self.last)
    }
}

/// What a name of the meta table holds, as JSON.
pub(crate) fn from_meta<T: serde::de::DeserializeOwned>(conn: &Connection, name: &str) -> Result<Option<T>> {
    let sql = "SELECT value FROM pointsman_meta WHERE name = ?1";
    let text: Option<String> = conn.query_row(sql, [name], |r| r.get(0)).optional()?;
    let value = text.map(|text| serde_json::from_str(&text)).transpose();
    value.map_err(|e| Fault::damaged(format!("the {name}: {e}")))
}

pub(crate) fn put_meta_json(conn: &Connection, name: &str, value: &impl serde::Serialize) -> Result<()> {
    let json = serde_json::to_string(value).map_err(Fault::damaged)?;
    conn.execute("INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES (?1, ?2)", (name, json))?;
    Ok(())
}

pub(crate) fn put_meta(conn: &Connection, name: &str, value: i64) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES (?1, ?2)";
    conn.prepare_cached(sql)?.execute((name, value))?;
    Ok(())
}
