//! The table of nodes.

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeCapabilities, NodeId, NodeView};

use crate::error::TableResult;

/// Nodes of the cluster.
pub trait NodeTable {
    /// Lists live nodes and the latest former ones, newest first.
    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>>;

    /// Lists nodes that have joined and have neither left nor been declared gone.
    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>>;

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId>;

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()>;

    /// Records a heartbeat; returns `false` if the node has been declared gone.
    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool>;

    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()>;

    /// Lists live nodes that sent their last heartbeat before `before`.
    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>>;
}
