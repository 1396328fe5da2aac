//! `server.limits`: how connections, streams and the memory of answers are shared among clients.

use super::decode::{Fields, Keys, bytes, whole};
use super::fault::Findings;
use super::yaml::Node;

pub(super) const KEYS: Keys = Keys {
    of: "the server's limits",
    known: &[
        "anonymous",
        "per_address",
        "connections_per_client",
        "reserve",
        "streams_per_client",
        "response_memory",
        "response_memory_per_client",
    ],
    later: &[],
};

/// Counts beyond this are typing errors.
const MAX_COUNT: u64 = 1_000_000;

/// An answer to one request can be this large, so that a smaller budget would refuse it even on an idle server.
const MIN_ANSWER_MEMORY: u64 = 16 << 20;
const MAX_ANSWER_MEMORY: u64 = 1 << 40;

/// The shares of connections, streams and answer memory. Shares of connections larger than `max_connections` have no
/// effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Open connections that have not presented a valid token.
    pub anonymous: usize,
    /// Open connections from one address.
    pub per_address: usize,
    /// Open connections of one client, who is known by its token. Nothing: half of those that are not the reserve.
    pub connections_per_client: Option<usize>,
    /// Connections, out of `max_connections`, that only health checks and producers get.
    pub reserve: usize,
    /// Open streams and long polls of one client, who is known by its token.
    pub streams_per_client: usize,
    /// Bytes of answers that are held in memory until clients have read them.
    pub response_memory: u64,
    /// The part of `response_memory` that one client can use.
    pub response_memory_per_client: u64,
}

pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<ServerLimits> {
    let fields = Fields::open(node, &KEYS, findings)?;
    let connections_per_client = match fields.get("connections_per_client") {
        None => Some(None),
        Some(node) => whole(node, findings, 1..=MAX_COUNT).map(|count| usize::try_from(count).ok()),
    };
    let mut count = |key: &str, least: u64| {
        let node = fields.need(key, KEYS.of, findings)?;
        let count = whole(node, findings, least..=MAX_COUNT)?;
        usize::try_from(count).ok()
    };
    let anonymous = count("anonymous", 1);
    let per_address = count("per_address", 1);
    let reserve = count("reserve", 0);
    let streams_per_client = count("streams_per_client", 1);
    let mut memory = |key: &str| {
        let node = fields.need(key, KEYS.of, findings)?;
        bytes(node, findings, MIN_ANSWER_MEMORY..=MAX_ANSWER_MEMORY)
    };
    let (response_memory, per_token) = (memory("response_memory"), memory("response_memory_per_client"));
    Some(ServerLimits {
        anonymous: anonymous?,
        per_address: per_address?,
        connections_per_client: connections_per_client?,
        reserve: reserve?,
        streams_per_client: streams_per_client?,
        response_memory: response_memory?,
        response_memory_per_client: per_token?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    #[test]
    fn limits_are_read_with_their_units() {
        let text = "{anonymous: 512, per_address: 8, reserve: 0, streams_per_client: 3, \
                    response_memory: 1GiB, response_memory_per_client: 16777216}";
        let want = ServerLimits {
            anonymous: 512,
            per_address: 8,
            connections_per_client: None,
            reserve: 0,
            streams_per_client: 3,
            response_memory: 1 << 30,
            response_memory_per_client: 16 << 20,
        };
        assert_eq!(read_text(text, read), Ok(want));
        let text = text.replace("reserve", "connections_per_client: 7, reserve");
        let want = ServerLimits { connections_per_client: Some(7), ..want };
        assert_eq!(read_text(&text, read), Ok(want));
    }

    #[test]
    fn every_wrong_limit_is_reported() {
        let text = "{anonymous: 0, per_address: x, reserve: 2000000, streams_per_client: 0, \
                    response_memory: 1MiB, response_memory_per_client: 9MB}";
        assert_eq!(
            faults_of(text, read),
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
