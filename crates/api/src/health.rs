//! JSON bodies of the health check.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the server and its store work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthBody {
    /// `ok`, or `degraded` while its store does not respond.
    pub status: String,
    /// The version of the server.
    pub version: String,
    /// The state of the store, if it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreHealthBody>,
    /// Problems of a store that works: settings with which it could lose acknowledged data, or why emits are refused.
    /// Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Whether the server can reach its store and write to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreHealthBody {
    /// `sqlite`, `postgres` or `redis`.
    pub kind: String,
    /// Whether the store responded within a second.
    pub reachable: bool,
    /// Whether the last commit succeeded, and none has been under way for longer than ten seconds.
    #[serde(default = "default_writable")]
    pub writable: bool,
}

/// The value of `writable` in a response of an older server, which does not send it.
fn default_writable() -> bool {
    true
}
