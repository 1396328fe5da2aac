//! Fixtures of this folder's tests.

use crate::auth::{Caller, Role, hash};
use crate::config::{ServerLimits, TokenDef};

pub(crate) fn caller(name: &str) -> Caller {
    let token = TokenDef { name: name.into(), role: Role::Viewer, tenant: None, sha256: hash(name) };
    Caller::from(&token)
}

pub(crate) fn limits() -> ServerLimits {
    ServerLimits {
        anonymous: 1,
        per_address: 1,
        connections_per_client: None,
        reserve: 1,
        streams_per_client: 1,
        response_memory: 1 << 20,
        response_memory_per_client: 1 << 20,
    }
}
