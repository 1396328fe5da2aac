//! Reads `server.limits`: how connections, streams and response memory are shared among clients.

use super::decode::{AllowedKeys, CheckedMap, read_byte_size, read_integer};
use super::fault::Findings;
use super::yaml::YamlNode;

pub(super) const SERVER_LIMIT_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "the server's limits",
    names: &[
        "anonymous",
        "per_address",
        "connections_per_client",
        "reserve",
        "streams_per_client",
        "response_memory",
        "response_memory_per_client",
    ],
    not_yet_supported: &[],
};

/// The largest accepted number of connections or streams. Larger numbers are taken for typing errors.
const MAX_LIMIT_VALUE: u64 = 1_000_000;

/// The smallest budget. A single response can have this size, and a smaller budget would refuse it even on an idle
/// server.
const MIN_RESPONSE_MEMORY: u64 = 16 << 20;
const MAX_RESPONSE_MEMORY: u64 = 1 << 40;

/// The maximum numbers of connections and streams and the maximum response memory, in total and per client. Numbers of
/// connections above `max_connections` have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of open connections that have not presented a valid token.
    pub anonymous_connections: usize,
    /// Maximum number of open connections from one address.
    pub connections_per_address: usize,
    /// Maximum number of open connections of one client, identified by its token. `None`: half of the connections
    /// outside the reserve.
    pub connections_per_client: Option<usize>,
    /// Number of connections, out of `max_connections`, that only health checks and producers get.
    pub reserved_connections: usize,
    /// Maximum number of open streams and long polls of one client, identified by its token.
    pub streams_per_client: usize,
    /// Maximum bytes of responses in memory that clients have not read yet.
    pub response_memory: u64,
    /// The maximum part of `response_memory` that one client can use, in bytes.
    pub response_memory_per_client: u64,
}

pub(super) fn read_server_limits(node: &YamlNode, findings: &mut Findings) -> Option<ServerLimits> {
    let fields = CheckedMap::from_node_with_known_keys(node, &SERVER_LIMIT_KEYS, findings)?;
    let connections_per_client = match fields.get("connections_per_client") {
        None => Some(None),
        Some(node) => {
            read_integer(node, findings, 1..=MAX_LIMIT_VALUE).map(|count| usize::try_from(count).ok())
        }
    };
    let mut count = |key: &str, least: u64| {
        let node = fields.get_required(key, SERVER_LIMIT_KEYS.described_thing, findings)?;
        let count = read_integer(node, findings, least..=MAX_LIMIT_VALUE)?;
        usize::try_from(count).ok()
    };
    let anonymous = count("anonymous", 1);
    let per_address = count("per_address", 1);
    let reserve = count("reserve", 0);
    let streams_per_client = count("streams_per_client", 1);
    let mut memory = |key: &str| {
        let node = fields.get_required(key, SERVER_LIMIT_KEYS.described_thing, findings)?;
        read_byte_size(node, findings, MIN_RESPONSE_MEMORY..=MAX_RESPONSE_MEMORY)
    };
    let (response_memory, per_client) = (memory("response_memory"), memory("response_memory_per_client"));
    Some(ServerLimits {
        anonymous_connections: anonymous?,
        connections_per_address: per_address?,
        connections_per_client: connections_per_client?,
        reserved_connections: reserve?,
        streams_per_client: streams_per_client?,
        response_memory: response_memory?,
        response_memory_per_client: per_client?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn server_limits_are_read_with_their_units() {
        let text = "{anonymous: 512, per_address: 8, reserve: 0, streams_per_client: 3, \
                    response_memory: 1GiB, response_memory_per_client: 16777216}";
        let want = ServerLimits {
            anonymous_connections: 512,
            connections_per_address: 8,
            connections_per_client: None,
            reserved_connections: 0,
            streams_per_client: 3,
            response_memory: 1 << 30,
            response_memory_per_client: 16 << 20,
        };
        assert_eq!(read_value_from_yaml(text, read_server_limits), Ok(want));
        let text = text.replace("reserve", "connections_per_client: 7, reserve");
        let want = ServerLimits { connections_per_client: Some(7), ..want };
        assert_eq!(read_value_from_yaml(&text, read_server_limits), Ok(want));
    }

    #[test]
    fn every_invalid_server_limit_is_reported() {
        let text = "{anonymous: 0, per_address: x, reserve: 2000000, streams_per_client: 0, \
                    response_memory: 1MiB, response_memory_per_client: 9MB}";
        assert_eq!(
            fault_messages(text, read_server_limits),
            [
                "0 is too small; the least is 1",
                "\"x\" is not a whole number",
                "2000000 is too large; the most is 1000000",
                "0 is too small; the least is 1",
                "1MiB is too small; the least is 16MiB",
                "\"9MB\" is not a size; write a number of bytes, or one like `64KiB`, `256MiB` or `1GiB`",
            ]
        );
    }
}
