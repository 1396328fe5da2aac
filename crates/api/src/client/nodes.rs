//! Calls about the nodes of the cluster.

use super::{Client, ClientResult};
use crate::NodeList;

impl Client {
    /// Lists the nodes that are alive, and those that left or died last.
    pub async fn list_nodes(&self) -> ClientResult<NodeList> {
        self.send_for_json(self.build_get_request(&["api", "v1", "nodes"])?).await
    }
}
