//! The network policy of HTTP handlers.
//!
//! A URL in a configuration can lead into networks that its author must not reach: by an address in one of its many
//! spellings, or by a name that resolves to one. So the address itself is checked, in the two places where a connection
//! gets it: the literal in the URL (which the URL parser has already normalised) and the resolver. DNS rebinding does
//! not help, because the connection uses exactly the addresses that were checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// The non-public addresses that HTTP handlers may reach. The default allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkAccess {
    /// Whether 127.0.0.0/8 and ::1 may be reached.
    pub allows_loopback: bool,
    /// Destinations that are allowed although they are not public.
    pub allowed_destinations: Vec<AllowedDestination>,
}

/// A network or host that may be reached although it is not public: `10.1.0.0/16`, `fd00::7`, `db.internal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedDestination {
    /// All addresses of a network.
    Network(IpNet),
    /// A host name in lower case, whatever its address.
    Host(String),
}

/// The error of a text that is not an [`AllowedDestination`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address, nor a network like 10.0.0.0/8, nor a host name")]
pub struct BadAllowedDestination(String);

/// The error of a request to an address that may not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForbiddenAddressError {
    host: String,
    address: IpAddr,
    address_kind: &'static str,
}

impl fmt::Display for ForbiddenAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address, address_kind: kind } = self;
        let setting = if *kind == LOOPBACK_KIND { "network.allow_loopback" } else { "network.allow" };
        match host.trim_matches(['[', ']']) {
            host if host == address.to_string() => write!(f, "{address} may not be reached: it is {kind}")?,
            host => write!(f, "{host} may not be reached: its address {address} is {kind}")?,
        }
        write!(f, "; the setting `{setting}` can allow it")
    }
}

impl std::error::Error for ForbiddenAddressError {}

impl NetworkAccess {
    /// Checks a URL whose host is an address. Names are checked when they are resolved.
    pub fn check_url_address(&self, url: &Url) -> Result<(), ForbiddenAddressError> {
        match url.host() {
            Some(Host::Ipv4(address)) => {
                self.check_address(url.host_str().unwrap_or_default(), address.into())
            }
            Some(Host::Ipv6(address)) => {
                self.check_address(url.host_str().unwrap_or_default(), address.into())
            }
            Some(Host::Domain(_)) | None => Ok(()),
        }
    }

    pub(super) fn check_address(&self, host: &str, address: IpAddr) -> Result<(), ForbiddenAddressError> {
        let address = address.to_canonical();
        match special_address_kind(address) {
            None => Ok(()),
            Some(LOOPBACK_KIND) if self.allows_loopback => Ok(()),
            Some(_) if self.is_explicitly_allowed(host, address) => Ok(()),
            Some(kind) => Err(ForbiddenAddressError { host: host.into(), address, address_kind: kind }),
        }
    }

    fn is_explicitly_allowed(&self, host: &str, canonical: IpAddr) -> bool {
        self.allowed_destinations.iter().any(|allowed| match allowed {
            AllowedDestination::Network(network) => network.contains(&canonical),
            AllowedDestination::Host(name) => name.eq_ignore_ascii_case(host.trim_end_matches('.')),
        })
    }
}

impl FromStr for AllowedDestination {
    type Err = BadAllowedDestination;
    fn from_str(text: &str) -> Result<Self, BadAllowedDestination> {
        let invalid = || BadAllowedDestination(text.into());
        if let Some((address, prefix_length)) = text.split_once('/') {
            // Not parsed by `IpNet`, which reads the octal 010.0.0.0 as 10.0.0.0.
            let (address, prefix_length) =
                (address.parse().map_err(|_| invalid())?, prefix_length.parse().map_err(|_| invalid())?);
            return IpNet::new(address, prefix_length).map(Self::Network).map_err(|_| invalid());
        }
        // An IPv6 address has no brackets here, unlike the host of a URL.
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self::Network(IpAddr::from(address).into()));
        }
        Ok(match Host::parse(text).map_err(|_| invalid())? {
            Host::Domain(name) => Self::Host(name.trim_end_matches('.').to_owned()),
            Host::Ipv4(address) => Self::Network(IpAddr::from(address).into()),
            Host::Ipv6(address) => Self::Network(IpAddr::from(address).into()),
        })
    }
}

impl fmt::Display for AllowedDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Host(name) => f.write_str(name),
        }
    }
}

const LOOPBACK_KIND: &str = "a loopback address";
const PRIVATE_KIND: &str = "a private address";
const LINK_LOCAL_KIND: &str = "a link-local address";
const MULTICAST_KIND: &str = "a multicast address";
const DOCUMENTATION_KIND: &str = "an address for documentation only";
const RESERVED_KIND: &str = "a reserved address";
const TUNNEL_KIND: &str = "an address of a tunnel";
const UNSPECIFIED_KIND: &str = "an unspecified address";

const fn ipv4_net([a, b, c, d]: [u8; 4], prefix_length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_length)
}

/// An IPv6 network from the first two groups of its address.
const fn ipv6_net(first: u16, second: u16, prefix_length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), prefix_length)
}

/// The special networks of IPv4.
const SPECIAL_IPV4_NETWORKS: &[(Ipv4Net, &str)] = &[
    (ipv4_net([0, 0, 0, 0], 8), UNSPECIFIED_KIND),
    (ipv4_net([10, 0, 0, 0], 8), PRIVATE_KIND),
    (ipv4_net([100, 64, 0, 0], 10), "an address of a carrier's own network"),
    (ipv4_net([127, 0, 0, 0], 8), LOOPBACK_KIND),
    (ipv4_net([169, 254, 0, 0], 16), LINK_LOCAL_KIND),
    (ipv4_net([172, 16, 0, 0], 12), PRIVATE_KIND),
    (ipv4_net([192, 0, 0, 0], 24), RESERVED_KIND),
    (ipv4_net([192, 0, 2, 0], 24), DOCUMENTATION_KIND),
    (ipv4_net([192, 88, 99, 0], 24), TUNNEL_KIND),
    (ipv4_net([192, 168, 0, 0], 16), PRIVATE_KIND),
    (ipv4_net([198, 18, 0, 0], 15), RESERVED_KIND),
    (ipv4_net([198, 51, 100, 0], 24), DOCUMENTATION_KIND),
    (ipv4_net([203, 0, 113, 0], 24), DOCUMENTATION_KIND),
    (ipv4_net([224, 0, 0, 0], 4), MULTICAST_KIND),
    (ipv4_net([240, 0, 0, 0], 4), RESERVED_KIND),
];

/// The only network of IPv6 that has public addresses.
const GLOBAL_UNICAST: Ipv6Net = ipv6_net(0x2000, 0, 3);

/// IPv4 addresses behind NAT64.
const NAT64: Ipv6Net = ipv6_net(0x64, 0xff9b, 96);

/// The special networks of IPv6, the narrower before the wider.
const SPECIAL_IPV6_NETWORKS: &[(Ipv6Net, &str)] = &[
    (ipv6_net(0, 0, 128), UNSPECIFIED_KIND),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), LOOPBACK_KIND),
    (ipv6_net(0x2001, 0xdb8, 32), DOCUMENTATION_KIND),
    (ipv6_net(0x2001, 0, 23), RESERVED_KIND),
    (ipv6_net(0x2002, 0, 16), TUNNEL_KIND),
    (ipv6_net(0x3fff, 0, 20), DOCUMENTATION_KIND),
    (ipv6_net(0xfc00, 0, 7), PRIVATE_KIND),
    (ipv6_net(0xfe80, 0, 10), LINK_LOCAL_KIND),
    (ipv6_net(0xfec0, 0, 10), PRIVATE_KIND),
    (ipv6_net(0xff00, 0, 8), MULTICAST_KIND),
];

/// The kind of a special address; `None` if it is a public one.
fn special_address_kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_ipv4_kind(address),
        IpAddr::V6(address) if NAT64.contains(&address) => {
            special_ipv4_kind(Ipv4Addr::from_bits(address.to_bits() as u32))
        }
        IpAddr::V6(address) => {
            let special = SPECIAL_IPV6_NETWORKS.iter().find(|(network, _)| network.contains(&address));
            let outside = (!GLOBAL_UNICAST.contains(&address)).then_some(RESERVED_KIND);
            special.map(|(_, kind)| *kind).or(outside)
        }
    }
}

fn special_ipv4_kind(address: Ipv4Addr) -> Option<&'static str> {
    let special = SPECIAL_IPV4_NETWORKS.iter().find(|(network, _)| network.contains(&address));
    special.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_url(access: &NetworkAccess, url: &str) -> Result<(), ForbiddenAddressError> {
        access.check_url_address(&url.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_are_allowed_by_default() {
        let default_access = NetworkAccess::default();
        for allowed_host in
            ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2606:4700::1111]", "[64:ff9b::808:808]"]
        {
            assert_eq!(
                check_url(&default_access, &format!("http://{allowed_host}/")),
                Ok(()),
                "{allowed_host}"
            );
        }
        for refused_host in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::10.0.0.1]",
            "[64:ff9b:1::1]",
            "[2001:db8::1]",
            "[2001::1]",
            "[2002:a00:1::]",
            "[fc00::1]",
            "[fd12::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[100::1]",
        ] {
            assert!(
                check_url(&default_access, &format!("http://{refused_host}/")).is_err(),
                "{refused_host}"
            );
        }
    }

    #[test]
    fn unusual_spellings_of_an_address_are_recognised() {
        let default_access = NetworkAccess::default();
        for spelling in
            ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0x7f000001", "①②⑦.0.0.1", "127.0.0.1."]
        {
            let refused = check_url(&default_access, &format!("http://{spelling}/")).expect_err(spelling);
            assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
        }
    }

    #[test]
    fn allowed_networks_can_be_reached() {
        let access = NetworkAccess {
            allows_loopback: true,
            allowed_destinations: vec!["10.1.0.0/16".parse().unwrap(), "fd00::7".parse().unwrap()],
        };
        for allowed_host in
            ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.1.2.3", "[::ffff:10.1.2.3]", "[fd00::7]"]
        {
            assert_eq!(check_url(&access, &format!("http://{allowed_host}/")), Ok(()), "{allowed_host}");
        }
        for refused_host in ["10.2.0.1", "[fd00::8]", "192.168.0.1"] {
            assert!(check_url(&access, &format!("http://{refused_host}/")).is_err(), "{refused_host}");
        }
    }

    #[test]
    fn a_host_is_allowed_by_name_whatever_its_address() {
        let access = NetworkAccess {
            allows_loopback: false,
            allowed_destinations: vec!["DB.Internal".parse().unwrap()],
        };
        let private = "10.0.0.1".parse().unwrap();
        assert!(access.check_address("db.internal", private).is_ok());
        assert!(access.check_address("db.internal.", private).is_ok());
        let refused = access.check_address("other.internal", private).unwrap_err().to_string();
        assert!(refused.contains("other.internal") && refused.contains("10.0.0.1"), "{refused}");
        assert!(refused.contains("network.allow"), "{refused}");
    }

    #[test]
    fn allowed_entries_are_addresses_networks_or_names() {
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("fd00::/8", "fd00::/8"),
            ("fd00::7", "fd00::7/128"),
            ("[fd00::7]", "fd00::7/128"),
            ("Host.Example", "host.example"),
            ("0.0.0.0/0", "0.0.0.0/0"),
        ] {
            assert_eq!(text.parse::<AllowedDestination>().unwrap().to_string(), expected);
        }
        for bad in ["", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "a b", "x/8", "010.0.0.0/8"] {
            assert!(bad.parse::<AllowedDestination>().is_err(), "{bad:?}");
        }
    }
}
