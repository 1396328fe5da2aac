//! `network`: where HTTP handlers may go beside public addresses.

use pointsman_engine::handlers::http::{Allowed, NetworkAccess};

use super::decode::{Fields, Keys, boolean, items, parsed};
use super::fault::Findings;
use super::yaml::Node;

pub(super) const KEYS: Keys = Keys { of: "the network", known: &["allow", "allow_loopback"], later: &[] };

/// `local`: the server itself listens on loopback only. Its handlers may then call their own machine, unless
/// `allow_loopback` says otherwise.
pub(super) fn read(node: &Node, local: bool, findings: &mut Findings) -> Option<NetworkAccess> {
    let fields = Fields::open(node, &KEYS, findings)?;
    let allow_loopback = fields.or("allow_loopback", local, findings, boolean);
    let allow = match fields.get("allow") {
        Some(list) => items(list, "`allow`", findings)?,
        None => &[],
    };
    let allow = allow.iter().filter_map(|item| parsed(item, findings, str::parse::<Allowed>)).collect();
    Some(NetworkAccess { allow_loopback, allow })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    #[test]
    fn loopback_follows_the_server_unless_it_is_said() {
        for (text, local, open) in
            [("{}", true, true), ("{}", false, false), ("allow_loopback: false", true, false)]
        {
            let access = read_text(text, |n, f| read(n, local, f)).unwrap();
            assert_eq!(access.allow_loopback, open, "{text} {local}");
        }
    }

    #[test]
    fn what_is_allowed_are_addresses_networks_and_names() {
        let access =
            read_text("allow: [10.0.0.0/8, 'fd00::7', db.internal]", |n, f| read(n, false, f)).unwrap();
        assert_eq!(access.allow.len(), 3);
        assert_eq!(
            faults_of("allow: [10.0.0.0/99]", |n, f| read(n, false, f)),
            ["\"10.0.0.0/99\" is neither an address, nor a network like 10.0.0.0/8, nor a host name"]
        );
    }
}
