//! JSON body about the token of a request.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The token that a request was sent with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CurrentTokenBody {
    /// The name of the token.
    pub name: String,
    /// `viewer`, `producer`, `worker`, `operator` or `admin`.
    pub role: String,
    /// The only tenant it may access; null if it is not bound to one.
    pub tenant: Option<String>,
}
