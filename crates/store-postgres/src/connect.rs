//! The address of the database, and how to connect to it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use pointsman_core::suggestion;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{ConnectError, OpenError, format_driver_error};
use crate::session::Session;
use crate::tls::{self, TlsMode};

/// The environment variable with the password if the URL has none, as for libpq.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";
/// Timeout of connecting, unless the URL sets one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that disappears without closing its connections is detected after about a minute.
const DEAD_SERVER_TIMEOUT: Duration = Duration::from_secs(30);

/// The driver's half of a connection: it transports bytes and receives notifications.
pub(crate) type DriverConnection = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The address and parameters of a database. Displayed without the password.
#[derive(Clone)]
pub struct Endpoint {
    config: Config,
    tls_connector: MakeRustlsConnect,
    /// Each transaction may get another connection of the server: the URL declares `pooler=transaction`.
    is_behind_pooler: bool,
    /// The URL names the user.
    has_url_user: bool,
    /// The URL itself contains a password, as opposed to `PGPASSWORD`.
    has_password_in_own_url: bool,
    /// A direct connection to the same database, for what a pooler cannot do.
    direct_endpoint: Option<Box<Endpoint>>,
}

impl Endpoint {
    /// Parses a URL as libpq does, with two additional parameters: `pooler=transaction`, if the server is PgBouncer in
    /// transaction mode, and `listen=URL`, a direct connection around it.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let (url, parameters) = UrlParameters::split_from_url(url)?;
        let tls_mode = TlsMode::from_parameters(
            parameters.get_non_driver_value("sslmode"),
            parameters.get_non_driver_value("sslrootcert"),
        )?;
        if let Some(file) = parameters.get_non_driver_value("sslrootcert") {
            // An unreadable file is an error even if the mode would not use it.
            tls::read_root_certificates(Path::new(file))?;
        }
        let is_behind_pooler = match parameters.get_non_driver_value("pooler") {
            None => false,
            Some("transaction") => true,
            Some(other) => {
                return Err(bad_parameter_error(
                    "pooler",
                    format!("is `{other}`; the only valid value is `transaction`"),
                ));
            }
        };
        let direct = parameters
            .get_non_driver_value("listen")
            .map(|url| Self::parse(url).map_err(bad_listen_url_error))
            .transpose()?;
        let mut config: Config = url.parse().map_err(|error| explain_parse_error(&url, &error))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(OpenError::BadUrl(
                "it names no host; write postgres://user@host:5432/database".into(),
            ));
        }
        let has_url_user = config.get_user().is_some_and(|user| !user.is_empty());
        if !has_url_user {
            config.user(whoami::username().map_err(|error| unknown_user_error(&error))?);
        }
        let has_password_in_own_url = config.get_password().is_some();
        if let Some(password) = std::env::var_os(PASSWORD_VARIABLE)
            .filter(|password| !has_password_in_own_url && !password.is_empty())
        {
            config.password(password.as_encoded_bytes());
        }
        config.ssl_mode(if uses_unix_socket(&config) {
            SslMode::Disable
        } else {
            tls_mode.driver_ssl_mode()
        });
        set_connection_defaults(&mut config, &parameters, is_behind_pooler);
        let (tls_connector, direct) = (tls::build_connector(&tls_mode)?, direct.map(Box::new));
        Ok(Self {
            config,
            tls_connector,
            is_behind_pooler,
            has_url_user,
            has_password_in_own_url,
            direct_endpoint: direct,
        })
    }

    /// Opens a connection whose I/O the current runtime drives.
    pub(crate) async fn connect(&self) -> Result<Session, Error> {
        let (client, connection) = self.open_driver_connection().await?;
        let io_handle = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(
                    reason = format_driver_error(&error),
                    "connection to PostgreSQL closed with an error; the next statement opens another"
                );
            }
        });
        Ok(Session::new(client, io_handle, self.is_behind_pooler))
    }

    /// Opens a connection as [`Self::connect`] does, with a timeout for the whole. The driver's own timeout ends when
    /// the socket is open, and a server may be silent after that.
    pub(crate) async fn connect_with_timeout(&self) -> Result<Session, ConnectError> {
        self.await_with_connect_timeout(self.connect()).await
    }

    /// Opens a connection with a timeout; the caller drives its I/O.
    pub(crate) async fn open_driver_connection_with_timeout(
        &self,
    ) -> Result<(Client, DriverConnection), ConnectError> {
        self.await_with_connect_timeout(self.open_driver_connection()).await
    }

    async fn await_with_connect_timeout<T>(
        &self,
        connecting: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ConnectError> {
        let Some(timeout_per_host) = self.config.get_connect_timeout() else { return Ok(connecting.await?) };
        let total_timeout = *timeout_per_host * self.config.get_hosts().len().max(1) as u32;
        match tokio::time::timeout(total_timeout, connecting).await {
            Ok(connected) => Ok(connected?),
            Err(_) => Err(ConnectError::TimedOut(total_timeout)),
        }
    }

    async fn open_driver_connection(&self) -> Result<(Client, DriverConnection), Error> {
        self.config.connect(self.tls_connector.clone()).await
    }

    /// Returns this endpoint with unprepared statements only, because the server may turn out to be a pooler.
    pub(crate) fn without_prepared_statements(&self) -> Self {
        Self { is_behind_pooler: true, ..self.clone() }
    }

    pub(crate) fn is_behind_pooler(&self) -> bool {
        self.is_behind_pooler
    }

    /// The endpoint to listen for notifications on: none behind a pooler, unless a direct one is given.
    pub(crate) fn listen_endpoint(&self) -> Option<&Self> {
        match &self.direct_endpoint {
            Some(direct) => Some(direct),
            None => Some(self).filter(|_| !self.is_behind_pooler),
        }
    }

    /// True if the URL, or the URL of the direct connection in it, contains a password.
    pub fn has_password_in_url(&self) -> bool {
        let direct_has_password =
            self.direct_endpoint.as_ref().is_some_and(|direct| direct.has_password_in_url());
        self.has_password_in_own_url || direct_has_password
    }

    /// The role that connects; if the URL names none it is the operating system's user, as for libpq.
    pub(crate) fn role(&self) -> &str {
        self.config.get_user().unwrap_or("")
    }

    pub(crate) fn has_url_user(&self) -> bool {
        self.has_url_user
    }

    pub(crate) fn has_url_database(&self) -> bool {
        self.config.get_dbname().is_some()
    }

    /// The source of the password, if there is one.
    pub(crate) fn password_source(&self) -> Option<PasswordSource> {
        let source =
            if self.has_password_in_own_url { PasswordSource::Url } else { PasswordSource::Environment };
        self.config.get_password().map(|_| source)
    }

    /// The database name; if none is given it is that of the role.
    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or(self.role())
    }

    /// Host and port, or a list of them.
    pub(crate) fn address(&self) -> String {
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
        let addresses = hosts.iter().enumerate().map(|(index, host)| format!("{host}:{}", port(index)));
        addresses.collect::<Vec<_>>().join(",")
    }
}

/// The source of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordSource {
    Url,
    /// In `PGPASSWORD`.
    Environment,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}@{}/{}", self.role(), self.address(), self.database())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Sets the name, timeouts and settings of connections that the URL does not set.
fn set_connection_defaults(config: &mut Config, parameters: &UrlParameters, is_behind_pooler: bool) {
    let is_given = |name: &str| parameters.all_parameter_names.iter().any(|given| given == name);
    if !is_given("application_name") {
        config.application_name("pointsman");
    }
    if !is_given("connect_timeout") {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if !is_given("tcp_user_timeout") {
        config.tcp_user_timeout(DEAD_SERVER_TIMEOUT);
    }
    if !is_given("keepalives_idle") {
        config.keepalives_idle(DEAD_SERVER_TIMEOUT);
    }
    if !is_given("keepalives_interval") {
        config.keepalives_interval(Duration::from_secs(10));
    }
    if !is_given("keepalives_retries") {
        config.keepalives_retries(3);
    }
    // A pooler rejects settings that it does not know.
    if !is_behind_pooler {
        let driver_options = config.get_options().unwrap_or_default();
        let options = format!("{driver_options} -c jit=off -c TimeZone=UTC");
        config.options(options.trim_start());
    }
}

/// True if the connection uses a Unix socket, where nothing is encrypted.
fn uses_unix_socket(config: &Config) -> bool {
    let hosts = config.get_hosts();
    !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)))
}

/// The parameters of a URL: names and values of those that the driver does not support, and the names of all.
#[derive(Debug, Default)]
struct UrlParameters {
    non_driver_parameters: Vec<(String, String)>,
    all_parameter_names: Vec<String>,
}

/// Parameters that the driver does not support.
const NON_DRIVER_PARAMETERS: [&str; 4] = ["listen", "pooler", "sslmode", "sslrootcert"];
/// The driver's parameters, for the message about an unknown one.
const DRIVER_PARAMETERS: [&str; 18] = [
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

impl UrlParameters {
    /// Splits the parameters that the driver does not support off a URL, and returns the rest of the URL with them.
    fn split_from_url(url: &str) -> Result<(String, Self), OpenError> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let Some(rest) = rest else {
            return Err(OpenError::BadUrl("it does not begin with postgres:// or postgresql://".into()));
        };
        // A part of the password, after its first `@`, would be taken for the host and shown in messages.
        let host = rest.split_once('@').and_then(|(_, after)| after.split(['/', '?']).next());
        if host.is_some_and(|host| host.contains('@')) {
            return Err(OpenError::BadUrl(
                "it has more than one `@`; write one in a user name or a password as %40".into(),
            ));
        }
        // A password may contain a `?`, which otherwise starts the parameters.
        let login_end = rest.find(['@', '/']).filter(|at| rest[*at..].starts_with('@')).unwrap_or(0);
        let (login, location) = rest.split_at(login_end);
        let Some((location, query)) = location.split_once('?') else {
            return Ok((url.into(), Self::default()));
        };
        let mut parameters = Self::default();
        let mut driver_options = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.all_parameter_names.push(name.into());
            if NON_DRIVER_PARAMETERS.contains(&name) {
                let value = percent_decode_str(value).decode_utf8();
                let value = value.map_err(|_| bad_parameter_error(name, "is not UTF-8".into()))?;
                parameters.non_driver_parameters.push((name.into(), value.into_owned()));
            } else {
                driver_options.push(pair);
            }
        }
        let question_mark = if driver_options.is_empty() { "" } else { "?" };
        Ok((format!("postgres://{login}{location}{question_mark}{}", driver_options.join("&")), parameters))
    }

    /// Returns the value of a parameter that the driver does not support; of several values the last, as libpq does.
    fn get_non_driver_value(&self, name: &str) -> Option<&str> {
        self.non_driver_parameters.iter().rfind(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn bad_parameter_error(name: &str, problem: String) -> OpenError {
    OpenError::BadParameter { name: name.into(), problem }
}

fn bad_listen_url_error(error: OpenError) -> OpenError {
    bad_parameter_error("listen", format!("is not a valid URL: {error}"))
}

/// Explains a parse error of the driver, which names a parameter but neither its value nor the valid names.
fn explain_parse_error(url: &str, error: &Error) -> OpenError {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let message = cause.unwrap_or_else(|| error.to_string());
    let quoted_name = |prefix: &str| message.strip_prefix(prefix)?.strip_suffix('`');
    if let Some(name) = quoted_name("unknown option `") {
        return bad_parameter_error(
            name,
            suggestion::describe_unknown_name(
                name,
                &[NON_DRIVER_PARAMETERS.as_slice(), &DRIVER_PARAMETERS].concat(),
            ),
        );
    }
    match quoted_name("invalid value for option `").map(|name| (name, find_parameter_value(url, name))) {
        Some((name, Some(value))) => bad_parameter_error(name, format!("cannot be `{value}`")),
        Some((_, None)) | None => OpenError::BadUrl(message),
    }
}

/// Finds the value of a parameter in a URL. None if the value could be a part of a password: the URL has more than one
/// `@`, or it has none and the value is where the port belongs.
fn find_parameter_value<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let rest = match url.split_once('@') {
        Some((_, rest)) => Some(rest).filter(|rest| !rest.contains('@'))?,
        None => Some(url).filter(|_| name != "port")?,
    };
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let in_query = query.split('&').filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).next_back();
    in_query.or_else(|| find_bad_port(location).filter(|_| name == "port"))
}

/// Finds a port that is not a number.
fn find_bad_port(location: &str) -> Option<&str> {
    let hosts = location.split('/').next()?.split(',');
    let ports = hosts.filter_map(|host| host.rsplit(']').next()?.split_once(':'));
    ports.map(|(_, port)| port).find(|port| !port.is_empty() && port.parse::<u16>().is_err())
}

fn unknown_user_error(error: &whoami::Error) -> OpenError {
    OpenError::BadUrl(format!(
        "it names no user, and the system's user is unknown ({error}); write postgres://user@host:5432/database"
    ))
}

#[cfg(test)]
mod tests;
