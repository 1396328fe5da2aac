//! Parsing of Redis URLs.
//!
//! ```text
//!  redis://[user:password@]host[:6379][/db]
//!  redis+sentinel://[user:password@]host[:26379],…/master[/db]
//!  redis+cluster://[user:password@]host[:6379],…
//! ```
//!
//! `rediss` instead of `redis` means TLS. No message repeats a part of the URL that may be a password.

use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str};
use pointsman_core::suggestion;

use super::slot::hash_tag;
use super::tls::TlsSettings;
use super::{DiscoveryMode, Endpoint, Login, PasswordSource, ServerAddress};
use crate::error::OpenError;

/// Environment variable with the password if the URL has none, as for redis-cli.
pub(super) const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";
/// Environment variable with the password of the sentinels.
pub(super) const SENTINEL_PASSWORD_VARIABLE: &str = "REDIS_SENTINEL_PASSWORD";
/// Default and maximum of `connect_timeout`, in seconds.
const DEFAULT_CONNECT_TIMEOUT_SECS: u64 = 5;
const MAX_CONNECT_TIMEOUT_SECS: u64 = 3600;
/// Default prefix on a cluster: its hash tag puts all keys into one slot.
const DEFAULT_CLUSTER_PREFIX: &str = "{pointsman}:";
const MAX_PREFIX_LENGTH: usize = 64;
/// Characters that are escaped in a URL parameter.
pub(super) const ESCAPED_IN_PARAMETERS: &AsciiSet = &CONTROLS.add(b'%').add(b'&').add(b'@');

const SUPPORTED_PARAMETERS: [&str; 8] = [
    "connect_timeout",
    "prefix",
    "sentinel_password",
    "sentinel_user",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
];
const SENTINEL_PARAMETERS: [&str; 2] = ["sentinel_password", "sentinel_user"];
const TLS_PARAMETERS: [&str; 4] = ["sslcert", "sslkey", "sslmode", "sslrootcert"];

/// A function that returns the value of an environment variable.
pub(super) type EnvironmentLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Kind of server by the scheme of the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemeKind {
    Single,
    Sentinel,
    Cluster,
}

/// URL schemes, the kind of server that each names, and whether the connection uses TLS.
const SCHEMES: [(&str, SchemeKind, bool); 6] = [
    ("redis://", SchemeKind::Single, false),
    ("rediss://", SchemeKind::Single, true),
    ("redis+sentinel://", SchemeKind::Sentinel, false),
    ("rediss+sentinel://", SchemeKind::Sentinel, true),
    ("redis+cluster://", SchemeKind::Cluster, false),
    ("rediss+cluster://", SchemeKind::Cluster, true),
];

impl SchemeKind {
    fn default_port(self) -> u16 {
        match self {
            Self::Single | Self::Cluster => 6379,
            Self::Sentinel => 26_379,
        }
    }
}

/// Parses a URL. The environment supplies passwords that it does not contain.
pub(super) fn parse_url(url: &str, environment: EnvironmentLookup<'_>) -> Result<Endpoint, OpenError> {
    let scheme =
        SCHEMES.iter().find_map(|(scheme, kind, tls)| Some((url.strip_prefix(scheme)?, *kind, *tls)));
    let Some((rest, kind, encrypted)) = scheme else {
        let supported = SCHEMES.map(|(scheme, ..)| scheme).join(", ");
        return bad_url_error(format!("it begins with none of {supported}"));
    };
    let (login, authority, path, query) = split_url(rest)?;
    let hosts = parse_hosts(authority, kind)?;
    let parameters = UrlParameters::parse(query)?;
    parameters.check_applicable(kind, encrypted)?;
    let (master, db) = parse_path(path, kind)?;
    let login = match login {
        Some(login) => self::parse_login(login, environment)?,
        None => login_from_environment(environment),
    };
    let mode = match kind {
        SchemeKind::Single => DiscoveryMode::Single,
        SchemeKind::Cluster => DiscoveryMode::Cluster,
        SchemeKind::Sentinel => {
            DiscoveryMode::Sentinel { master, login: parameters.parse_sentinel_login(environment)? }
        }
    };
    Ok(Endpoint {
        key_prefix: parameters.parse_prefix(&mode)?,
        mode,
        hosts,
        login,
        database: db,
        connect_timeout: parameters.parse_connect_timeout()?,
        tls: encrypted.then(|| TlsSettings::from_parameters(|name| parameters.get(name))).transpose()?,
    })
}

/// Returns the key prefix if the URL names none.
pub(super) fn default_prefix(mode: &DiscoveryMode) -> &'static str {
    match mode {
        DiscoveryMode::Single | DiscoveryMode::Sentinel { .. } => "",
        DiscoveryMode::Cluster => DEFAULT_CLUSTER_PREFIX,
    }
}

/// Splits a URL into login, hosts, path and parameters. A second `@` is refused: the text before it may be a password, and
/// would count as a host.
fn split_url(rest: &str) -> Result<(Option<&str>, &str, &str, &str), OpenError> {
    let (login, rest) = match rest.split_once('@') {
        Some((login, rest)) => (Some(login), rest),
        None => (None, rest),
    };
    if rest.contains('@') || login.is_some_and(|login| login.contains(['/', '?'])) {
        return bad_url_error(
            "it has an `@` that does not follow the user; within a name, a password or a parameter write `@` as %40, \
             `/` as %2F and `?` as %3F",
        );
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    Ok((login, authority, path, query))
}

fn parse_hosts(authority: &str, kind: SchemeKind) -> Result<Vec<ServerAddress>, OpenError> {
    if kind == SchemeKind::Single && authority.contains(',') {
        return bad_url_error(
            "it names several hosts; write redis+sentinel://… if they are sentinels, redis+cluster://… if they are nodes \
             of a cluster, and otherwise name one",
        );
    }
    authority.split(',').map(|host| parse_address(host, kind)).collect()
}

/// Parses a host with its port. Without an `@` in the URL, the port may be a password, so messages do not repeat it.
fn parse_address(text: &str, kind: SchemeKind) -> Result<ServerAddress, OpenError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or("none"))),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_host_name =
        !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let is_ipv6_address = text.starts_with('[') && host.parse::<std::net::Ipv6Addr>().is_ok();
    if host.is_empty() {
        let example = match kind {
            SchemeKind::Single => "redis://host:6379",
            SchemeKind::Sentinel => "redis+sentinel://host1:26379,host2:26379,host3:26379/mymaster",
            SchemeKind::Cluster => "redis+cluster://host1:6379,host2:6379,host3:6379",
        };
        return bad_url_error(format!("it names no host; write {example}"));
    }
    if !is_ipv6_address && (text.starts_with('[') || !is_host_name) {
        return bad_url_error(
            "a host contains a character that is not allowed there; write a name, 127.0.0.1 or [::1], and a password \
             before an `@`",
        );
    }
    let port = port.map_or(Some(kind.default_port()), |port| port.parse().ok().filter(|port| *port != 0));
    match port {
        Some(port) => Ok(ServerAddress { host: host.into(), port }),
        None => bad_url_error(format!(
            "a port is not a number from 1 to 65535; write host:{}",
            kind.default_port()
        )),
    }
}

/// Parses the name of the master (sentinel mode only) and the database.
fn parse_path(path: &str, kind: SchemeKind) -> Result<(String, u32), OpenError> {
    let path = path.trim_end_matches('/');
    let (master, db) = match kind {
        SchemeKind::Single | SchemeKind::Cluster => (String::new(), path),
        SchemeKind::Sentinel => {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            (percent_decode("the master's name", master)?, db)
        }
    };
    if kind == SchemeKind::Sentinel && master.is_empty() {
        return bad_url_error(
            "it does not name the master that the sentinels watch; write redis+sentinel://host1,host2,host3/mymaster",
        );
    }
    let number = if db.is_empty() { Some(0) } else { db.parse().ok() };
    let Some(db) = number else {
        return bad_url_error("its path is not the number of a database; write redis://host:6379/0");
    };
    if kind == SchemeKind::Cluster && db != 0 {
        return bad_url_error(format!(
            "it names the database {db}, and a cluster has only 0; leave it out, and use `prefix` to separate stores"
        ));
    }
    Ok((master, db))
}

/// Parses user and password. Messages repeat neither, because text without a colon could be a password.
fn parse_login(text: &str, environment: EnvironmentLookup<'_>) -> Result<Option<Login>, OpenError> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(percent_decode("the password", password)?)),
        None => (text, None),
    };
    let user = Some(percent_decode("the user", user)?).filter(|user| !user.is_empty());
    let (password, source) = match (password, environment(PASSWORD_VARIABLE)) {
        (Some(password), _) => (password, PasswordSource::Url),
        (None, Some(password)) => (password, PasswordSource::Environment),
        (None, None) => {
            return bad_url_error(format!(
                "it has a user without a password; write redis://user:password@host, redis://:password@host for a \
                 password alone, or put the password into {PASSWORD_VARIABLE}"
            ));
        }
    };
    // Empty user and password mean no login.
    let is_empty = user.is_none() && password.is_empty();
    Ok(Some(Login { user, password, password_source: source }).filter(|_| !is_empty))
}

/// Returns the login from the environment if the URL has none.
fn login_from_environment(environment: EnvironmentLookup<'_>) -> Option<Login> {
    let password = environment(PASSWORD_VARIABLE)?;
    Some(Login { user: None, password, password_source: PasswordSource::Environment })
}

fn percent_decode(part: &str, text: &str) -> Result<String, OpenError> {
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => {
            bad_url_error(format!("{part} is not UTF-8 after percent-decoding; write a % itself as %25"))
        }
    }
}

fn bad_url_error<T>(problem: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::BadUrl(problem.into()))
}

pub(super) fn bad_parameter_error(name: &str, problem: impl Into<String>) -> OpenError {
    OpenError::BadParameter { name: name.into(), problem: problem.into() }
}

/// Parameters of a URL.
struct UrlParameters(Vec<(String, String)>);

impl UrlParameters {
    fn parse(query: &str) -> Result<Self, OpenError> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let parsed = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !SUPPORTED_PARAMETERS.contains(&name) {
                return Err(bad_parameter_error(
                    name,
                    suggestion::describe_unknown_name(name, &SUPPORTED_PARAMETERS),
                ));
            }
            let value = percent_decode_str(value).decode_utf8();
            let value =
                value.map_err(|_| bad_parameter_error(name, "is not UTF-8 after percent-decoding"))?;
            Ok((name.into(), value.into_owned()))
        });
        Ok(Self(parsed.collect::<Result<_, _>>()?))
    }

    /// Returns a parameter; of repeated ones the last.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Checks that all parameters apply to the kind of server.
    fn check_applicable(&self, kind: SchemeKind, encrypted: bool) -> Result<(), OpenError> {
        if let Some(name) = TLS_PARAMETERS.iter().find(|name| !encrypted && self.get(name).is_some()) {
            return Err(bad_parameter_error(
                name,
                "is only for encrypted connections; begin the URL with rediss",
            ));
        }
        let inapplicable =
            SENTINEL_PARAMETERS.iter().find(|name| kind != SchemeKind::Sentinel && self.get(name).is_some());
        match inapplicable {
            Some(name) => Err(bad_parameter_error(
                name,
                "is for sentinels; write redis+sentinel://host1,host2/mymaster",
            )),
            None => Ok(()),
        }
    }

    /// Returns the login for the sentinels, which have their own users.
    fn parse_sentinel_login(&self, environment: EnvironmentLookup<'_>) -> Result<Option<Login>, OpenError> {
        let user = self.get("sentinel_user").filter(|user| !user.is_empty()).map(String::from);
        let from_url =
            self.get("sentinel_password").map(|password| (password.to_string(), PasswordSource::Url));
        let password = from_url
            .or_else(|| Some((environment(SENTINEL_PASSWORD_VARIABLE)?, PasswordSource::Environment)));
        match (user, password) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(bad_parameter_error(
                "sentinel_user",
                format!("needs sentinel_password, or {SENTINEL_PASSWORD_VARIABLE} set"),
            )),
            (user, Some((password, source))) => Ok(Some(Login { user, password, password_source: source })),
        }
    }

    fn parse_connect_timeout(&self) -> Result<Duration, OpenError> {
        let Some(value) = self.get("connect_timeout") else {
            return Ok(Duration::from_secs(DEFAULT_CONNECT_TIMEOUT_SECS));
        };
        match value.parse() {
            Ok(seconds @ 1..=MAX_CONNECT_TIMEOUT_SECS) => Ok(Duration::from_secs(seconds)),
            Ok(_) | Err(_) => {
                let problem =
                    format!("is `{value}`, and can only be seconds, from 1 to {MAX_CONNECT_TIMEOUT_SECS}");
                Err(bad_parameter_error("connect_timeout", problem))
            }
        }
    }

    fn parse_prefix(&self, mode: &DiscoveryMode) -> Result<String, OpenError> {
        let Some(value) = self.get("prefix") else { return Ok(default_prefix(mode).into()) };
        if value.len() > MAX_PREFIX_LENGTH || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            let allowed = "printable ASCII characters without spaces";
            return Err(bad_parameter_error(
                "prefix",
                format!("can only be up to {MAX_PREFIX_LENGTH} {allowed}"),
            ));
        }
        let braces = value.chars().filter(|c| ['{', '}'].contains(c)).count();
        if matches!(mode, DiscoveryMode::Cluster) && (hash_tag(value).is_none() || braces != 2) {
            let problem = format!(
                "is `{value}`, and on a cluster it needs exactly one hash tag, so that all keys are in one slot; write \
                 {DEFAULT_CLUSTER_PREFIX} or another in {{}}"
            );
            return Err(bad_parameter_error("prefix", problem));
        }
        Ok(value.into())
    }
}
