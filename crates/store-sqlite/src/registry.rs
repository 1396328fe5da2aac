//! Handlers, routes, rules and nodes; and what is done when one of them goes.

use pointsman_core::store::{NodeId, Registration, Rescued, Sweep};
use pointsman_core::task::{Command, State, Status, TaskSeq};
use pointsman_core::{HandlerName, Place, Rule, RuleKind, TaskId, Tenant, Timestamp};
use rusqlite::Connection;

use crate::chains::{is_step_of, read_files};
use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::queues::{QueueId, QueueState};
use crate::row::{Live, live};
use crate::state::put_meta_json;
use crate::writer::Txn;

/// So many tasks at most are parked as missing in one sweep.
const LOST_AT_ONCE: u64 = 10_000;
/// So many missing tasks at most are taken up in one transaction.
pub(crate) const ADOPTED_AT_ONCE: u64 = 1_000;

impl Txn<'_> {
    pub(crate) fn register(&mut self, registration: &Registration, now: Timestamp) -> Result<()> {
        self.state.suspend_turns()?;
        let before = std::mem::take(&mut self.state.handlers);
        self.conn.execute("UPDATE pointsman_handler SET defined = 0", [])?;
        let sql = "INSERT INTO pointsman_handler (name, def, defined) VALUES (?1, ?2, 1)
                   ON CONFLICT (name) DO UPDATE SET def = ?2, defined = 1";
        for def in &registration.handlers {
            let json = serde_json::to_string(def).map_err(Fault::damaged)?;
            self.conn.prepare_cached(sql)?.execute((def.name.as_str(), json))?;
        }
        put_meta_json(self.conn, "routes", &registration.routes)?;
        put_meta_json(self.conn, "tenants", &registration.tenants)?;
        self.state.load_registry(self.conn)?;
        for handler in self.state.handlers.clone() {
            let was_there = before.iter().any(|old| old.id == handler.id && old.defined);
            self.note_presence(handler.id, was_there, handler.defined)?;
        }
        self.rescore(&before)?;
        self.state.resume_turns(now)?;
        self.reform(&before, now)?;
        let fresh = self.state.handlers.iter().filter(|h| before.iter().all(|old| old.id != h.id));
        let fresh: Vec<_> = fresh.map(|handler| handler.def.name.clone()).collect();
        self.register_chains(&registration.chains, &registration.chain_routes, &fresh)?;
        self.register_files(&registration.files, now)?;
        self.state.woke = true;
        Ok(())
    }

    pub(crate) fn registration(&self) -> Result<Registration> {
        let defined = self.state.handlers.iter().filter(|h| h.defined);
        Ok(Registration {
            handlers: defined.map(|h| h.def.clone()).collect(),
            routes: self.state.routes.clone(),
            tenants: self.state.weights.clone(),
            chains: self.state.chains.defined().cloned().collect(),
            chain_routes: self.state.chains.routes().clone(),
            files: read_files(self.conn)?,
        })
    }

    pub(crate) fn join(&mut self, name: &str, now: Timestamp) -> Result<NodeId> {
        self.state.ids.observe(now);
        let sql = "INSERT INTO pointsman_node (name, joined, heard, gone) VALUES (?1, ?2, ?2, 0)";
        self.conn.execute(sql, (name, now.micros()))?;
        let node = self.conn.last_insert_rowid();
        self.state.nodes.insert(node);
        Ok(node)
    }

    pub(crate) fn heartbeat(&mut self, node: NodeId, now: Timestamp) -> Result<bool> {
        self.state.ids.observe(now);
        let sql = "UPDATE pointsman_node SET heard = ?2 WHERE id = ?1 AND gone = 0";
        Ok(self.conn.prepare_cached(sql)?.execute((node, now.micros()))? == 1)
    }

    /// A node goes, and what it still holds goes on at once.
    pub(crate) fn leave(&mut self, node: NodeId, now: Timestamp) -> Result<()> {
        self.give_up(node)?;
        for live in self.held_by(node)? {
            if let State::Locked(lease) = live.life.state {
                let release = Command::Release { fence: lease.fence };
                // A refusal means that it is no longer held: nothing to give back.
                let _ = self.command_live(live, release, Remains::default(), now)?;
            }
        }
        Ok(())
    }

    /// From now on the node gets nothing, not even if it still lives and asks.
    fn give_up(&mut self, node: NodeId) -> Result<()> {
        self.conn.execute("UPDATE pointsman_node SET gone = 1 WHERE id = ?1", [node])?;
        self.state.nodes.remove(&node);
        Ok(())
    }

    fn held_by(&self, node: NodeId) -> Result<Vec<Live>> {
        let sql =
            concat!("SELECT ", live!(), " FROM pointsman_task WHERE phase = 5 AND node = ?1 ORDER BY seq");
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([node])?;
        let mut held = Vec::new();
        while let Some(row) = rows.next()? {
            held.push(Live::from_row(row)?);
        }
        Ok(held)
    }

    pub(crate) fn hold(&mut self, rule: Rule) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_rule (kind, space, name, tenant, by, reason, since)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let tenant = rule.tenant.as_ref().map_or("", |t| t.as_str());
        self.conn.prepare_cached(sql)?.execute((
            rule.kind.as_str(),
            rule.place.space(),
            rule.place.name(),
            tenant,
            &rule.by,
            &rule.reason,
            rule.since.micros(),
        ))?;
        self.state.load_rules(self.conn)?;
        for queue in self.queues_at(&rule.place)? {
            self.unschedule(queue, rule.since)?;
        }
        Ok(())
    }

    /// Looks at the rules again for the queues of a place; answers which are held.
    fn queues_at(&mut self, place: &Place) -> Result<Vec<QueueId>> {
        let handler = match place {
            Place::Handler(name) => name,
            Place::Collection(pair) => &pair.source,
            Place::Chain(path) => return self.state.refresh_held(|queue| is_step_of(queue, path)),
            Place::Schedule(_) => return Ok(vec![]),
        };
        match self.state.handler_named(handler).map(|h| h.id) {
            Some(handler) => self.state.refresh_held(|queue| queue.handler == handler),
            None => Ok(vec![]),
        }
    }

    /// What was scheduled goes back. Bounded by the look-ahead, whatever the backlog.
    pub(crate) fn unschedule(&mut self, queue: QueueId, now: Timestamp) -> Result<()> {
        if self.state.queue(queue)?.counts.scheduled == 0 {
            return Ok(());
        }
        for seq in self.seqs("SELECT seq FROM pointsman_task WHERE phase = 4 AND queue = ?1", queue)? {
            let _ = self.command(seq, Command::Unschedule, Remains::default(), now)?;
        }
        Ok(())
    }

    pub(crate) fn release(&mut self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<bool> {
        if !self.state.has_rule(kind, place, tenant) {
            return Ok(false);
        }
        let sql = "DELETE FROM pointsman_rule WHERE kind = ?1 AND space = ?2 AND name = ?3 AND tenant = ?4";
        let tenant = tenant.map_or("", |t| t.as_str());
        self.conn.prepare_cached(sql)?.execute((kind.as_str(), place.space(), place.name(), tenant))?;
        self.state.load_rules(self.conn)?;
        self.queues_at(place)?;
        self.state.woke = true;
        Ok(true)
    }

    /// Frees what silent nodes held, and parks what has no handler any more.
    pub(crate) fn rescue(&mut self, sweep: Sweep, now: Timestamp) -> Result<Rescued> {
        let mut rescued = Rescued::default();
        let sql = "SELECT id FROM pointsman_node WHERE gone = 0 AND heard < ?1";
        let silent: Vec<NodeId> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([now.minus(sweep.silence).micros()], |r| r.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for node in silent {
            self.give_up(node)?;
            for live in self.held_by(node)? {
                let error = format!("node {node} died while it ran attempt {}", live.life.attempt);
                rescued.tasks.extend(self.expire(live, &error, now)?);
            }
        }
        for live in self.run_out(sweep.workers_since, now)? {
            let error =
                format!("the worker of attempt {} was not heard of within its lease", live.life.attempt);
            rescued.tasks.extend(self.expire(live, &error, now)?);
        }
        if sweep.missing {
            rescued.missing = self.park_undefined(now)?;
        }
        Ok(rescued)
    }

    /// Takes a running task from whoever held it.
    fn expire(&mut self, live: Live, error: &str, now: Timestamp) -> Result<Option<(TaskId, Status)>> {
        let State::Locked(lease) = live.life.state else { return Ok(None) };
        let handler = self.state.queue(live.queue)?.handler;
        let id = self.state.task_id(handler, self.subject_of(&live)?.collection(), live.seq)?;
        let remains = Remains::of_error(error);
        let expired = self.command_live(live, Command::Expire { fence: lease.fence }, remains, now)?;
        Ok(expired.ok().map(|life| (id, life.state.status())))
    }

    /// What workers hold whose leases have run out.
    fn run_out(&self, since: Timestamp, now: Timestamp) -> Result<Vec<Live>> {
        let sql = concat!(
            "SELECT ",
            live!(),
            " FROM pointsman_task WHERE until < ?1 AND started >= ?2 AND phase = 5 ORDER BY until"
        );
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((now.micros(), since.micros()))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(Live::from_row(row)?);
        }
        Ok(found)
    }

    /// Tasks whose handler's definition has gone become `missing`.
    fn park_undefined(&mut self, now: Timestamp) -> Result<u64> {
        let mut parked = 0;
        let waiting = |q: &&QueueState| q.counts.ready + q.counts.waiting + q.counts.scheduled > 0;
        let undefined = self.state.all_queues().filter(|q| !q.defined).filter(waiting);
        let queues: Vec<QueueId> = undefined.map(|q| q.id).collect();
        for queue in queues {
            let sql =
                "SELECT seq FROM pointsman_task WHERE queue = ?1 AND phase <= 4 ORDER BY seq LIMIT 10000";
            for seq in self.seqs(sql, queue)? {
                let why = Remains::of_error("its handler is no longer defined");
                if self.command(seq, Command::Lose, why, now)?.is_ok() {
                    parked += 1;
                }
                if parked >= LOST_AT_ONCE {
                    return Ok(parked);
                }
            }
        }
        Ok(parked)
    }

    /// Takes up some of a handler's missing tasks; fewer than [`ADOPTED_AT_ONCE`] when no more are left.
    pub(crate) fn adopt(&mut self, handler: &HandlerName, now: Timestamp) -> Result<u64> {
        let Some(handler) = self.state.handler_named(handler).map(|h| h.id) else { return Ok(0) };
        let mine =
            self.state.all_queues().filter(|q| q.handler == handler && q.defined && q.counts.missing > 0);
        let queues: Vec<QueueId> = mine.map(|q| q.id).collect();
        let mut adopted = 0;
        for queue in queues {
            let sql = "SELECT seq FROM pointsman_task WHERE queue = ?1 AND phase = 7 ORDER BY seq LIMIT 1000";
            for seq in self.seqs(sql, queue)? {
                if self.command(seq, Command::Adopt, Remains::default(), now)?.is_ok() {
                    adopted += 1;
                }
                if adopted >= ADOPTED_AT_ONCE {
                    return Ok(adopted);
                }
            }
        }
        Ok(adopted)
    }

    fn seqs(&self, sql: &str, queue: QueueId) -> Result<Vec<TaskSeq>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map([queue], |r| r.get(0).map(TaskSeq))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

pub(crate) fn read_rules(conn: &Connection) -> Result<Vec<Rule>> {
    let sql = "SELECT kind, space, name, tenant, by, reason, since FROM pointsman_rule
               ORDER BY space, name, tenant, kind";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut rules = Vec::new();
    while let Some(row) = rows.next()? {
        let kind: String = row.get(0)?;
        let (space, name, tenant): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let tenant = match tenant.as_str() {
            "" => None,
            name => Some(Tenant::new(name).map_err(Fault::damaged)?),
        };
        rules.push(Rule {
            kind: if kind == RuleKind::Block.as_str() { RuleKind::Block } else { RuleKind::Pause },
            place: Place::read(&space, &name).ok_or_else(|| Fault::damaged("the place of a rule"))?,
            tenant,
            by: row.get(4)?,
            reason: row.get(5)?,
            since: Timestamp::from_micros(row.get(6)?),
        });
    }
    Ok(rules)
}
