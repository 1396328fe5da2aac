//! What a URL says of where Redis is.
//!
//! ```text
//!  redis://[user:password@]host[:6379][/db]
//!  redis+sentinel://[user:password@]host[:26379],…/master[/db]
//!  redis+cluster://[user:password@]host[:6379],…
//! ```
//!
//! With `rediss` for `redis` all of it is encrypted. No message repeats what may be a password.

use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str};
use pointsman_core::nearest;

use super::slot::hash_tag;
use super::tls::Tls;
use super::{Address, Endpoint, Login, Mode, Source};
use crate::error::OpenError;

/// The variable of the environment that holds the password where the URL has none, as for redis-cli.
pub(super) const PASSWORD: &str = "REDISCLI_AUTH";
/// The same for the sentinels.
pub(super) const SENTINEL_PASSWORD: &str = "REDIS_SENTINEL_PASSWORD";
/// How long a connection may take, unless the URL says otherwise, and at most.
const PATIENCE: u64 = 5;
const MOST_PATIENCE: u64 = 3600;
/// What keys begin with on a cluster, so that all of them are in one slot.
const CLUSTER_PREFIX: &str = "{pointsman}:";
const LONGEST_PREFIX: usize = 64;
/// Signs that mean something within a parameter.
pub(super) const MEANS_SOMETHING: &AsciiSet = &CONTROLS.add(b'%').add(b'&').add(b'@');

const KNOWN: [&str; 8] = [
    "connect_timeout",
    "prefix",
    "sentinel_password",
    "sentinel_user",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
];
const OF_SENTINELS: [&str; 2] = ["sentinel_password", "sentinel_user"];
const OF_TLS: [&str; 4] = ["sslcert", "sslkey", "sslmode", "sslrootcert"];

/// A variable of the environment, if it is set.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What kind of server answers, by the URL's scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Sentinel,
    Cluster,
}

pub(super) const SCHEMES: [(&str, Kind, bool); 6] = [
    ("redis://", Kind::Single, false),
    ("rediss://", Kind::Single, true),
    ("redis+sentinel://", Kind::Sentinel, false),
    ("rediss+sentinel://", Kind::Sentinel, true),
    ("redis+cluster://", Kind::Cluster, false),
    ("rediss+cluster://", Kind::Cluster, true),
];

impl Kind {
    fn port(self) -> u16 {
        match self {
            Self::Single | Self::Cluster => 6379,
            Self::Sentinel => 26_379,
        }
    }
}

/// Reads a URL.
pub(super) fn read(url: &str, environment: Environment<'_>) -> Result<Endpoint, OpenError> {
    let scheme =
        SCHEMES.iter().find_map(|(scheme, kind, tls)| Some((url.strip_prefix(scheme)?, *kind, *tls)));
    let Some((rest, kind, encrypted)) = scheme else {
        let known = SCHEMES.map(|(scheme, ..)| scheme).join(", ");
        return bad_url(format!("it begins with none of {known}"));
    };
    let (login, place, path, query) = split(rest)?;
    let hosts = hosts(place, kind)?;
    let parameters = Parameters::read(query)?;
    parameters.check(kind, encrypted)?;
    let (master, db) = path_of(path, kind)?;
    let login = match login {
        Some(login) => self::login(login, environment)?,
        None => unnamed(environment),
    };
    let mode = match kind {
        Kind::Single => Mode::Single,
        Kind::Cluster => Mode::Cluster,
        Kind::Sentinel => Mode::Sentinel { master, login: parameters.sentinels(environment)? },
    };
    Ok(Endpoint {
        prefix: parameters.prefix(&mode)?,
        mode,
        hosts,
        login,
        db,
        patience: parameters.patience()?,
        tls: encrypted.then(|| Tls::read(|name| parameters.get(name))).transpose()?,
    })
}

/// What keys begin with if the URL does not say.
pub(super) fn usual_prefix(mode: &Mode) -> &'static str {
    match mode {
        Mode::Single | Mode::Sentinel { .. } => "",
        Mode::Cluster => CLUSTER_PREFIX,
    }
}

/// Login, hosts, path and parameters. There is one `@` at most, so that nothing behind it is a part of a password.
fn split(rest: &str) -> Result<(Option<&str>, &str, &str, &str), OpenError> {
    let (login, rest) = match rest.split_once('@') {
        Some((login, rest)) => (Some(login), rest),
        None => (None, rest),
    };
    if rest.contains('@') || login.is_some_and(|login| login.contains(['/', '?'])) {
        return bad_url(
            "it has an `@` that does not follow the user; within a name, a password or a parameter write `@` as %40, \
             `/` as %2F and `?` as %3F",
        );
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    Ok((login, place, path, query))
}

fn hosts(place: &str, kind: Kind) -> Result<Vec<Address>, OpenError> {
    if kind == Kind::Single && place.contains(',') {
        return bad_url(
            "it names several hosts; write redis+sentinel://… if they are sentinels, redis+cluster://… if they are nodes \
             of a cluster, and otherwise name one",
        );
    }
    place.split(',').map(|host| address(host, kind)).collect()
}

/// A host with its port. Without an `@` in the URL, what stands for the port may be a password.
fn address(text: &str, kind: Kind) -> Result<Address, OpenError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or("none"))),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_named = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let is_address = text.starts_with('[') && host.parse::<std::net::Ipv6Addr>().is_ok();
    if host.is_empty() {
        let form = match kind {
            Kind::Single => "redis://host:6379",
            Kind::Sentinel => "redis+sentinel://host1:26379,host2:26379,host3:26379/mymaster",
            Kind::Cluster => "redis+cluster://host1:6379,host2:6379,host3:6379",
        };
        return bad_url(format!("it names no host; write {form}"));
    }
    if !is_address && (text.starts_with('[') || !is_named) {
        return bad_url(
            "a host has a sign that no host can have; write a name, 127.0.0.1 or [::1], and what belongs to a password \
             before an `@`",
        );
    }
    let port = port.map_or(Some(kind.port()), |port| port.parse().ok().filter(|port| *port != 0));
    match port {
        Some(port) => Ok(Address { host: host.into(), port }),
        None => bad_url(format!("a port is no number from 1 to 65535; write host:{}", kind.port())),
    }
}

/// The master's name, which only sentinels know one by, and the database.
fn path_of(path: &str, kind: Kind) -> Result<(String, u32), OpenError> {
    let path = path.trim_end_matches('/');
    let (master, db) = match kind {
        Kind::Single | Kind::Cluster => (String::new(), path),
        Kind::Sentinel => {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            (decoded("the master's name", master)?, db)
        }
    };
    if kind == Kind::Sentinel && master.is_empty() {
        return bad_url(
            "it does not name the master that the sentinels watch; write redis+sentinel://host1,host2,host3/mymaster",
        );
    }
    let number = if db.is_empty() { Some(0) } else { db.parse().ok() };
    let Some(db) = number else {
        return bad_url("its path is not the number of a database; write redis://host:6379/0");
    };
    if kind == Kind::Cluster && db != 0 {
        return bad_url(format!(
            "it names the database {db}, and a cluster has only 0; leave it out, and use `prefix` to keep stores apart"
        ));
    }
    Ok((master, db))
}

/// A user with a password. One alone could be either of the two, and is then better not shown.
fn login(text: &str, environment: Environment<'_>) -> Result<Option<Login>, OpenError> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(decoded("the password", password)?)),
        None => (text, None),
    };
    let user = Some(decoded("the user", user)?).filter(|user| !user.is_empty());
    let (password, source) = match (password, environment(PASSWORD)) {
        (Some(password), _) => (password, Source::Url),
        (None, Some(password)) => (password, Source::Environment),
        (None, None) => {
            return bad_url(format!(
                "it has a user without a password; write redis://user:password@host, redis://:password@host for a \
                 password alone, or put the password into {PASSWORD}"
            ));
        }
    };
    // Somebody without a name and a password is nobody.
    let is_nobody = user.is_none() && password.is_empty();
    Ok(Some(Login { user, password, source }).filter(|_| !is_nobody))
}

/// Whoever connects where the URL names nobody.
fn unnamed(environment: Environment<'_>) -> Option<Login> {
    let password = environment(PASSWORD)?;
    Some(Login { user: None, password, source: Source::Environment })
}

fn decoded(what: &str, text: &str) -> Result<String, OpenError> {
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => bad_url(format!("{what} is not UTF-8 once its % are decoded; write a % itself as %25")),
    }
}

fn bad_url<T>(what: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::BadUrl(what.into()))
}

pub(super) fn bad(name: &str, what: impl Into<String>) -> OpenError {
    OpenError::BadParameter { name: name.into(), what: what.into() }
}

/// What stands behind the `?`.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn read(query: &str) -> Result<Self, OpenError> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let read = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !KNOWN.contains(&name) {
                return Err(bad(name, nearest::unknown(name, &KNOWN)));
            }
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| bad(name, "is not UTF-8 once its % are decoded"))?;
            Ok((name.into(), value.into_owned()))
        });
        Ok(Self(read.collect::<Result<_, _>>()?))
    }

    /// Of several the last counts.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether all of them mean something there.
    fn check(&self, kind: Kind, encrypted: bool) -> Result<(), OpenError> {
        if let Some(name) = OF_TLS.iter().find(|name| !encrypted && self.get(name).is_some()) {
            return Err(bad(name, "is for what is encrypted; let the URL begin with rediss"));
        }
        let stray = OF_SENTINELS.iter().find(|name| kind != Kind::Sentinel && self.get(name).is_some());
        match stray {
            Some(name) => Err(bad(name, "is for sentinels; write redis+sentinel://host1,host2/mymaster")),
            None => Ok(()),
        }
    }

    /// How to log in at the sentinels, which have users of their own.
    fn sentinels(&self, environment: Environment<'_>) -> Result<Option<Login>, OpenError> {
        let user = self.get("sentinel_user").filter(|user| !user.is_empty()).map(String::from);
        let told = self.get("sentinel_password").map(|password| (password.to_string(), Source::Url));
        let found = told.or_else(|| Some((environment(SENTINEL_PASSWORD)?, Source::Environment)));
        match (user, found) {
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err(bad("sentinel_user", format!("needs sentinel_password, or {SENTINEL_PASSWORD} set")))
            }
            (user, Some((password, source))) => Ok(Some(Login { user, password, source })),
        }
    }

    fn patience(&self) -> Result<Duration, OpenError> {
        let Some(given) = self.get("connect_timeout") else { return Ok(Duration::from_secs(PATIENCE)) };
        match given.parse() {
            Ok(seconds @ 1..=MOST_PATIENCE) => Ok(Duration::from_secs(seconds)),
            Ok(_) | Err(_) => {
                let what = format!("is `{given}`, and can only be seconds, from 1 to {MOST_PATIENCE}");
                Err(bad("connect_timeout", what))
            }
        }
    }

    fn prefix(&self, mode: &Mode) -> Result<String, OpenError> {
        let Some(given) = self.get("prefix") else { return Ok(usual_prefix(mode).into()) };
        if given.len() > LONGEST_PREFIX || !given.bytes().all(|byte| byte.is_ascii_graphic()) {
            let signs = "letters, digits and other printable signs of ASCII, without blanks";
            return Err(bad("prefix", format!("can only be up to {LONGEST_PREFIX} {signs}")));
        }
        let braces = given.chars().filter(|c| ['{', '}'].contains(c)).count();
        if matches!(mode, Mode::Cluster) && (hash_tag(given).is_none() || braces != 2) {
            let what = format!(
                "is `{given}`, and on a cluster it needs exactly one hash tag, so that all keys are in one slot; write \
                 {CLUSTER_PREFIX} or another in {{}}"
            );
            return Err(bad("prefix", what));
        }
        Ok(given.into())
    }
}
