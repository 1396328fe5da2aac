//! Whose token a request carries, found out once for each request.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{Caller, Tokens};

/// What the token of a request says of its sender.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// There is none.
    Anonymous,
    /// It is not one of the accepted ones.
    UnknownToken,
    Known(Caller),
}

impl Identity {
    pub(crate) fn of(headers: &HeaderMap, tokens: &Tokens) -> Self {
        match presented(headers) {
            None => Self::Anonymous,
            Some(token) => tokens.caller(token).map_or(Self::UnknownToken, Self::Known),
        }
    }

    /// Whether the token is accepted; nothing if there is none.
    pub(crate) fn is_valid(&self) -> Option<bool> {
        match self {
            Self::Anonymous => None,
            Self::UnknownToken => Some(false),
            Self::Known(_) => Some(true),
        }
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Anonymous | Self::UnknownToken => None,
            Self::Known(caller) => Some(caller),
        }
    }
}

fn presented(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    headers.get("x-admin-token")?.to_str().ok()
}
