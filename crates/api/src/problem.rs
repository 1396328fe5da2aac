//! The body of an error response (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a [`ProblemDetails`].
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// Why a request failed, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemDetails {
    /// A URI that names the kind of problem.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The kind of problem, in words.
    pub title: String,
    /// The HTTP status, repeated.
    pub status: u16,
    /// What went wrong with this request, and what to do.
    pub detail: String,
    /// The parameter or header at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// A JSON pointer (RFC 6901) to the member of the body that is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}
