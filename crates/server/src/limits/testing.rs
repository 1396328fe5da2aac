//! Fixtures of this folder's tests.

use crate::auth::{Caller, Role, hash_token};
use crate::config::{ServerLimits, TokenDef};

pub(crate) fn test_caller(name: &str) -> Caller {
    let token = TokenDef { name: name.into(), role: Role::Viewer, tenant: None, sha256: hash_token(name) };
    Caller::from(&token)
}

pub(crate) fn test_server_limits() -> ServerLimits {
    ServerLimits {
        anonymous_connections: 1,
        connections_per_address: 1,
        connections_per_client: None,
        reserved_connections: 1,
        streams_per_client: 1,
        response_memory: 1 << 20,
        response_memory_per_client: 1 << 20,
    }
}
