//! Identifies the sender of a request by its token, once per request.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{AcceptedTokens, Caller};

/// The identity of a request's sender.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The request has no token.
    Anonymous,
    /// The token is not accepted.
    UnknownToken,
    Authenticated(Caller),
}

impl Identity {
    pub(crate) fn from_headers(headers: &HeaderMap, tokens: &AcceptedTokens) -> Self {
        match find_token_in_headers(headers) {
            None => Self::Anonymous,
            Some(token) => tokens.find_caller(token).map_or(Self::UnknownToken, Self::Authenticated),
        }
    }

    /// Whether the token is accepted; none if the request has no token.
    pub(crate) fn is_token_accepted(&self) -> Option<bool> {
        match self {
            Self::Anonymous => None,
            Self::UnknownToken => Some(false),
            Self::Authenticated(_) => Some(true),
        }
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Anonymous | Self::UnknownToken => None,
            Self::Authenticated(caller) => Some(caller),
        }
    }
}

fn find_token_in_headers(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    headers.get("x-admin-token")?.to_str().ok()
}
