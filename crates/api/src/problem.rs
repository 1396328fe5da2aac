//! What an error looks like (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a [`Problem`].
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not granted, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI that names the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    /// The HTTP status, again.
    pub status: u16,
    pub detail: String,
    /// The parameter or header at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// A JSON pointer (RFC 6901) into the body to what is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}
