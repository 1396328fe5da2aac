//! Reads nodes and the audit log.

use std::collections::HashMap;

use pointsman_core::store::{AuditEntry, NodeCapabilities, NodeId, NodeView};
use pointsman_store::expand_sql;
use rusqlite::Connection;

use crate::error::{Fault, TableResult};
use crate::tables::row::{query_all, read_text, read_time};

/// The maximum number of nodes that are listed.
const MAX_LISTED_NODES: i64 = 100;

pub(crate) fn list_nodes(conn: &Connection) -> TableResult<Vec<NodeView>> {
    let sql = expand_sql!("SELECT node, count(*) FROM pointsman_task WHERE phase = :locked GROUP BY node");
    let running_counts: Vec<(NodeId, i64)> = query_all(conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let running_counts: HashMap<_, _> = running_counts.into_iter().collect();
    let sql = "SELECT id, name, joined, last_heartbeat, gone, capabilities
               FROM pointsman_node ORDER BY gone, id DESC LIMIT ?1";
    query_all(conn, sql, [MAX_LISTED_NODES], |row| {
        let id: NodeId = row.get(0)?;
        let capabilities = match read_text(row, 5)? {
            "" => NodeCapabilities::default(),
            json => serde_json::from_str(json).map_err(Fault::damaged)?,
        };
        Ok(NodeView {
            id,
            name: row.get(1)?,
            joined_at: read_time(row, 2)?,
            last_heartbeat_at: read_time(row, 3)?,
            has_left_or_died: row.get(4)?,
            capabilities,
            running_task_count: running_counts.get(&id).copied().unwrap_or(0).max(0) as u64,
        })
    })
}

pub(crate) fn list_audit_entries(
    conn: &Connection,
    before: Option<i64>,
    limit: usize,
) -> TableResult<Vec<(i64, AuditEntry)>> {
    let sql = "SELECT n, at, by, action, what, detail FROM pointsman_audit_entry WHERE n < ?1 ORDER BY n DESC LIMIT ?2";
    query_all(conn, sql, (before.unwrap_or(i64::MAX), limit as i64), |row| {
        let entry = AuditEntry {
            at: read_time(row, 1)?,
            actor: row.get(2)?,
            action: row.get(3)?,
            target: row.get(4)?,
            detail: row.get(5)?,
        };
        Ok((row.get(0)?, entry))
    })
}
