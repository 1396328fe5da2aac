//! `server`: how the HTTP side behaves.

use std::net::SocketAddr;
use std::time::Duration;

use super::decode::{Fields, Keys, duration, parsed, whole};
use super::fault::Findings;
use super::server_limits::{self, ServerLimits};
use super::yaml::Node;

pub(super) const KEYS: Keys =
    Keys { of: "the server", known: &["listen", "max_connections", "limits", "drain"], later: &[] };

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) listen: SocketAddr,
    pub(super) max_connections: usize,
    pub(super) limits: ServerLimits,
    pub(super) drain: Duration,
}

pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<Server> {
    let fields = Fields::open(node, &KEYS, findings)?;
    let listen = fields.need("listen", "the server", findings).and_then(|n| address(n, findings));
    let connections = fields
        .need("max_connections", "the server", findings)
        .and_then(|n| whole(n, findings, 1..=1_000_000));
    let limits = fields.need("limits", "the server", findings).and_then(|n| server_limits::read(n, findings));
    let drain =
        fields.need("drain", "the server", findings).and_then(|n| duration(n, findings, Duration::ZERO));
    Some(Server {
        listen: listen?,
        max_connections: usize::try_from(connections?).ok()?,
        limits: limits?,
        drain: drain?,
    })
}

fn address(node: &Node, findings: &mut Findings) -> Option<SocketAddr> {
    parsed(node, findings, |text| {
        text.parse::<SocketAddr>()
            .map_err(|_| format!("{text:?} is not an address with a port; write one like 127.0.0.1:7646"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    const LIMITS: &str = "{anonymous: 1, per_address: 1, reserve: 1, streams_per_client: 1, \
                          response_memory: 16MiB, response_memory_per_client: 16MiB}";

    #[test]
    fn a_server_listens_on_an_address_with_a_port() {
        let server = read_text(
            &format!("{{listen: '[::1]:0', max_connections: 10, drain: 5s, limits: {LIMITS}}}"),
            read,
        )
        .unwrap();
        assert_eq!(server.listen, "[::1]:0".parse().unwrap());
        assert_eq!(
            faults_of(
                &format!("{{listen: localhost, max_connections: 0, limits: {LIMITS}, drain: soon}}"),
                read
            ),
            [
                "\"localhost\" is not an address with a port; write one like 127.0.0.1:7646",
                "0 is too small; the least is 1",
                "\"soon\" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`",
            ]
        );
    }
}
