//! The resolver of HTTP handlers, which applies their network policy.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::network_access::NetworkAccess;

/// Resolves host names as the system does, and returns only the addresses that may be reached.
#[derive(Debug)]
pub(super) struct AccessCheckingResolver {
    network_access: NetworkAccess,
}

impl AccessCheckingResolver {
    pub(super) fn new(network_access: NetworkAccess) -> Self {
        Self { network_access }
    }
}

impl Resolve for AccessCheckingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let network_access = self.network_access.clone();
        Box::pin(async move {
            let host = name.as_str();
            let resolved_addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in resolved_addresses {
                match network_access.check_address(host, address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(error) => refused = Some(error),
                }
            }
            match refused {
                Some(error) if allowed.is_empty() => Err(error.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
