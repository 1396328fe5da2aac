//! Where the database is, and how to connect to it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use pointsman_core::nearest;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{ConnectError, OpenError, reason};
use crate::session::Session;
use crate::tls::{self, Trust};

/// The variable of the environment that holds the password where the URL has none, as for libpq.
const PASSWORD: &str = "PGPASSWORD";
/// How long a connection may take, unless the URL says otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
/// A peer that is gone without a word is noticed after about a minute.
const QUIET: Duration = Duration::from_secs(30);

/// The other end of a connection, as far as the driver has it: what carries bytes and what the server says unasked.
pub(crate) type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A database that can be connected to. Shown without the password.
#[derive(Clone)]
pub struct Endpoint {
    config: Config,
    tls: MakeRustlsConnect,
    pooled: bool,
    /// The URL names the user.
    named: bool,
    /// The URL holds a password.
    told: bool,
    /// A direct way to the same database, for what a pooler cannot do.
    listen: Option<Box<Endpoint>>,
}

impl Endpoint {
    /// Reads a URL as libpq does, with two parameters of our own: `pooler=transaction`, if what answers there is
    /// PgBouncer in transaction mode, and `listen=URL`, a direct way around it.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let (url, parameters) = Parameters::split(url)?;
        let trust = Trust::read(parameters.get("sslmode"), parameters.get("sslrootcert"))?;
        if let Some(file) = parameters.get("sslrootcert") {
            // Whoever names one that cannot be read is mistaken, even where it would not be looked at.
            tls::read_roots(Path::new(file))?;
        }
        let pooled = match parameters.get("pooler") {
            None => false,
            Some("transaction") => true,
            Some(other) => {
                return Err(bad("pooler", format!("is `{other}`, and can only be `transaction`")));
            }
        };
        let listen = parameters.get("listen").map(|url| Self::parse(url).map_err(in_listen)).transpose()?;
        let mut config: Config = url.parse().map_err(|error| unreadable(&url, &error))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(OpenError::BadUrl(
                "it names no host; write postgres://user@host:5432/database".into(),
            ));
        }
        let named = config.get_user().is_some_and(|user| !user.is_empty());
        if !named {
            config.user(whoami::username().map_err(|error| nobody(&error))?);
        }
        let told = config.get_password().is_some();
        if let Some(password) = std::env::var_os(PASSWORD).filter(|password| !told && !password.is_empty()) {
            config.password(password.as_encoded_bytes());
        }
        config.ssl_mode(if is_local(&config) { SslMode::Disable } else { trust.mode() });
        settle(&mut config, &parameters, pooled);
        let (tls, listen) = (tls::connector(&trust)?, listen.map(Box::new));
        Ok(Self { config, tls, pooled, named, told, listen })
    }

    /// Opens a connection, which this task's runtime carries.
    pub(crate) async fn connect(&self) -> Result<Session, Error> {
        let (client, wire) = self.open().await?;
        let carrier = tokio::spawn(async move {
            if let Err(error) = wire.await {
                tracing::debug!(reason = reason(&error), "a connection to PostgreSQL ended");
            }
        });
        Ok(Session::new(client, carrier, self.pooled))
    }

    /// The same within the time that a connection may take. The driver's own limit ends when the socket is open, and a
    /// server may be silent after that.
    pub(crate) async fn connect_in_time(&self) -> Result<Session, ConnectError> {
        self.in_time(self.connect()).await
    }

    /// Opens a connection in time, and leaves it to the caller to carry it.
    pub(crate) async fn open_in_time(&self) -> Result<(Client, Wire), ConnectError> {
        self.in_time(self.open()).await
    }

    async fn in_time<T>(
        &self,
        connecting: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ConnectError> {
        let Some(patience) = self.config.get_connect_timeout() else { return Ok(connecting.await?) };
        let limit = *patience * self.config.get_hosts().len().max(1) as u32;
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => Ok(connected?),
            Err(_) => Err(ConnectError::Silent(limit)),
        }
    }

    async fn open(&self) -> Result<(Client, Wire), Error> {
        self.config.connect(self.tls.clone()).await
    }

    /// The same place, where each statement is sent whole, because what answers there may turn out to be a pooler.
    pub(crate) fn cautious(&self) -> Self {
        Self { pooled: true, ..self.clone() }
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Where to listen for what the server tells unasked: none behind a pooler, unless a direct way is given.
    pub(crate) fn for_listening(&self) -> Option<&Self> {
        match &self.listen {
            Some(direct) => Some(direct),
            None => Some(self).filter(|_| !self.pooled),
        }
    }

    /// Whether its URL holds a password, or that of the direct way does.
    pub fn has_password(&self) -> bool {
        let direct = self.listen.as_ref().is_some_and(|direct| direct.has_password());
        self.told || direct
    }

    /// Who connects; if the URL names nobody it is the user who runs this program, as for libpq.
    pub(crate) fn role(&self) -> &str {
        self.config.get_user().unwrap_or("")
    }

    pub(crate) fn names_user(&self) -> bool {
        self.named
    }

    pub(crate) fn names_database(&self) -> bool {
        self.config.get_dbname().is_some()
    }

    /// Where the password stands that is sent, if there is one.
    pub(crate) fn password(&self) -> Option<Password> {
        let source = if self.told { Password::Url } else { Password::Environment };
        self.config.get_password().map(|_| source)
    }

    /// The database's name; if none is given it is that of the role.
    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or(self.role())
    }

    /// Host and port; of several, all.
    pub(crate) fn place(&self) -> String {
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        });
        let mut hosts: Vec<String> = hosts.collect();
        if hosts.is_empty() {
            hosts = self.config.get_hostaddrs().iter().map(ToString::to_string).collect();
        }
        let places = hosts.iter().enumerate().map(|(index, host)| format!("{host}:{}", port(index)));
        places.collect::<Vec<_>>().join(",")
    }
}

/// Where a password stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Password {
    Url,
    /// In `PGPASSWORD`.
    Environment,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}@{}/{}", self.role(), self.place(), self.database())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is set on every connection, unless the URL says otherwise.
fn settle(config: &mut Config, parameters: &Parameters, pooled: bool) {
    let given = |name: &str| parameters.names.iter().any(|known| known == name);
    if !given("application_name") {
        config.application_name("pointsman");
    }
    if !given("connect_timeout") {
        config.connect_timeout(PATIENCE);
    }
    if !given("tcp_user_timeout") {
        config.tcp_user_timeout(QUIET);
    }
    if !given("keepalives_idle") {
        config.keepalives_idle(QUIET);
    }
    if !given("keepalives_interval") {
        config.keepalives_interval(Duration::from_secs(10));
    }
    if !given("keepalives_retries") {
        config.keepalives_retries(3);
    }
    // A pooler refuses settings that it does not know.
    if !pooled {
        let theirs = config.get_options().unwrap_or_default();
        let options = format!("{theirs} -c jit=off -c TimeZone=UTC");
        config.options(options.trim_start());
    }
}

/// Whether it is reached by a socket in a folder, where nothing is encrypted.
fn is_local(config: &Config) -> bool {
    let hosts = config.get_hosts();
    !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)))
}

/// Parameters that the driver does not know, and the names of all that were given.
#[derive(Debug, Default)]
struct Parameters {
    ours: Vec<(String, String)>,
    names: Vec<String>,
}

const OURS: [&str; 4] = ["listen", "pooler", "sslmode", "sslrootcert"];
/// What the driver knows, for whoever names another.
const THEIRS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

impl Parameters {
    /// Takes what is ours out of a URL.
    fn split(url: &str) -> Result<(String, Self), OpenError> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let Some(rest) = rest else {
            return Err(OpenError::BadUrl("it does not begin with postgres:// or postgresql://".into()));
        };
        // What comes after the first would be taken for the host, and shown.
        let host = rest.split_once('@').and_then(|(_, after)| after.split(['/', '?']).next());
        if host.is_some_and(|host| host.contains('@')) {
            return Err(OpenError::BadUrl(
                "it has more than one `@`; one in a user's name or a password is written %40".into(),
            ));
        }
        // A password may hold what elsewhere begins the parameters.
        let login = rest.find(['@', '/']).filter(|at| rest[*at..].starts_with('@')).unwrap_or(0);
        let (login, place) = rest.split_at(login);
        let Some((place, query)) = place.split_once('?') else { return Ok((url.into(), Self::default())) };
        let mut parameters = Self::default();
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.names.push(name.into());
            if OURS.contains(&name) {
                let value = percent_decode_str(value).decode_utf8();
                let value = value.map_err(|_| bad(name, "is not UTF-8".into()))?;
                parameters.ours.push((name.into(), value.into_owned()));
            } else {
                theirs.push(pair);
            }
        }
        let question = if theirs.is_empty() { "" } else { "?" };
        Ok((format!("postgres://{login}{place}{question}{}", theirs.join("&")), parameters))
    }

    /// Of several the last counts, as for libpq.
    fn get(&self, name: &str) -> Option<&str> {
        self.ours.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn bad(name: &str, what: String) -> OpenError {
    OpenError::BadParameter { name: name.into(), what }
}

fn in_listen(error: OpenError) -> OpenError {
    bad("listen", format!("is not a URL that can be used: {error}"))
}

/// What the driver finds wrong. It names a parameter; which ones there are, and the value, it does not say.
fn unreadable(url: &str, error: &Error) -> OpenError {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let told = cause.unwrap_or_else(|| error.to_string());
    let named = |what: &str| told.strip_prefix(what)?.strip_suffix('`');
    if let Some(name) = named("unknown option `") {
        return bad(name, nearest::unknown(name, &[OURS.as_slice(), &THEIRS].concat()));
    }
    match named("invalid value for option `").map(|name| (name, given(url, name))) {
        Some((name, Some(value))) => bad(name, format!("cannot be `{value}`")),
        Some((_, None)) | None => OpenError::BadUrl(told),
    }
}

/// A value as the driver has found it, if it can be no part of a password: such a one may hold an `@`, and without any it
/// may stand where the port does.
fn given<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let rest = match url.split_once('@') {
        Some((_, rest)) => Some(rest).filter(|rest| !rest.contains('@'))?,
        None => Some(url).filter(|_| name != "port")?,
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let in_query = query.split('&').filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).next_back();
    in_query.or_else(|| bad_port(place).filter(|_| name == "port"))
}

/// The port behind a host that is none.
fn bad_port(place: &str) -> Option<&str> {
    let hosts = place.split('/').next()?.split(',');
    let ports = hosts.filter_map(|host| host.rsplit(']').next()?.split_once(':'));
    ports.map(|(_, port)| port).find(|port| !port.is_empty() && port.parse::<u16>().is_err())
}

fn nobody(error: &whoami::Error) -> OpenError {
    OpenError::BadUrl(format!(
        "it names no user, and who runs this program has no name ({error}); write postgres://user@host:5432/database"
    ))
}

#[cfg(test)]
mod tests;
