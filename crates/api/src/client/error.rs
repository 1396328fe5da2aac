//! What can go wrong between a client and a server.

use crate::Problem;

/// Why a call gave no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address of the server, or something that was to become a part of a path, cannot be written as a URL.
    #[error("{0}")]
    Address(String),
    /// Nobody answered: no server there, or the connection broke.
    #[error("no answer from {url}")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    /// A stream brought nothing for so long, not even a sign of life, that the connection must be dead.
    #[error("{url} has fallen silent")]
    Silent { url: String },
    /// The server answered, and said no.
    #[error("{}", words(.0))]
    Refused(Box<Problem>),
    /// The answer is not one that this client understands.
    #[error("the answer of {url} is not one of Pointsman's: {why}")]
    Unreadable { url: String, why: String },
}

impl ClientError {
    /// The HTTP status, where there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(problem) => Some(problem.status),
            Self::Address(_) | Self::Unreachable { .. } | Self::Silent { .. } | Self::Unreadable { .. } => {
                None
            }
        }
    }

    /// Whether the same call may succeed later, without anything being changed about it.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } => true,
            Self::Refused(problem) => matches!(problem.status, 429 | 502 | 503 | 504),
            Self::Address(_) | Self::Unreadable { .. } => false,
        }
    }
}

fn words(problem: &Problem) -> String {
    let what = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    match problem.pointer.as_ref().or(problem.parameter.as_ref()) {
        Some(at) => format!("{what} (at `{at}`; HTTP {})", problem.status),
        None => format!("{what} (HTTP {})", problem.status),
    }
}

/// Reads a refused answer's body. One that is no problem document (a proxy's page) is told by its status.
pub(super) fn problem(status: reqwest::StatusCode, body: &[u8]) -> Problem {
    serde_json::from_slice(body).unwrap_or_else(|_| Problem {
        kind: "about:blank".into(),
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

    fn said(status: StatusCode, body: &[u8]) -> String {
        ClientError::Refused(Box::new(problem(status, body))).to_string()
    }

    #[test]
    fn a_problem_says_where_the_fault_is() {
        let body = br#"{"type":"about:blank","title":"Malformed","status":400,"detail":"no number","parameter":"limit"}"#;
        assert_eq!(said(StatusCode::BAD_REQUEST, body), "no number (at `limit`; HTTP 400)");
    }

    #[test]
    fn a_page_that_is_no_problem_is_told_by_its_status() {
        assert_eq!(said(StatusCode::BAD_GATEWAY, b"<html>"), "Bad Gateway (HTTP 502)");
    }
}
