//! Nodes.

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeCapabilities, NodeId, NodeView};
use pointsman_store::columns::NodeColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::tables::NodeTable;

use super::RedisTables;
use crate::cells::{LeadingCell, decode_row, encode_row};
use crate::keys::Table;

impl NodeTable for RedisTables {
    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        self.overlay.read_recent_nodes()
    }

    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>> {
        let nodes = self.overlay.read_all_nodes(false)?;
        Ok(nodes.iter().filter(|node| !node.has_left_or_died).map(|node| node.id).collect())
    }

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        let id = self.assign_next_number(|store_state| &mut store_state.last_node_id);
        self.caller_time.record_reported_time(now);
        self.write_node(&NodeColumns {
            id,
            name: name.into(),
            joined: now.micros(),
            last_heartbeat: now.micros(),
            gone: false,
            capabilities: "".into(),
        });
        self.mark_registry_changed();
        Ok(id)
    }

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> {
        let capabilities = serde_json::to_string(capabilities).map_err(Fault::damaged)?;
        self.update_node(node, |node| node.capabilities = capabilities.into()).map(drop)
    }

    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        self.caller_time.record_reported_time(now);
        self.update_node(node, |node| {
            if !node.gone {
                node.last_heartbeat = now.micros();
            }
        })
    }

    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()> {
        self.update_node(node, |node| node.gone = true)?;
        self.mark_registry_changed();
        Ok(())
    }

    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        let nodes = self.overlay.read_all_nodes(false)?;
        let silent = nodes.iter().filter(|node| !node.has_left_or_died && node.last_heartbeat_at < before);
        Ok(silent.map(|node| node.id).collect())
    }
}

impl RedisTables {
    pub(crate) fn write_node(&mut self, node: &NodeColumns<'_>) {
        self.overlay.write_row(Table::Nodes, node.id.to_string(), encode_row(node));
    }

    /// Changes a stored node; returns whether it was present (not gone) before.
    fn update_node(&mut self, id: NodeId, change: impl FnOnce(&mut NodeColumns<'_>)) -> TableResult<bool> {
        let Some(row) = self.overlay.read_row(Table::Nodes, id.to_string())? else { return Ok(false) };
        let mut node: NodeColumns<'_> = decode_row(&[LeadingCell::Number(id)], &row)?;
        let was_present = !node.gone;
        change(&mut node);
        self.write_node(&node);
        Ok(was_present)
    }
}
