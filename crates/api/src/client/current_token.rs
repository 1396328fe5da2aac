//! Calls about the client's own token.

use super::{Client, ClientResult};
use crate::CurrentTokenBody;

impl Client {
    /// Reads the name, role and tenant of the token that this client sends.
    pub async fn read_current_token(&self) -> ClientResult<CurrentTokenBody> {
        self.send_for_json(self.build_get_request(&["api", "v1", "me"])?).await
    }
}
