//! Reads the section `network`: the addresses that HTTP handlers may call besides public ones.

use pointsman_engine::handlers::http::{AllowedDestination, NetworkAccess};

use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_boolean, read_list_items};
use super::fault::Findings;
use super::yaml::YamlNode;

pub(super) const NETWORK_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "the network",
    names: &["allow", "allow_loopback"],
    not_yet_supported: &[],
};

/// Reads the section. If the server listens on loopback only (`listens_on_loopback`), handlers may call loopback
/// addresses unless `allow_loopback` is false.
pub(super) fn read_network(
    node: &YamlNode,
    listens_on_loopback: bool,
    findings: &mut Findings,
) -> Option<NetworkAccess> {
    let fields = CheckedMap::from_node_with_known_keys(node, &NETWORK_KEYS, findings)?;
    let allow_loopback =
        fields.read_or_default("allow_loopback", listens_on_loopback, findings, read_boolean);
    let allow = match fields.get("allow") {
        Some(list) => read_list_items(list, "`allow`", findings)?,
        None => &[],
    };
    let allow = allow
        .iter()
        .filter_map(|item| parse_scalar(item, findings, str::parse::<AllowedDestination>))
        .collect();
    Some(NetworkAccess { allows_loopback: allow_loopback, allowed_destinations: allow })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn allow_loopback_defaults_to_whether_the_server_listens_on_loopback() {
        for (text, listens_on_loopback, allows_loopback) in
            [("{}", true, true), ("{}", false, false), ("allow_loopback: false", true, false)]
        {
            let access = read_value_from_yaml(text, |n, f| read_network(n, listens_on_loopback, f)).unwrap();
            assert_eq!(access.allows_loopback, allows_loopback, "{text} {listens_on_loopback}");
        }
    }

    #[test]
    fn network_allow_accepts_addresses_networks_and_host_names() {
        let access = read_value_from_yaml("allow: [10.0.0.0/8, 'fd00::7', db.internal]", |n, f| {
            read_network(n, false, f)
        })
        .unwrap();
        assert_eq!(access.allowed_destinations.len(), 3);
        assert_eq!(
            fault_messages("allow: [10.0.0.0/99]", |n, f| read_network(n, false, f)),
            ["\"10.0.0.0/99\" is neither an address, nor a network like 10.0.0.0/8, nor a host name"]
        );
    }
}
