//! The health check.

use super::{Client, Result};
use crate::HealthBody;

impl Client {
    /// Reads whether the server and its store work.
    pub async fn read_health(&self) -> Result<HealthBody> {
        self.send_for_json(self.get_request(&["healthz"])?).await
    }
}
