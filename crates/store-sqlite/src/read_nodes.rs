//! Reads nodes and the audit log.

use std::collections::HashMap;

use pointsman_core::store::{AuditEntry, NodeId, NodeView};
use pointsman_store::columns::{AuditEntryColumns, NodeColumns};
use pointsman_store::expand_sql;
use rusqlite::Connection;

use crate::error::TableResult;
use crate::tables::queries::{query_all, read_columns};

/// The maximum number of nodes that are listed.
const MAX_LISTED_NODES: i64 = 100;

pub(crate) fn list_nodes(conn: &Connection) -> TableResult<Vec<NodeView>> {
    let sql = expand_sql!("SELECT node, count(*) FROM pointsman_task WHERE phase = :locked GROUP BY node");
    let running_counts: Vec<(NodeId, i64)> = query_all(conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let running_counts: HashMap<_, _> = running_counts.into_iter().collect();
    let sql = expand_sql!("SELECT :node_columns FROM pointsman_node ORDER BY gone, id DESC LIMIT ?1");
    query_all(conn, sql, [MAX_LISTED_NODES], |row| {
        let columns: NodeColumns<'_> = read_columns(row)?;
        let running_count = running_counts.get(&columns.id).copied().unwrap_or(0);
        columns.into_view(running_count.max(0) as u64)
    })
}

pub(crate) fn list_audit_entries(
    conn: &Connection,
    before: Option<i64>,
    limit: usize,
) -> TableResult<Vec<(i64, AuditEntry)>> {
    let sql = expand_sql!(
        "SELECT :audit_entry_columns FROM pointsman_audit_entry WHERE n < ?1 ORDER BY n DESC LIMIT ?2"
    );
    query_all(conn, sql, (before.unwrap_or(i64::MAX), limit as i64), |row| {
        let columns: AuditEntryColumns<'_> = read_columns(row)?;
        Ok((columns.n, columns.into_entry()))
    })
}
