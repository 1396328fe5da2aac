//! The HTTP clients of this process: one for each network policy, shared by all handlers that have it, so that
//! connections are pooled and certificates are loaded once.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pointsman_core::ErrorChain;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::network_access::NetworkAccess;
use super::resolver::AccessCheckingResolver;

/// A target that does not accept the connection within this time counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// An HTTP client that all handlers with the same network policy share. It lives as long as one of them uses it.
#[derive(Debug)]
pub(super) struct SharedClient {
    network_access: NetworkAccess,
    client: Client,
}

impl Deref for SharedClient {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

static SHARED_CLIENTS: Mutex<Vec<Weak<SharedClient>>> = Mutex::new(Vec::new());

/// Returns the client for this network policy, and builds it if no handler has it yet.
pub(super) fn find_or_build_client(network_access: &NetworkAccess) -> reqwest::Result<Arc<SharedClient>> {
    let mut clients = SHARED_CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    clients.retain(|client| client.strong_count() > 0);
    if let Some(found) =
        clients.iter().filter_map(Weak::upgrade).find(|client| client.network_access == *network_access)
    {
        return Ok(found);
    }
    let shared = Arc::new(SharedClient {
        network_access: network_access.clone(),
        client: build_client(network_access)?,
    });
    clients.push(Arc::downgrade(&shared));
    Ok(shared)
}

fn build_client(network_access: &NetworkAccess) -> reqwest::Result<Client> {
    // Fails if the program has already chosen a cryptography provider, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    client_builder(network_access).build().or_else(|error| {
        // A machine without any root certificates can still deliver to plain HTTP targets.
        tracing::warn!(
            error = %ErrorChain(&error),
            "cannot load root certificates; deliveries to HTTPS targets fail until the CA certificates of the system \
             are installed"
        );
        client_builder(network_access).tls_certs_only([]).build()
    })
}

fn client_builder(network_access: &NetworkAccess) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("pointsman/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .dns_resolver(Arc::new(AccessCheckingResolver::new(network_access.clone())))
}
