//! Nodes of the cluster.

use std::borrow::Cow;

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeCapabilities, NodeView};

use super::columns;
use crate::error::{Fault, TableResult};

columns! {
    /// The columns of a node.
    NodeColumns<'a> key(id) {
        id: i64,
        name: Cow<'a, str>,
        joined: i64,
        last_heartbeat: i64,
        /// Whether the node has left or was declared dead.
        gone: bool,
        /// The capabilities as JSON; empty if the node never reported any.
        capabilities: Cow<'a, str>,
    }
}

impl NodeColumns<'_> {
    /// Converts the columns to a view. The number of running tasks is not stored in a column.
    pub fn into_view(self, running_task_count: u64) -> TableResult<NodeView> {
        let capabilities = match &*self.capabilities {
            "" => NodeCapabilities::default(),
            json => serde_json::from_str(json).map_err(Fault::damaged)?,
        };
        Ok(NodeView {
            id: self.id,
            name: self.name.into(),
            joined_at: Timestamp::from_micros(self.joined),
            last_heartbeat_at: Timestamp::from_micros(self.last_heartbeat),
            has_left_or_died: self.gone,
            capabilities,
            running_task_count,
        })
    }
}
