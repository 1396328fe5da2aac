//! Rules, nodes, audit entries, and the digests of configured objects.

use std::collections::BTreeMap;

use pointsman_core::store::{AuditEntry, NodeCapabilities, NodeId};
use pointsman_core::{Rule, RuleKind, RuleScope, Tenant, Timestamp};
use rusqlite::Connection;

use super::row::{query_all, read_text, read_time};
use crate::error::{Fault, TableResult};

pub(crate) fn list_rules(conn: &Connection) -> TableResult<Vec<Rule>> {
    let sql = "SELECT kind, space, name, tenant, by, reason, since FROM pointsman_rule
               ORDER BY space, name, tenant, kind";
    query_all(conn, sql, [], |row| {
        let tenant = match read_text(row, 3)? {
            "" => None,
            name => Some(Tenant::new(name).map_err(Fault::damaged)?),
        };
        let scope = RuleScope::parse(read_text(row, 1)?, read_text(row, 2)?);
        Ok(Rule {
            kind: if read_text(row, 0)? == RuleKind::Block.as_str() {
                RuleKind::Block
            } else {
                RuleKind::Pause
            },
            scope: scope.ok_or_else(|| Fault::damaged("a rule has an unknown target"))?,
            tenant,
            set_by: row.get(4)?,
            reason: row.get(5)?,
            since: read_time(row, 6)?,
        })
    })
}

pub(super) fn write_rule(conn: &Connection, rule: &Rule) -> TableResult<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_rule (kind, space, name, tenant, by, reason, since)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    conn.prepare_cached(sql)?.execute((
        rule.kind.as_str(),
        rule.scope.kind_name(),
        rule.scope.name(),
        rule.tenant.as_ref().map_or("", |t| t.as_str()),
        &rule.set_by,
        &rule.reason,
        rule.since.micros(),
    ))?;
    Ok(())
}

pub(super) fn delete_rule(
    conn: &Connection,
    kind: RuleKind,
    scope: &RuleScope,
    tenant: Option<&Tenant>,
) -> TableResult<()> {
    let sql = "DELETE FROM pointsman_rule WHERE kind = ?1 AND space = ?2 AND name = ?3 AND tenant = ?4";
    let tenant = tenant.map_or("", |t| t.as_str());
    conn.prepare_cached(sql)?.execute((kind.as_str(), scope.kind_name(), scope.name(), tenant))?;
    Ok(())
}

pub(super) fn list_live_nodes(conn: &Connection) -> TableResult<Vec<NodeId>> {
    query_all(conn, "SELECT id FROM pointsman_node WHERE gone = 0", [], |row| Ok(row.get(0)?))
}

pub(super) fn insert_node(conn: &Connection, name: &str, now: Timestamp) -> TableResult<NodeId> {
    let sql = "INSERT INTO pointsman_node (name, joined, last_heartbeat, gone) VALUES (?1, ?2, ?2, 0)";
    conn.execute(sql, (name, now.micros()))?;
    Ok(conn.last_insert_rowid())
}

pub(super) fn update_node_capabilities(
    conn: &Connection,
    node: NodeId,
    capabilities: &NodeCapabilities,
) -> TableResult<()> {
    let json = serde_json::to_string(capabilities).map_err(Fault::damaged)?;
    conn.prepare_cached("UPDATE pointsman_node SET capabilities = ?2 WHERE id = ?1")?
        .execute((node, json))?;
    Ok(())
}

pub(super) fn record_heartbeat(conn: &Connection, node: NodeId, now: Timestamp) -> TableResult<bool> {
    let sql = "UPDATE pointsman_node SET last_heartbeat = ?2 WHERE id = ?1 AND gone = 0";
    Ok(conn.prepare_cached(sql)?.execute((node, now.micros()))? == 1)
}

pub(super) fn mark_node_gone(conn: &Connection, node: NodeId) -> TableResult<()> {
    conn.execute("UPDATE pointsman_node SET gone = 1 WHERE id = ?1", [node])?;
    Ok(())
}

pub(super) fn list_silent_nodes(conn: &Connection, before: Timestamp) -> TableResult<Vec<NodeId>> {
    let sql = "SELECT id FROM pointsman_node WHERE gone = 0 AND last_heartbeat < ?1";
    query_all(conn, sql, [before.micros()], |row| Ok(row.get(0)?))
}

pub(super) fn insert_audit_entry(conn: &Connection, entry: &AuditEntry) -> TableResult<()> {
    let sql = "INSERT INTO pointsman_audit_entry (at, by, action, what, detail) VALUES (?1, ?2, ?3, ?4, ?5)";
    let row = (entry.at.micros(), &entry.actor, &entry.action, &entry.target, &entry.detail);
    conn.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

pub(super) fn list_configured_object_digests(conn: &Connection) -> TableResult<BTreeMap<String, String>> {
    let mut statement = conn.prepare_cached("SELECT key, digest FROM pointsman_configured_object_digest")?;
    let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn write_configured_object_digest(conn: &Connection, key: &str, digest: &str) -> TableResult<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_configured_object_digest (key, digest) VALUES (?1, ?2)";
    conn.prepare_cached(sql)?.execute((key, digest))?;
    Ok(())
}

pub(super) fn delete_configured_object_digest(conn: &Connection, key: &str) -> TableResult<()> {
    conn.prepare_cached("DELETE FROM pointsman_configured_object_digest WHERE key = ?1")?.execute([key])?;
    Ok(())
}
