//! Queues, handlers, rules, nodes and what people did.

use std::collections::BTreeMap;

use pointsman_core::limit::Pace;
use pointsman_core::store::{Abilities, Deed, NodeId, NodeView};
use pointsman_core::task::{QueueOf, Realm};
use pointsman_core::{HandlerDef, Place, Rule, RuleKind, TaskSeq, Tenant, Timestamp};
use pointsman_store::commits::Change;
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Counts, HandlerId, HandlerRow, QueueId, QueueRow, Ranks};
use tokio_postgres::Row;

use super::PgTables;
use super::columns::clean;
use crate::documented::{canvas_of, space_of};
use crate::link::{Piece, params};
use crate::rows::{bucket, get, maybe_seq};
use crate::session::query;

/// Texts that are parts of the registration.
const REGISTERED: [&str; 3] = ["routes", "tenants", "chain_routes"];

impl PgTables {
    pub(super) fn find_realm(&self) -> Result<Realm> {
        if let Some(realm) = self.realm.get() {
            return Ok(realm);
        }
        let realm = Realm(self.number_of("realm")? as u64);
        self.realm.set(Some(realm));
        Ok(realm)
    }

    pub(super) fn find_salt(&self) -> Result<u64> {
        Ok(self.number_of("salt")? as u64)
    }

    fn number_of(&self, name: &str) -> Result<i64> {
        let text = self.find_text(name)?.ok_or_else(|| Fault::damaged(format!("there is no {name}")))?;
        text.parse().map_err(Fault::damaged)
    }

    pub(super) fn find_text(&self, name: &str) -> Result<Option<String>> {
        self.ask_one(query!("write/text", TEXT), params![name.to_string()], |row| get(row, 0))
    }

    pub(super) fn keep_text(&self, name: &str, text: &str) {
        if REGISTERED.contains(&name) {
            self.registry_changes();
        }
        let asked = params![name.to_string(), text.to_string()];
        self.hold(Piece::Statement(query!("write/put_text", TEXT, TEXT), asked));
    }

    pub(super) fn all_queues(&self) -> Result<Vec<QueueRow>> {
        self.ask_all(query!("write/queues"), vec![], queue_of)
    }

    pub(super) fn queues_of(&self, ids: Vec<QueueId>) -> Result<Vec<QueueRow>> {
        match ids.is_empty() {
            true => Ok(vec![]),
            false => self.ask_all(query!("write/queues_of", INT8_ARRAY), params![ids], queue_of),
        }
    }

    pub(super) fn add_queue(&self, handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Result<QueueId> {
        let asked = params![handler, tenant.to_string(), of.text(), canvas_of(Some(tenant))];
        let query = query!("write/make_queue", INT8, TEXT, TEXT, UUID);
        let id = self.ask_one(query, asked, |row| get(row, 0))?;
        let id = id.ok_or_else(|| Fault::damaged("a queue without a number"))?;
        self.changed(Change::Queue(id));
        Ok(id)
    }

    pub(super) fn keep_counts(&self, counts: &[(QueueId, Counts)]) -> Result<()> {
        let column = |of: fn(&Counts) -> i64| counts.iter().map(|(_, c)| of(c)).collect::<Vec<i64>>();
        let ids: Vec<i64> = counts.iter().map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| self.changed(Change::Queue(*id)));
        let asked = params![
            ids,
            column(|c| c.ready),
            column(|c| c.waiting),
            column(|c| c.scheduled),
            column(|c| c.running),
            column(|c| c.halted),
            column(|c| c.missing),
        ];
        let query = query!(
            "write/put_counts",
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY
        );
        self.hold(Piece::Statement(query, asked));
        Ok(())
    }

    pub(super) fn head_of(&self, queue: QueueId) -> Result<Option<(i64, TaskSeq)>> {
        let head = |row: &Row| Ok((get(row, 0)?, TaskSeq(get(row, 1)?)));
        self.ask_one(query!("write/ready_head", INT8), params![queue], head)
    }

    pub(super) fn ranks_of(&self, queue: QueueId) -> Result<Vec<Ranks>> {
        let band = |row: &Row| Ok((get(row, 0)?, bucket(row, 1)?, get(row, 2)?, get(row, 3)?));
        self.ask_all(query!("write/ranks", INT8), params![queue], band)
    }

    pub(super) fn all_handlers(&self) -> Result<Vec<HandlerRow>> {
        self.ask_all(query!("write/handlers"), vec![], |row| {
            Ok(HandlerRow {
                id: get(row, 0)?,
                def: serde_json::from_str(get(row, 1)?).map_err(Fault::damaged)?,
                defined: get(row, 2)?,
                pace: pace_of(get(row, 3)?)?,
            })
        })
    }

    pub(super) fn define_handlers(&self, handlers: &[HandlerDef]) -> Result<()> {
        self.registry_changes();
        self.hold(Piece::Statement(query!("write/undefine_handlers"), vec![]));
        for def in handlers {
            let json = serde_json::to_string(def).map_err(Fault::damaged)?;
            let asked = params![def.name.to_string(), json];
            self.hold(Piece::Statement(query!("write/put_handler", TEXT, TEXT), asked));
        }
        Ok(())
    }

    pub(super) fn keep_pace(&self, handler: HandlerId, pace: &Pace) -> Result<()> {
        self.changed(Change::Pace(handler));
        let json = serde_json::to_string(pace).map_err(Fault::damaged)?;
        self.hold(Piece::Statement(query!("write/put_pace", INT8, TEXT), params![handler, json]));
        Ok(())
    }

    pub(super) fn paces_of(&self, ids: Vec<HandlerId>) -> Result<Vec<(HandlerId, Pace)>> {
        let pace = |row: &Row| Ok((get(row, 0)?, pace_of(get(row, 1)?)?));
        match ids.is_empty() {
            true => Ok(vec![]),
            false => self.ask_all(query!("write/paces_of", INT8_ARRAY), params![ids], pace),
        }
    }

    pub(super) fn gaps_of(&self, handler: HandlerId) -> Result<String> {
        let gaps = self.ask_one(query!("write/gaps", INT8), params![handler], |row| get(row, 0))?;
        gaps.ok_or_else(|| Fault::damaged(format!("no handler {handler}")))
    }

    pub(super) fn keep_gaps(&self, handler: HandlerId, gaps: &str) {
        let asked = params![handler, gaps.to_string()];
        self.hold(Piece::Statement(query!("write/put_gaps", INT8, TEXT), asked));
    }

    pub(super) fn all_files(&self) -> Result<BTreeMap<String, String>> {
        let files = self.ask_all(query!("write/files"), vec![], |row| Ok((get(row, 0)?, get(row, 1)?)))?;
        Ok(files.into_iter().collect())
    }

    pub(super) fn keep_file(&self, key: &str, digest: &str) {
        let asked = params![key.to_string(), digest.to_string()];
        self.hold(Piece::Statement(query!("write/put_file", TEXT, TEXT), asked));
    }

    pub(super) fn remove_file(&self, key: &str) {
        self.hold(Piece::Statement(query!("write/delete_file", TEXT), params![key.to_string()]));
    }

    pub(super) fn all_rules(&self) -> Result<Vec<Rule>> {
        let rows = self.ask(query!("write/rules"), vec![])?;
        crate::documented::rules_of(&rows)
    }

    pub(super) fn keep_rule(&self, rule: &Rule) {
        self.registry_changes();
        let query = query!("write/put_rule", TEXT, UUID, TEXT, TEXT, TEXT, INT8, TEXT, TEXT);
        let asked = params![
            rule.kind.as_str(),
            canvas_of(rule.tenant.as_ref()),
            rule.tenant.as_ref().map(Tenant::to_string),
            rule.place.name(),
            space_of(&rule.place),
            rule.since.micros(),
            clean(rule.by.clone()),
            clean(rule.reason.clone()),
        ];
        self.hold(Piece::Statement(query, asked));
    }

    pub(super) fn remove_rule(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) {
        self.registry_changes();
        let asked = params![kind.as_str(), canvas_of(tenant), place.name(), space_of(place)];
        self.hold(Piece::Statement(query!("write/delete_rule", TEXT, UUID, TEXT, TEXT), asked));
    }

    pub(super) fn all_nodes(&self) -> Result<Vec<NodeView>> {
        let pieces = self.release()?;
        self.link.send(&pieces)?;
        self.link.with(|session| Box::pin(crate::read::nodes(session)))
    }

    pub(super) fn nodes_alive(&self) -> Result<Vec<NodeId>> {
        self.ask_all(query!("write/live_nodes"), vec![], |row| get(row, 0))
    }

    pub(super) fn add_node(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        self.registry_changes();
        self.time.report(now);
        let asked = params![clean(name.into()), now.micros()];
        let id = self.ask_one(query!("write/insert_node", TEXT, INT8), asked, |row| get(row, 0))?;
        id.ok_or_else(|| Fault::damaged("a node without a number"))
    }

    pub(super) fn keep_abilities(&self, node: NodeId, abilities: &Abilities) -> Result<()> {
        let json = serde_json::to_string(abilities).map_err(Fault::damaged)?;
        self.hold(Piece::Statement(query!("write/put_abilities", INT8, TEXT), params![node, json]));
        Ok(())
    }

    pub(super) fn hear_node(&self, node: NodeId, now: Timestamp) -> Result<bool> {
        self.time.report(now);
        let asked = params![node, now.micros()];
        let heard = self.ask_one(query!("write/node_heard", INT8, INT8), asked, |row| maybe_seq(row, 0))?;
        Ok(heard.is_some())
    }

    pub(super) fn remove_node(&self, node: NodeId) {
        self.registry_changes();
        self.hold(Piece::Statement(query!("write/node_gone", INT8), params![node]));
    }

    pub(super) fn nodes_silent(&self, before: Timestamp) -> Result<Vec<NodeId>> {
        self.ask_all(query!("write/silent_nodes", INT8), params![before.micros()], |row| get(row, 0))
    }

    pub(super) fn add_deed(&self, deed: &Deed) {
        let Deed { at, by, action, what, detail } = deed.clone();
        let asked = params![at.micros(), clean(by), clean(action), clean(what), clean(detail)];
        self.hold(Piece::Statement(query!("write/insert_deed", INT8, TEXT, TEXT, TEXT, TEXT), asked));
    }
}

fn queue_of(row: &Row) -> Result<QueueRow> {
    Ok(QueueRow {
        id: get(row, 0)?,
        handler: get(row, 1)?,
        tenant: Tenant::new(get::<&str>(row, 2)?).map_err(Fault::damaged)?,
        of: QueueOf::read(get(row, 3)?).map_err(Fault::damaged)?,
        counts: Counts {
            ready: get(row, 4)?,
            waiting: get(row, 5)?,
            scheduled: get(row, 6)?,
            running: get(row, 7)?,
            halted: get(row, 8)?,
            missing: get(row, 9)?,
        },
    })
}

fn pace_of(json: &str) -> Result<Pace> {
    match json {
        "" => Ok(Pace::default()),
        json => serde_json::from_str(json).map_err(Fault::damaged),
    }
}
