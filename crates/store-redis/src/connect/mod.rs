//! Endpoints of Redis, and connecting to them.
//!
//! All keys of the store are in one slot, so that one server has them: the server of the URL, the master that
//! sentinels name, or the cluster node that owns the slot. Connecting finds this server (`resolve.rs`) and checks that
//! it is suitable (`handshake.rs`).

mod handshake;
mod redis_cli;
mod resolve;
mod slot;
mod tls;
mod url;

use std::fmt;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Connection, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
};

pub(crate) use self::handshake::info_value;
pub(crate) use self::redis_cli::shell_quote;

use self::handshake::Handshake;
use self::tls::TlsSettings;
use crate::error::OpenError;

/// Client name of our connections in `CLIENT LIST`.
const CLIENT_NAME: &str = "pointsman";
/// Default response timeout. It is long, because it only has to end calls that would otherwise hang for ever.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// TCP keepalive: a server that vanished is detected after about a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// How to reach the Redis that has the store: the parsed URL. It is displayed without passwords.
#[derive(Clone)]
pub struct Endpoint {
    mode: DiscoveryMode,
    /// The server itself, or the sentinels or cluster nodes that know its address.
    hosts: Vec<ServerAddress>,
    login: Option<Login>,
    database: u32,
    key_prefix: String,
    /// Timeout for connecting to one host.
    connect_timeout: Duration,
    tls: Option<TlsSettings>,
}

/// How the server that has the store's keys is found.
#[derive(Clone)]
enum DiscoveryMode {
    /// The URL names the server itself.
    Single,
    /// Sentinels return the address of the named master.
    Sentinel { master: String, login: Option<Login> },
    /// The cluster nodes of the URL know which node owns the slot of the keys.
    Cluster,
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    host: String,
    port: u16,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Credentials for a server or for the sentinels.
#[derive(Clone)]
struct Login {
    /// `None` means the server's default user.
    user: Option<String>,
    password: String,
    password_source: PasswordSource,
}

/// Source of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PasswordSource {
    Url,
    Environment,
}

impl Endpoint {
    /// Parses a URL: `redis://`, `redis+sentinel://` or `redis+cluster://`, each also with `rediss` for TLS.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        url::parse_url(url, &environment)
    }

    /// Opens a blocking connection. Its timeout is `RESPONSE_TIMEOUT` unless the caller sets another.
    #[doc(hidden)]
    pub fn connect_blocking(&self) -> Result<Connection, OpenError> {
        let (server, connection) = self.find_and_connect()?;
        let configured = connection
            .set_read_timeout(Some(RESPONSE_TIMEOUT))
            .and_then(|()| connection.set_write_timeout(Some(RESPONSE_TIMEOUT)));
        configured.map_err(|error| self.connection_error(&server, &error))?;
        Ok(connection)
    }

    /// Opens a multiplexed connection.
    #[doc(hidden)]
    pub async fn connect(&self) -> Result<MultiplexedConnection, OpenError> {
        let master = self.resolve_async().await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(Some(self.connect_timeout));
        let client = self.build_client(&master, RedisConnectionInfo::default().set_skip_set_lib_name())?;
        let opened = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = opened.map_err(|error| self.connection_error(&master, &error))?;
        let handshake = Handshake::new(self, &master, self.login.as_ref());
        handshake.check_login_reply(handshake.login_or_ping_command().query_async(&mut connection).await)?;
        handshake.check_server(handshake.inspect_and_setup_commands().query_async(&mut connection).await)?;
        connection.set_response_timeout(RESPONSE_TIMEOUT);
        Ok(connection)
    }

    /// Opens a connection for subscriptions.
    #[doc(hidden)]
    pub async fn connect_for_listening(&self) -> Result<PubSub, OpenError> {
        let master = self.resolve_async().await?;
        let mut info = RedisConnectionInfo::default().set_lib_name(CLIENT_NAME, env!("CARGO_PKG_VERSION"));
        if let Some(login) = &self.login {
            info = info.set_password(&login.password);
            info = login.user.iter().fold(info, |info, user| info.set_username(user));
        }
        let client = self.build_client(&master, info.set_db(self.database.into()))?;
        match tokio::time::timeout(self.connect_timeout, client.get_async_pubsub()).await {
            Ok(opened) => opened.map_err(|error| self.connection_error(&master, &error)),
            Err(_) => Err(self.timeout_error(&master)),
        }
    }

    /// Resolves the server without blocking the async runtime.
    async fn resolve_async(&self) -> Result<ServerAddress, OpenError> {
        if let (DiscoveryMode::Single, Some(host)) = (&self.mode, self.hosts.first()) {
            return Ok(host.clone());
        }
        let endpoint = self.clone();
        let resolved = tokio::task::spawn_blocking(move || endpoint.resolve()).await;
        resolved.map_err(|error| OpenError::OpenFailed {
            address: self.display_location(),
            source: error.into(),
        })?
    }

    fn build_client(&self, address: &ServerAddress, info: RedisConnectionInfo) -> Result<Client, OpenError> {
        let tcp_or_tls = match &self.tls {
            Some(tls) => tls.connection_address(address),
            None => ConnectionAddr::Tcp(address.host.clone(), address.port),
        };
        let info = tcp_or_tls
            .into_connection_info()
            .map(|address| address.set_redis_settings(info).set_tcp_settings(tcp_settings()));
        let client = info.and_then(|info| match &self.tls {
            Some(tls) => tls.build_client(info),
            None => Client::open(info),
        });
        client.map_err(|error| self.connection_error(address, &error))
    }

    /// Converts an error of the driver into one that says what an operator can do.
    fn connection_error(&self, address: &ServerAddress, error: &redis::RedisError) -> OpenError {
        Handshake::new(self, address, self.login.as_ref()).open_error_from(error)
    }

    fn timeout_error(&self, address: &ServerAddress) -> OpenError {
        // A server without TLS takes the TLS handshake for the begin of a command and waits for the rest.
        let hint = match self.is_encrypted() {
            true => " (if it does not use TLS, begin the URL with redis)",
            false => "",
        };
        let reason = format!("it does not answer within {} s{hint}", self.connect_timeout.as_secs());
        OpenError::Unreachable { address: address.to_string(), reason }
    }

    /// Returns the prefix of all keys of the store.
    pub(crate) fn key_prefix(&self) -> &str {
        &self.key_prefix
    }

    pub(crate) fn database(&self) -> u32 {
        self.database
    }

    /// Describes how the server is found.
    pub(crate) fn describe_discovery_mode(&self) -> &'static str {
        match self.mode {
            DiscoveryMode::Single => "a single server",
            DiscoveryMode::Sentinel { .. } => "the master that the sentinels name",
            DiscoveryMode::Cluster => "the node of the cluster that has our slot",
        }
    }

    /// Returns whether another server takes over when the one that has the keys fails.
    pub(crate) fn has_failover(&self) -> bool {
        match self.mode {
            DiscoveryMode::Single => false,
            DiscoveryMode::Sentinel { .. } | DiscoveryMode::Cluster => true,
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether the URL contains a password.
    pub fn has_password_in_url(&self) -> bool {
        let sentinel_login = match &self.mode {
            DiscoveryMode::Sentinel { login, .. } => login.as_ref(),
            DiscoveryMode::Single | DiscoveryMode::Cluster => None,
        };
        let logins = [self.login.as_ref(), sentinel_login];
        logins
            .into_iter()
            .flatten()
            .any(|login| login.password_source == PasswordSource::Url && !login.password.is_empty())
    }

    /// Returns all hosts with ports, the name of the master (sentinel mode), and the database unless it is 0.
    pub(crate) fn display_location(&self) -> String {
        let hosts = self.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let master = match &self.mode {
            DiscoveryMode::Sentinel { master, .. } => format!("/{master}"),
            DiscoveryMode::Single | DiscoveryMode::Cluster => String::new(),
        };
        let db = if self.database == 0 { String::new() } else { format!("/{}", self.database) };
        format!("{hosts}{master}{db}")
    }

    /// Returns the URL scheme for a suffix such as `+cluster`, with TLS if this endpoint uses it.
    fn url_scheme(&self, mode_suffix: &str) -> String {
        format!("redis{}{mode_suffix}://", if self.is_encrypted() { "s" } else { "" })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode_suffix = match self.mode {
            DiscoveryMode::Single => "",
            DiscoveryMode::Sentinel { .. } => "+sentinel",
            DiscoveryMode::Cluster => "+cluster",
        };
        let user = self.login.as_ref().and_then(|login| login.user.as_deref());
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "{}{user}{}", self.url_scheme(mode_suffix), self.display_location())?;
        match self.key_prefix == url::default_prefix(&self.mode) {
            true => Ok(()),
            false => {
                write!(f, "?prefix={}", utf8_percent_encode(&self.key_prefix, url::ESCAPED_IN_PARAMETERS))
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(KEEPALIVE_IDLE);
    settings
}

#[cfg(test)]
mod tests;
