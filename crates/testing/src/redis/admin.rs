//! Spaces on a Redis, and what is asked of it on the side.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, anyhow};
use percent_encoding::percent_decode_str;
use url::Url;
use uuid::Uuid;

use super::resp::{RedisConnection, Reply};

/// Where a Redis listens if its URL does not say.
const PORT: u16 = 6379;

/// A server as one sees it who may do everything there, whoever started it.
#[derive(Debug, Clone)]
pub struct RedisAdmin {
    url: Url,
    address: SocketAddr,
}

impl RedisAdmin {
    /// The server at this URL, such as `redis://127.0.0.1:6379` or `redis://:password@127.0.0.1:6379`.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        let wrong = || format!("`{url}` is not the URL of a Redis");
        let url = Url::parse(url).with_context(wrong)?;
        let addresses = url.socket_addrs(|| Some(PORT)).with_context(wrong)?;
        let address = addresses.first().copied().with_context(wrong)?;
        Ok(Self { url, address })
    }

    pub(crate) fn at(address: SocketAddr, password: Option<&str>) -> anyhow::Result<Self> {
        let mut url = Url::parse(&format!("redis://{address}"))?;
        url.set_password(password).map_err(|()| anyhow!("`{url}` takes no password"))?;
        Ok(Self { url, address })
    }

    /// The same server by another address that leads to it.
    pub(crate) fn through(&self, address: SocketAddr) -> anyhow::Result<Self> {
        let mut url = self.url.clone();
        url.set_ip_host(address.ip()).map_err(|()| anyhow!("`{url}` takes no address"))?;
        url.set_port(Some(address.port())).map_err(|()| anyhow!("`{url}` takes no port"))?;
        Ok(Self { url, address })
    }

    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// The URL of what is under a prefix of its own.
    pub fn url_under(&self, prefix: &str) -> String {
        let mut url = self.url.clone();
        url.set_path("/");
        url.set_query(Some(&format!("prefix={prefix}")));
        url.into()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs a command over a connection of its own.
    pub fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> anyhow::Result<Reply> {
        self.connect()?.command(words)
    }

    /// A connection for several commands.
    pub fn connect(&self) -> anyhow::Result<RedisConnection> {
        let mut connection = RedisConnection::open(self.address)?;
        if let Some(password) = self.url.password() {
            let words = [self.url.username(), password].map(|word| percent_decode_str(word).collect());
            let words = words.into_iter().filter(|word: &Vec<u8>| !word.is_empty());
            connection.command(&[b"AUTH".to_vec()].into_iter().chain(words).collect::<Vec<_>>())?;
        }
        Ok(connection)
    }
}

/// A beginning of keys that nobody else has, for a test on a server that it shares with others.
pub fn fresh_prefix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let random = Uuid::new_v4().simple().to_string();
    format!("t{}-{}:", COUNT.fetch_add(1, Ordering::Relaxed), &random[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_what_is_needed_to_come_in() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7000));
        let open = RedisAdmin::at(address, None).unwrap();
        assert_eq!(open.url(), "redis://127.0.0.1:7000");
        assert_eq!(open.url_under("t1-a:"), "redis://127.0.0.1:7000/?prefix=t1-a:");
        let closed = RedisAdmin::at(address, Some("a b/c")).unwrap();
        assert_eq!(closed.url(), "redis://:a%20b%2Fc@127.0.0.1:7000");
        assert_eq!(RedisAdmin::new(&closed.url()).unwrap().address(), address);
        assert!(RedisAdmin::new("localhost").is_err());
    }
}
