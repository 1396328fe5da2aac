//! Reads the section `server`: the HTTP listener.

use std::net::SocketAddr;
use std::time::Duration;

use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_duration, read_integer};
use super::fault::Findings;
use super::server_limits::{self, ServerLimits};
use super::yaml::YamlNode;

pub(super) const SERVER_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "the server",
    names: &["listen", "max_connections", "limits", "drain"],
    not_yet_supported: &[],
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerSettings {
    pub(super) listen_address: SocketAddr,
    pub(super) max_connections: usize,
    pub(super) limits: ServerLimits,
    pub(super) drain_timeout: Duration,
}

pub(super) fn read_server_settings(node: &YamlNode, findings: &mut Findings) -> Option<ServerSettings> {
    let fields = CheckedMap::from_node_with_known_keys(node, &SERVER_KEYS, findings)?;
    let listen =
        fields.get_required("listen", "the server", findings).and_then(|n| read_listen_address(n, findings));
    let connections = fields
        .get_required("max_connections", "the server", findings)
        .and_then(|n| read_integer(n, findings, 1..=1_000_000));
    let limits = fields
        .get_required("limits", "the server", findings)
        .and_then(|n| server_limits::read_server_limits(n, findings));
    let drain = fields
        .get_required("drain", "the server", findings)
        .and_then(|n| read_duration(n, findings, Duration::ZERO));
    Some(ServerSettings {
        listen_address: listen?,
        max_connections: usize::try_from(connections?).ok()?,
        limits: limits?,
        drain_timeout: drain?,
    })
}

fn read_listen_address(node: &YamlNode, findings: &mut Findings) -> Option<SocketAddr> {
    parse_scalar(node, findings, |text| {
        text.parse::<SocketAddr>()
            .map_err(|_| format!("{text:?} is not an address with a port; write one like 127.0.0.1:7646"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    const LIMITS_YAML: &str = "{anonymous: 1, per_address: 1, reserve: 1, streams_per_client: 1, \
                          response_memory: 16MiB, response_memory_per_client: 16MiB}";

    #[test]
    fn listen_requires_an_address_with_a_port() {
        let server = read_value_from_yaml(
            &format!("{{listen: '[::1]:0', max_connections: 10, drain: 5s, limits: {LIMITS_YAML}}}"),
            read_server_settings,
        )
        .unwrap();
        assert_eq!(server.listen_address, "[::1]:0".parse().unwrap());
        assert_eq!(
            fault_messages(
                &format!("{{listen: localhost, max_connections: 0, limits: {LIMITS_YAML}, drain: soon}}"),
                read_server_settings
            ),
            [
                "\"localhost\" is not an address with a port; write one like 127.0.0.1:7646",
                "0 is too small; the least is 1",
                "\"soon\" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`",
            ]
        );
    }
}
