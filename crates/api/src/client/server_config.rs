//! Calls about the configuration of the server.

use super::{Client, ClientResult};
use crate::ConfigBody;

impl Client {
    /// Reads the configuration of the process that responds, and the outcome of the reloads since its start.
    pub async fn read_server_config(&self) -> ClientResult<ConfigBody> {
        self.send_for_json(self.build_get_request(&["api", "v1", "config"])?).await
    }
}
