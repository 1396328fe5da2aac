//! Nodes.

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeCapabilities, NodeId, NodeView};
use pointsman_store::tables::NodeTable;

use super::SqliteTables;
use super::queries::query_all;
use crate::error::{Fault, TableResult};
use crate::read_nodes;

impl NodeTable for SqliteTables {
    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        read_nodes::list_nodes(&self.conn)
    }

    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>> {
        query_all(&self.conn, "SELECT id FROM pointsman_node WHERE gone = 0", [], |row| Ok(row.get(0)?))
    }

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        let sql = "INSERT INTO pointsman_node (name, joined, last_heartbeat, gone) VALUES (?1, ?2, ?2, 0)";
        self.conn.execute(sql, (name, now.micros()))?;
        Ok(self.conn.last_insert_rowid())
    }

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> {
        let json = serde_json::to_string(capabilities).map_err(Fault::damaged)?;
        self.conn
            .prepare_cached("UPDATE pointsman_node SET capabilities = ?2 WHERE id = ?1")?
            .execute((node, json))?;
        Ok(())
    }

    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        let sql = "UPDATE pointsman_node SET last_heartbeat = ?2 WHERE id = ?1 AND gone = 0";
        Ok(self.conn.prepare_cached(sql)?.execute((node, now.micros()))? == 1)
    }

    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()> {
        self.conn.execute("UPDATE pointsman_node SET gone = 1 WHERE id = ?1", [node])?;
        Ok(())
    }

    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        let sql = "SELECT id FROM pointsman_node WHERE gone = 0 AND last_heartbeat < ?1";
        query_all(&self.conn, sql, [before.micros()], |row| Ok(row.get(0)?))
    }
}
