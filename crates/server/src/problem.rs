//! Errors of calls: the status of each kind and its problem document (RFC 9457). The title is the standard reason
//! phrase.
//!
//! | status | when |
//! |---|---|
//! | 400 | the request is malformed: it would be wrong on any server, at any time |
//! | 401, 403 | no token or an unknown one; a token that may not do this |
//! | 404, 405 | not found; method not allowed |
//! | 408 | the body arrived too slowly |
//! | 409 | conflict with the current state |
//! | 413, 414, 415 | body or address too large; unsupported media type |
//! | 422 | well-formed, but not allowed |
//! | 429 | too many failed authentications; `Retry-After` says when to try again |
//! | 431 | the head of the request is too large |
//! | 500 | a fault of the server or of its store |
//! | 503 | overloaded or unavailable; `Retry-After` says when to try again |

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use pointsman_core::ErrorChain;
use pointsman_core::event_json_parser::JsonError;
use pointsman_core::store::{IdempotencyError, StoreError};
use pointsman_core::task::TaskCommandError;
use pointsman_engine::EmitError;

/// Value of `Retry-After` for a server that is unavailable.
const UNAVAILABLE_RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Maximum length of a detail, a parameter or a pointer in a problem. They may quote what the client sent, which may be
/// as long as a body. Longer parameters and pointers are left out, because a part of a pointer would point elsewhere.
const MAX_DETAIL_BYTES: usize = 2 << 10;

/// The detail of the problem if the store is unavailable: the request could not start, or the result of its commit was
/// lost.
const STORE_UNAVAILABLE_DETAIL: &str = "the store is not available; run `pointsman doctor` to find out why. If the request changes \
     something, it is not known whether the change is durable; with an idempotency key it can be repeated safely";

fn shorten_detail(mut text: String) -> String {
    if text.len() > MAX_DETAIL_BYTES {
        text.truncate(text.floor_char_boundary(MAX_DETAIL_BYTES));
        text.push('…');
    }
    text
}

/// The kind of a problem, which decides the HTTP status and the `type` of the problem document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProblemKind {
    Malformed,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    BodyTooSlow,
    Conflict,
    TooLarge,
    UriTooLong,
    UnsupportedMediaType,
    Unprocessable,
    TooManyRequests { retry_after: u32 },
    HeadTooLarge,
    InternalError,
    Unavailable,
}

impl ProblemKind {
    /// The status and the last part of the type's URI.
    fn status_and_slug(self) -> (StatusCode, &'static str) {
        match self {
            Self::Malformed => (StatusCode::BAD_REQUEST, "malformed"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed"),
            Self::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "too-slow"),
            Self::Conflict => (StatusCode::CONFLICT, "conflict"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            Self::UriTooLong => (StatusCode::URI_TOO_LONG, "address-too-long"),
            Self::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type"),
            Self::Unprocessable => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            Self::TooManyRequests { .. } => (StatusCode::TOO_MANY_REQUESTS, "too-many-requests"),
            Self::HeadTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head-too-large"),
            Self::InternalError => (StatusCode::INTERNAL_SERVER_ERROR, "broken"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        }
    }

    /// The header that belongs to the status.
    fn status_specific_header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Unauthorized => {
                Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"pointsman\"")))
            }
            Self::Unavailable => Some((header::RETRY_AFTER, UNAVAILABLE_RETRY_AFTER)),
            Self::TooManyRequests { retry_after } => Some((header::RETRY_AFTER, retry_after.into())),
            _ => None,
        }
    }
}

/// An error response: why a request was refused or failed.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: ProblemKind,
    detail: String,
    parameter: Option<String>,
    pointer: Option<String>,
}

impl Problem {
    fn new(kind: ProblemKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string(), parameter: None, pointer: None }
    }

    pub(crate) fn malformed(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Malformed, detail)
    }

    pub(crate) fn unauthorized(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Unauthorized, detail)
    }

    pub(crate) fn forbidden(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Forbidden, detail)
    }

    pub(crate) fn not_found(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::NotFound, detail)
    }

    pub(crate) fn method_not_allowed(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::MethodNotAllowed, detail)
    }

    pub(crate) fn body_too_slow(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::BodyTooSlow, detail)
    }

    pub(crate) fn conflict(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Conflict, detail)
    }

    pub(crate) fn too_large(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::TooLarge, detail)
    }

    pub(crate) fn uri_too_long(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::UriTooLong, detail)
    }

    pub(crate) fn unsupported_media_type(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::UnsupportedMediaType, detail)
    }

    pub(crate) fn unprocessable(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Unprocessable, detail)
    }

    pub(crate) fn too_many_requests(detail: impl fmt::Display, retry_after: u32) -> Self {
        Self::new(ProblemKind::TooManyRequests { retry_after }, detail)
    }

    pub(crate) fn head_too_large(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::HeadTooLarge, detail)
    }

    pub(crate) fn internal_error(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::InternalError, detail)
    }

    pub(crate) fn unavailable(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    /// Names the parameter or header at fault.
    pub(crate) fn with_parameter(mut self, name: impl Into<String>) -> Self {
        self.parameter = Some(name.into());
        self
    }

    /// Sets the JSON pointer to the part of the body at fault.
    pub(crate) fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Prefixes the JSON pointer, for a problem in a part of the body that is at `prefix`.
    pub(crate) fn with_pointer_prefix(mut self, prefix: &str) -> Self {
        self.pointer = self.pointer.map(|pointer| format!("{prefix}{pointer}"));
        self
    }
}

impl Problem {
    /// The status and the problem document as JSON.
    fn encode_document(self) -> (StatusCode, String) {
        let (status, slug) = self.kind.status_and_slug();
        let body = pointsman_api::ProblemDetails {
            type_uri: format!("urn:pointsman:problem:{slug}"),
            title: status.canonical_reason().unwrap_or_default().into(),
            status: status.as_u16(),
            detail: shorten_detail(self.detail),
            parameter: self.parameter.filter(|name| name.len() <= MAX_DETAIL_BYTES),
            pointer: self.pointer.filter(|pointer| pointer.len() <= MAX_DETAIL_BYTES),
        };
        (status, serde_json::to_string(&body).unwrap_or_default())
    }

    /// The complete HTTP response, for a connection whose request could not be parsed and that is closed after it.
    pub(crate) fn into_raw_response(self) -> String {
        let header = self.kind.status_specific_header();
        let (status, body) = self.encode_document();
        let (media, length) = (pointsman_api::problem::PROBLEM_MEDIA_TYPE, body.len());
        let mut response =
            format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n");
        if let Some((name, value)) = &header {
            response.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
        }
        response.push_str("connection: close\r\n\r\n");
        response + &body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let header = self.kind.status_specific_header();
        let (status, text) = self.encode_document();
        let media = [(header::CONTENT_TYPE, pointsman_api::problem::PROBLEM_MEDIA_TYPE)];
        let mut response = (status, media, text).into_response();
        response.headers_mut().extend(header);
        response
    }
}

/// Converts a fault in a JSON body to 400 with its pointer.
impl From<JsonError> for Problem {
    fn from(fault: JsonError) -> Self {
        Self::malformed(fault.detail).with_pointer(fault.pointer)
    }
}

/// Converts an error of the store to 500 or 503. Details of unavailable and damaged stores go to the log only, because
/// they may name files.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::debug!(error = %ErrorChain(&error), "request failed with 503: the store is not available");
                Self::unavailable(STORE_UNAVAILABLE_DETAIL)
            }
            StoreError::Full(_) => Self::unavailable(format!("{error}; nothing was changed")),
            StoreError::Closed => Self::unavailable("the server is stopping; nothing was changed"),
            StoreError::Damaged(_) => {
                tracing::error!(error = %ErrorChain(&error), "request failed with 500: the store is damaged; run `pointsman doctor`");
                Self::internal_error(
                    "the store is damaged; see the server's log, and run `pointsman doctor` for what to do",
                )
            }
        }
    }
}

/// Converts the refusal of an idempotency key that was used for another request.
impl From<IdempotencyError> for Problem {
    fn from(refused: IdempotencyError) -> Self {
        match refused {
            IdempotencyError::Conflict(_) => Self::conflict(refused).with_parameter("Idempotency-Key"),
        }
    }
}

impl From<EmitError> for Problem {
    fn from(error: EmitError) -> Self {
        match error {
            EmitError::IdempotencyKeyConflict(refused) => refused.into(),
            EmitError::Overloaded => Self::unavailable(EmitError::Overloaded),
            EmitError::NodeClockWrong(reason) => Self::unavailable(format!("{reason}; nothing was stored")),
            EmitError::Store(error) => error.into(),
        }
    }
}

impl From<TaskCommandError> for Problem {
    fn from(rejected: TaskCommandError) -> Self {
        match rejected {
            TaskCommandError::NoSuchTask => Self::not_found(rejected),
            TaskCommandError::WrongState(_)
            | TaskCommandError::StaleFence
            | TaskCommandError::EventExpired
            | TaskCommandError::IsOrderStep
            | TaskCommandError::CollectionBusy => Self::conflict(rejected),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn problems_truncate_long_details_and_omit_long_parameters_and_pointers() {
        let name = "ü".repeat(1 << 20);
        let problem = Problem::malformed(&name).with_parameter(&name).with_pointer(&name);
        let body = problem.into_response().into_body().collect().await.unwrap().to_bytes();
        let sent: pointsman_api::ProblemDetails = serde_json::from_slice(&body).unwrap();
        assert_eq!(sent.detail.len(), MAX_DETAIL_BYTES + '…'.len_utf8());
        assert_eq!((sent.parameter, sent.pointer), (None, None));
    }
}
