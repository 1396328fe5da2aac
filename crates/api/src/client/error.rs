//! Why a call failed.

use std::error::Error;

use crate::ProblemDetails;

/// Why a call returned no usable response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The request cannot be built: the server's URL, a segment of the path, or a header is invalid.
    #[error("{0}")]
    InvalidRequest(String),
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client")]
    ClientCreation(#[source] reqwest::Error),
    /// No response: no server listens there, or the connection broke.
    #[error("no answer from {url}")]
    Unreachable {
        /// The address of the server.
        url: String,
        /// Why no response was received.
        #[source]
        source: reqwest::Error,
    },
    /// A stream delivered nothing for so long, not even a keep-alive comment, that the connection must be dead.
    #[error("the stream from {url} timed out; reconnect to continue")]
    StreamTimeout {
        /// The address of the server.
        url: String,
    },
    /// The server responded with an error status.
    #[error("{}", describe_problem(.0))]
    ErrorResponse(Box<ProblemDetails>),
    /// The response is not one that this client understands.
    #[error("{url} did not respond as a Pointsman server does (check the URL and the server's version)")]
    InvalidResponse {
        /// The address of the server.
        url: String,
        /// The part of the response that this client does not understand.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ClientError {
    /// The HTTP status of an error response.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::ErrorResponse(problem) => Some(problem.status),
            Self::InvalidRequest(_)
            | Self::ClientCreation(_)
            | Self::Unreachable { .. }
            | Self::StreamTimeout { .. }
            | Self::InvalidResponse { .. } => None,
        }
    }

    /// Whether the same call may succeed later, unchanged.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::StreamTimeout { .. } => true,
            Self::ErrorResponse(problem) => matches!(problem.status, 429 | 502 | 503 | 504),
            Self::InvalidRequest(_) | Self::ClientCreation(_) | Self::InvalidResponse { .. } => false,
        }
    }
}

fn describe_problem(problem: &ProblemDetails) -> String {
    let text = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    match problem.pointer.as_ref().or(problem.parameter.as_ref()) {
        Some(location) => format!("{text} (at `{location}`; HTTP {})", problem.status),
        None => format!("{text} (HTTP {})", problem.status),
    }
}

/// Parses the body of an error response. A body that is not a problem document (a proxy's page) is described by the
/// response's status.
pub(super) fn parse_problem(status: reqwest::StatusCode, body: &[u8]) -> ProblemDetails {
    serde_json::from_slice(body).unwrap_or_else(|_| ProblemDetails {
        type_uri: "about:blank".into(),
        title: status.canonical_reason().unwrap_or("Refused").into(),
        status: status.as_u16(),
        detail: String::new(),
        parameter: None,
        pointer: None,
    })
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    fn error_text(status: StatusCode, body: &[u8]) -> String {
        ClientError::ErrorResponse(Box::new(parse_problem(status, body))).to_string()
    }

    #[test]
    fn error_text_names_the_parameter_at_fault() {
        let body = br#"{"type":"about:blank","title":"Malformed","status":400,"detail":"no number","parameter":"limit"}"#;
        assert_eq!(error_text(StatusCode::BAD_REQUEST, body), "no number (at `limit`; HTTP 400)");
    }

    #[test]
    fn body_that_is_not_a_problem_document_is_described_by_its_status() {
        assert_eq!(error_text(StatusCode::BAD_GATEWAY, b"<html>"), "Bad Gateway (HTTP 502)");
    }
}
