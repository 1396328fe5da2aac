//! Where Redis is, and how to connect to it.
//!
//! All our keys are in one slot, so that whatever stands there, one server has them: the one of the URL, the master that
//! sentinels name, or the node of a cluster that has the slot. To connect is to find it (`resolve.rs`), and to see that
//! it is what we need (`greet.rs`).

mod cli;
mod greet;
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

pub(crate) use self::cli::quoted;
pub(crate) use self::greet::line;

use self::greet::Greeting;
use self::tls::Tls;
use crate::error::OpenError;

/// Under which name a server lists our connections.
const NAME: &str = "pointsman";
/// How long a server may take for an answer, unless whoever asks says otherwise. It only ends what would never end.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);
/// A peer that is gone without a word is noticed after about a minute.
const QUIET: Duration = Duration::from_secs(30);
const BETWEEN_PROBES: Duration = Duration::from_secs(10);

/// A Redis that can be connected to. Shown without passwords.
#[derive(Clone)]
pub struct Endpoint {
    mode: Mode,
    /// The server, or some of the sentinels or nodes that know which one it is.
    hosts: Vec<Address>,
    login: Option<Login>,
    db: u32,
    prefix: String,
    /// How long it may take to connect to one host.
    patience: Duration,
    tls: Option<Tls>,
}

/// How the server is found.
#[derive(Clone)]
enum Mode {
    /// It is the one that is named.
    Single,
    /// Sentinels know it by the name of a master.
    Sentinel { master: String, login: Option<Login> },
    /// It is the node that has our slot.
    Cluster,
}

/// A server's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Who connects.
#[derive(Clone)]
struct Login {
    /// None: the server's default user.
    user: Option<String>,
    password: String,
    source: Source,
}

/// Where a password stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Url,
    Environment,
}

impl Endpoint {
    /// Reads a URL: `redis://`, `redis+sentinel://` or `redis+cluster://`, each also with `rediss` for what is encrypted.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        url::read(url, &set)
    }

    /// Whether URLs that begin with this are those of a Redis.
    pub fn has_scheme(scheme: &str) -> bool {
        url::SCHEMES.iter().any(|(known, ..)| known.strip_suffix("://") == Some(scheme))
    }

    /// Opens a connection that blocks. Answers may take as long as `ANSWER`, unless the caller sets other timeouts on it.
    #[doc(hidden)]
    pub fn connect_blocking(&self) -> Result<Connection, OpenError> {
        let (master, connection) = self.find()?;
        let settled = connection
            .set_read_timeout(Some(ANSWER))
            .and_then(|()| connection.set_write_timeout(Some(ANSWER)));
        settled.map_err(|error| self.unmet(&master, &error))?;
        Ok(connection)
    }

    /// Opens a connection that many tasks can use at once.
    #[doc(hidden)]
    pub async fn connect(&self) -> Result<MultiplexedConnection, OpenError> {
        let master = self.resolve_beside().await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.patience))
            .set_response_timeout(Some(self.patience));
        let client = self.client(&master, RedisConnectionInfo::default().set_skip_set_lib_name())?;
        let opened = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = opened.map_err(|error| self.unmet(&master, &error))?;
        let greeting = Greeting::new(self, &master, self.login.as_ref());
        greeting.is_let_in(greeting.login().query_async(&mut connection).await)?;
        greeting.is_fit(greeting.questions().query_async(&mut connection).await)?;
        connection.set_response_timeout(ANSWER);
        Ok(connection)
    }

    /// Opens a connection for what others publish.
    #[doc(hidden)]
    pub async fn connect_for_listening(&self) -> Result<PubSub, OpenError> {
        let master = self.resolve_beside().await?;
        let mut info = RedisConnectionInfo::default().set_lib_name(NAME, env!("CARGO_PKG_VERSION"));
        if let Some(login) = &self.login {
            info = info.set_password(&login.password);
            info = login.user.iter().fold(info, |info, user| info.set_username(user));
        }
        let client = self.client(&master, info.set_db(self.db.into()))?;
        match tokio::time::timeout(self.patience, client.get_async_pubsub()).await {
            Ok(opened) => opened.map_err(|error| self.unmet(&master, &error)),
            Err(_) => Err(self.silent(&master)),
        }
    }

    /// Where to connect to, found without holding up the tasks of this runtime.
    async fn resolve_beside(&self) -> Result<Address, OpenError> {
        if let (Mode::Single, Some(host)) = (&self.mode, self.hosts.first()) {
            return Ok(host.clone());
        }
        let endpoint = self.clone();
        let resolved = tokio::task::spawn_blocking(move || endpoint.resolve()).await;
        resolved.map_err(|error| OpenError::Failed { at: self.place(), reason: error.to_string() })?
    }

    fn client(&self, address: &Address, info: RedisConnectionInfo) -> Result<Client, OpenError> {
        let to = match &self.tls {
            Some(tls) => tls.address(address),
            None => ConnectionAddr::Tcp(address.host.clone(), address.port),
        };
        let info =
            to.into_connection_info().map(|to| to.set_redis_settings(info).set_tcp_settings(tcp_settings()));
        let client = info.and_then(|info| match &self.tls {
            Some(tls) => tls.client(info),
            None => Client::open(info),
        });
        client.map_err(|error| self.unmet(address, &error))
    }

    /// What it means that there is no connection to a server, as its users see it.
    fn unmet(&self, address: &Address, error: &redis::RedisError) -> OpenError {
        Greeting::new(self, address, self.login.as_ref()).explain(error)
    }

    fn silent(&self, address: &Address) -> OpenError {
        // One that does not encrypt waits for the rest of what it takes for a command.
        let hint = match self.is_encrypted() {
            true => " (if it does not encrypt, let the URL begin with redis)",
            false => "",
        };
        let reason = format!("it does not answer within {} s{hint}", self.patience.as_secs());
        OpenError::Unreachable { at: address.to_string(), reason }
    }

    /// What all our keys begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn database(&self) -> u32 {
        self.db
    }

    /// How the server is found, in words.
    pub(crate) fn mode(&self) -> &'static str {
        match self.mode {
            Mode::Single => "a single server",
            Mode::Sentinel { .. } => "the master that the sentinels name",
            Mode::Cluster => "the node of the cluster that has our slot",
        }
    }

    /// Whether another server takes the place of the one that has our keys, when that is gone.
    pub(crate) fn fails_over(&self) -> bool {
        match self.mode {
            Mode::Single => false,
            Mode::Sentinel { .. } | Mode::Cluster => true,
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether its URL holds a password.
    pub fn has_password(&self) -> bool {
        let of_sentinels = match &self.mode {
            Mode::Sentinel { login, .. } => login.as_ref(),
            Mode::Single | Mode::Cluster => None,
        };
        let logins = [self.login.as_ref(), of_sentinels];
        logins.into_iter().flatten().any(|login| login.source == Source::Url && !login.password.is_empty())
    }

    /// Host and port, of several all; the master's name, where it is found by that; the database, unless it is the first.
    pub(crate) fn place(&self) -> String {
        let hosts = self.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let master = match &self.mode {
            Mode::Sentinel { master, .. } => format!("/{master}"),
            Mode::Single | Mode::Cluster => String::new(),
        };
        let db = if self.db == 0 { String::new() } else { format!("/{}", self.db) };
        format!("{hosts}{master}{db}")
    }

    /// How a URL begins that leads to servers of a kind, as much encrypted as this one.
    fn scheme(&self, kind: &str) -> String {
        format!("redis{}{kind}://", if self.is_encrypted() { "s" } else { "" })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.mode {
            Mode::Single => "",
            Mode::Sentinel { .. } => "+sentinel",
            Mode::Cluster => "+cluster",
        };
        let user = self.login.as_ref().and_then(|login| login.user.as_deref());
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "{}{user}{}", self.scheme(kind), self.place())?;
        match self.prefix == url::usual_prefix(&self.mode) {
            true => Ok(()),
            false => write!(f, "?prefix={}", utf8_percent_encode(&self.prefix, url::MEANS_SOMETHING)),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(QUIET).with_interval(BETWEEN_PROBES);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(QUIET);
    settings
}

#[cfg(test)]
mod tests;
