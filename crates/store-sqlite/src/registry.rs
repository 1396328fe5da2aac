//! Handlers, routes, rules and nodes; and what is done when one of them goes.

use std::time::Duration;

use pointsman_core::store::{NodeId, Registration, Rescued};
use pointsman_core::task::{Command, State, TaskSeq};
use pointsman_core::{HandlerName, Rule, RuleKind, Tenant, Timestamp};
use rusqlite::Connection;

use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::row::{Live, live};
use crate::state::QueueId;
use crate::writer::Txn;

/// So many tasks at most are parked as missing in one sweep.
const LOST_AT_ONCE: u64 = 10_000;
/// So many missing tasks at most are taken up in one transaction.
pub(crate) const ADOPTED_AT_ONCE: u64 = 1_000;

impl Txn<'_> {
    pub(crate) fn register(&mut self, registration: &Registration) -> Result<()> {
        self.conn.execute("UPDATE pointsman_handler SET defined = 0", [])?;
        let sql = "INSERT INTO pointsman_handler (name, def, defined) VALUES (?1, ?2, 1)
                   ON CONFLICT (name) DO UPDATE SET def = ?2, defined = 1";
        for def in &registration.handlers {
            let json = serde_json::to_string(def).map_err(Fault::damaged)?;
            self.conn.prepare_cached(sql)?.execute((def.name.as_str(), json))?;
        }
        let routes = serde_json::to_string(&registration.routes).map_err(Fault::damaged)?;
        self.conn
            .execute("INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES ('routes', ?1)", [routes])?;
        self.state.load_registry(self.conn)?;
        self.state.woke = true;
        Ok(())
    }

    pub(crate) fn registration(&self) -> Registration {
        let defined = self.state.handlers.iter().filter(|h| h.defined);
        Registration { handlers: defined.map(|h| h.def.clone()).collect(), routes: self.state.routes.clone() }
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
        let sql = "INSERT OR REPLACE INTO pointsman_rule (kind, handler, tenant, by, reason, since)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let tenant = rule.tenant.as_ref().map_or("", |t| t.as_str());
        self.conn.prepare_cached(sql)?.execute((
            rule.kind.as_str(),
            rule.handler.as_str(),
            tenant,
            &rule.by,
            &rule.reason,
            rule.since.micros(),
        ))?;
        self.state.load_rules(self.conn)?;
        let Some(handler) = self.state.handler_named(&rule.handler).map(|h| h.id) else { return Ok(()) };
        for queue in self.state.refresh_held(handler)? {
            if self.state.queue(queue)?.held {
                self.unschedule(queue, rule.since)?;
            }
        }
        Ok(())
    }

    /// What was scheduled goes back. Bounded by the look-ahead, whatever the backlog.
    fn unschedule(&mut self, queue: QueueId, now: Timestamp) -> Result<()> {
        if self.state.queue(queue)?.counts.scheduled == 0 {
            return Ok(());
        }
        for seq in self.seqs("SELECT seq FROM pointsman_task WHERE phase = 4 AND queue = ?1", queue)? {
            let _ = self.command(seq, Command::Unschedule, Remains::default(), now)?;
        }
        Ok(())
    }

    pub(crate) fn release(
        &mut self,
        kind: RuleKind,
        handler: &HandlerName,
        tenant: Option<&Tenant>,
    ) -> Result<bool> {
        if !self.state.has_rule(kind, handler, tenant) {
            return Ok(false);
        }
        let sql = "DELETE FROM pointsman_rule WHERE kind = ?1 AND handler = ?2 AND tenant = ?3";
        let tenant = tenant.map_or("", |t| t.as_str());
        self.conn.prepare_cached(sql)?.execute((kind.as_str(), handler.as_str(), tenant))?;
        self.state.load_rules(self.conn)?;
        if let Some(id) = self.state.handler_named(handler).map(|h| h.id) {
            self.state.refresh_held(id)?;
        }
        self.state.woke = true;
        Ok(true)
    }

    /// Frees what silent nodes held, and parks what has no handler any more.
    pub(crate) fn rescue(&mut self, lease: Duration, now: Timestamp) -> Result<Rescued> {
        let mut rescued = Rescued::default();
        let sql = "SELECT id FROM pointsman_node WHERE gone = 0 AND heard < ?1";
        let silent: Vec<NodeId> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([now.minus(lease).micros()], |r| r.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for node in silent {
            self.give_up(node)?;
            for live in self.held_by(node)? {
                let (seq, queue, event) = (live.seq, live.queue, live.event);
                let State::Locked(lease) = live.life.state else { continue };
                let error = format!("node {node} died while it ran attempt {}", live.life.attempt);
                let remains = Remains { error: Some(&error), result: None };
                if let Ok(life) =
                    self.command_live(live, Command::Expire { fence: lease.fence }, remains, now)?
                {
                    let kind: String = self.conn.query_row(
                        "SELECT type FROM pointsman_journal WHERE id = ?1",
                        [event.as_i64()],
                        |r| r.get(0),
                    )?;
                    let id = self.state.task_id(self.state.queue(queue)?.handler, &kind, seq)?;
                    rescued.tasks.push((id, life.state.status()));
                }
            }
        }
        rescued.missing = self.park_undefined(now)?;
        Ok(rescued)
    }

    /// Tasks whose handler's definition has gone become `missing`.
    fn park_undefined(&mut self, now: Timestamp) -> Result<u64> {
        let mut parked = 0;
        let undefined: Vec<i64> = self.state.handlers.iter().filter(|h| !h.defined).map(|h| h.id).collect();
        if undefined.is_empty() {
            return Ok(0);
        }
        let queues: Vec<QueueId> = self
            .state
            .queues
            .values()
            .filter(|q| {
                undefined.contains(&q.handler) && q.counts.ready + q.counts.waiting + q.counts.scheduled > 0
            })
            .map(|q| q.id)
            .collect();
        for queue in queues {
            let sql =
                "SELECT seq FROM pointsman_task WHERE queue = ?1 AND phase <= 4 ORDER BY seq LIMIT 10000";
            for seq in self.seqs(sql, queue)? {
                let why = Remains { error: Some("its handler is no longer defined"), result: None };
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
        let Some(handler) = self.state.handler_named(handler).filter(|h| h.defined).map(|h| h.id) else {
            return Ok(0);
        };
        let queues: Vec<QueueId> = self
            .state
            .queues
            .values()
            .filter(|q| q.handler == handler && q.counts.missing > 0)
            .map(|q| q.id)
            .collect();
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
    let sql =
        "SELECT kind, handler, tenant, by, reason, since FROM pointsman_rule ORDER BY handler, tenant, kind";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut rules = Vec::new();
    while let Some(row) = rows.next()? {
        let kind: String = row.get(0)?;
        let (handler, tenant): (String, String) = (row.get(1)?, row.get(2)?);
        let tenant = match tenant.as_str() {
            "" => None,
            name => Some(Tenant::new(name).map_err(Fault::damaged)?),
        };
        rules.push(Rule {
            kind: if kind == RuleKind::Block.as_str() { RuleKind::Block } else { RuleKind::Pause },
            handler: HandlerName::new(handler).map_err(Fault::damaged)?,
            tenant,
            by: row.get(3)?,
            reason: row.get(4)?,
            since: Timestamp::from_micros(row.get(5)?),
        });
    }
    Ok(rules)
}
