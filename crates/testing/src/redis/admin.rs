//! Runs commands on a Redis server over separate connections, and generates key prefixes for tests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, anyhow};
use percent_encoding::percent_decode_str;
use url::Url;
use uuid::Uuid;

use super::resp::{RedisConnection, RedisReply};

/// The port of a URL that names none.
const DEFAULT_PORT: u16 = 6379;

/// Access to a Redis server with all rights, no matter who started the server.
#[derive(Debug, Clone)]
pub struct RedisAdmin {
    url: Url,
    address: SocketAddr,
}

impl RedisAdmin {
    /// Administers the server at this URL, such as `redis://127.0.0.1:6379` or `redis://:password@127.0.0.1:6379`.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        let describe_error = || format!("`{url}` is not the URL of a Redis server");
        let url = Url::parse(url).with_context(describe_error)?;
        let addresses = url.socket_addrs(|| Some(DEFAULT_PORT)).with_context(describe_error)?;
        let address = addresses.first().copied().with_context(describe_error)?;
        Ok(Self { url, address })
    }

    pub(crate) fn for_address(address: SocketAddr, password: Option<&str>) -> anyhow::Result<Self> {
        let mut url = Url::parse(&format!("redis://{address}"))?;
        url.set_password(password).map_err(|()| anyhow!("`{url}` takes no password"))?;
        Ok(Self { url, address })
    }

    /// Returns access to the same server through another address, such as a proxy's.
    pub(crate) fn with_address(&self, address: SocketAddr) -> anyhow::Result<Self> {
        let mut url = self.url.clone();
        url.set_ip_host(address.ip()).map_err(|()| anyhow!("`{url}` takes no address"))?;
        url.set_port(Some(address.port())).map_err(|()| anyhow!("`{url}` takes no port"))?;
        Ok(Self { url, address })
    }

    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// Returns the URL of a store that uses this key prefix.
    pub fn url_with_prefix(&self, prefix: &str) -> String {
        let mut url = self.url.clone();
        url.set_path("/");
        url.set_query(Some(&format!("prefix={prefix}")));
        url.into()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs a command over a new connection.
    pub fn run_command<W: AsRef<[u8]>>(&self, arguments: &[W]) -> anyhow::Result<RedisReply> {
        self.connect()?.run_command(arguments)
    }

    /// Opens a connection for several commands.
    pub fn connect(&self) -> anyhow::Result<RedisConnection> {
        let mut connection = RedisConnection::open(self.address)?;
        if let Some(password) = self.url.password() {
            let arguments = [self.url.username(), password].map(|word| percent_decode_str(word).collect());
            let arguments = arguments.into_iter().filter(|word: &Vec<u8>| !word.is_empty());
            connection.run_command(&[b"AUTH".to_vec()].into_iter().chain(arguments).collect::<Vec<_>>())?;
        }
        Ok(connection)
    }
}

/// Returns a key prefix that no other test uses, for a test on a shared server.
pub fn unique_key_prefix() -> String {
    static NEXT_PREFIX_NUMBER: AtomicU64 = AtomicU64::new(1);
    let random = Uuid::new_v4().simple().to_string();
    format!("t{}-{}:", NEXT_PREFIX_NUMBER.fetch_add(1, Ordering::Relaxed), &random[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_carry_address_prefix_and_password() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7000));
        let open = RedisAdmin::for_address(address, None).unwrap();
        assert_eq!(open.url(), "redis://127.0.0.1:7000");
        assert_eq!(open.url_with_prefix("t1-a:"), "redis://127.0.0.1:7000/?prefix=t1-a:");
        let closed = RedisAdmin::for_address(address, Some("a b/c")).unwrap();
        assert_eq!(closed.url(), "redis://:a%20b%2Fc@127.0.0.1:7000");
        assert_eq!(RedisAdmin::new(&closed.url()).unwrap().address(), address);
        assert!(RedisAdmin::new("localhost").is_err());
    }
}
