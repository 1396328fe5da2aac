//! The health check.

use super::{Client, ClientResult};
use crate::HealthBody;

impl Client {
    /// Reads whether the server and its store work.
    pub async fn read_health(&self) -> ClientResult<HealthBody> {
        self.send_for_json(self.build_get_request(&["healthz"])?).await
    }
}
