//! What is said on every new connection, and whether what answers is a server that a store can be kept on.

use std::error::Error;
use std::io::ErrorKind as Io;
use std::sync::Arc;

use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Value, from_redis_value};

use super::{Address, Endpoint, Login, Mode, NAME, Source, url};
use crate::error::{OpenError, codes, reason};

/// The oldest version whose commands and scripts do what we need.
pub(crate) const OLDEST_SERVER: u32 = 7;

/// Commands that a user needs beside those on keys.
const COMMANDS: &str =
    "+@read +@write +@scripting +@pubsub +@connection +@transaction +info +role +time +cluster|slots";

/// A conversation with one server.
pub(super) struct Greeting<'a> {
    endpoint: &'a Endpoint,
    at: &'a Address,
    login: Option<&'a Login>,
}

/// What kind of server it is, by what it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Alone,
    Node,
    Sentinel,
}

impl<'a> Greeting<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, at: &'a Address, login: Option<&'a Login>) -> Self {
        Self { endpoint, at, login }
    }

    /// The first words. They are sent alone: to whoever is not let in nothing else is said.
    pub(super) fn login(&self) -> Cmd {
        let Some(Login { user, password, .. }) = self.login else { return redis::cmd("PING") };
        let mut auth = redis::cmd("AUTH");
        auth.arg(user.as_deref()).arg(password);
        auth
    }

    pub(super) fn is_let_in(&self, answer: RedisResult<Value>) -> Result<(), OpenError> {
        self.read_ping(answer)
    }

    /// A server that cannot write to its disk refuses `PING` as it refuses writes, and still answers reads.
    fn read_ping(&self, answer: RedisResult<Value>) -> Result<(), OpenError> {
        match answer {
            Err(error) if codes(&error) == ["MISCONF"] => Ok(()),
            answer => self.read::<Value>(answer).map(drop),
        }
    }

    /// What we want to know, and what we set. Each is answered, whether or not the others are refused.
    pub(super) fn questions(&self) -> Pipeline {
        let mut questions = redis::pipe();
        questions.cmd("INFO").arg("server").cmd("ROLE").cmd("PING");
        questions.cmd("CLIENT").arg("SETNAME").arg(NAME);
        if self.endpoint.db != 0 {
            questions.cmd("SELECT").arg(self.endpoint.db);
        }
        questions.ignore_errors();
        questions
    }

    /// Whether it is of the kind that the URL says, new enough, and a master.
    pub(super) fn is_fit(&self, answers: RedisResult<Vec<RedisResult<Value>>>) -> Result<(), OpenError> {
        let answers = answers.map_err(|error| self.explain(&error))?;
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap_or(Ok(Value::Nil));
        let (info, role, ping, _named, selected) = (next(), next(), next(), next(), next());
        let info: String = self.read(info)?;
        let found = line(&info, "redis_version").ok_or_else(|| self.is_strange("it tells no version"))?;
        if found
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .is_none_or(|major: u32| major < OLDEST_SERVER)
        {
            return Err(OpenError::TooOld { at: self.at.to_string(), found: found.into() });
        }
        self.is_of_kind(match line(&info, "redis_mode") {
            Some("cluster") => Kind::Node,
            Some("sentinel") => Kind::Sentinel,
            Some(_) | None => Kind::Alone,
        })?;
        self.is_master(self.read(role)?)?;
        self.read_ping(ping)?;
        match selected {
            Err(error) if reason(&error).contains("out of range") => {
                Err(OpenError::NoDatabase { at: self.at.to_string(), database: self.endpoint.db })
            }
            selected => self.read::<Value>(selected).map(drop),
        }
    }

    /// Whether it is what the URL says.
    fn is_of_kind(&self, found: Kind) -> Result<(), OpenError> {
        match (&self.endpoint.mode, found) {
            (Mode::Single | Mode::Sentinel { .. }, Kind::Alone) | (Mode::Cluster, Kind::Node) => Ok(()),
            (Mode::Single | Mode::Sentinel { .. } | Mode::Cluster, found) => Err(self.is_other(found)),
        }
    }

    /// What it means that it is of a kind that the URL does not say.
    pub(super) fn is_other(&self, kind: Kind) -> OpenError {
        let scheme = |kind| self.endpoint.scheme(kind);
        let (found, advice) = match (kind, &self.endpoint.mode) {
            (Kind::Node, _) => {
                ("is a node of a cluster", format!("write {}host1,host2,host3", scheme("+cluster")))
            }
            (Kind::Sentinel, _) => {
                ("is a sentinel", format!("write {}host1,host2,host3/mymaster", scheme("+sentinel")))
            }
            (Kind::Alone, Mode::Sentinel { .. }) => (
                "is no sentinel",
                format!("name the sentinels, mostly at port 26379, or write {}host:6379", scheme("")),
            ),
            (Kind::Alone, Mode::Single | Mode::Cluster) => {
                ("is not part of a cluster", format!("write {}host:6379", scheme("")))
            }
        };
        OpenError::WrongKind { at: self.at.to_string(), found: found.into(), advice }
    }

    fn is_master(&self, role: Vec<Value>) -> Result<(), OpenError> {
        let mut role = role.into_iter();
        let mut word =
            || role.next().and_then(|word| from_redis_value::<String>(word).ok()).unwrap_or_default();
        match word().as_str() {
            "master" => Ok(()),
            "slave" => {
                let of = Address { host: word(), port: word().parse().unwrap_or_default() };
                Err(OpenError::Replica { at: self.at.to_string(), of: of.to_string() })
            }
            other => Err(self.is_strange(&format!("its role is {other:?}"))),
        }
    }

    fn is_strange(&self, reason: &str) -> OpenError {
        OpenError::NotRedis { at: self.at.to_string(), reason: reason.into() }
    }

    /// An answer as what it should be.
    pub(super) fn read<T: redis::FromRedisValue>(&self, answer: RedisResult<Value>) -> Result<T, OpenError> {
        let answer = answer.map_err(|error| self.explain(&error))?;
        from_redis_value(answer).map_err(|error| self.is_strange(&error.to_string()))
    }

    /// What it means that a server could not be talked to, or did not answer as it should.
    pub(super) fn explain(&self, error: &RedisError) -> OpenError {
        let at = self.at.to_string();
        if let Some(tls) = tls_error(error) {
            return match tls {
                rustls::Error::InvalidMessage(_) => self.is_strange(
                    "it does not encrypt; what is not encrypted begins with redis, not with rediss",
                ),
                told => OpenError::NotTrusted { at, reason: told.to_string() },
            };
        }
        if error.is_timeout() {
            return self.endpoint.silent(self.at);
        }
        match error.kind() {
            ErrorKind::Parse => return self.is_strange(&reason(error)),
            ErrorKind::AuthenticationFailed => return self.not_let_in(&reason(error)),
            _ => {}
        }
        match codes(error).first().map(String::as_str) {
            Some("NOAUTH" | "WRONGPASS") => self.not_let_in(&reason(error)),
            Some("DENIED") => {
                let role = self.user().into();
                let advice = "give it a password (requirepass), or turn protected-mode off where only friends reach it";
                let reason =
                    "it is in protected mode, and takes connections from its own machine only".into();
                OpenError::NotLetIn { at, role, reason, advice: advice.into() }
            }
            Some("NOPERM") => {
                OpenError::NoRight { role: self.user().into(), reason: reason(error), grant: self.grant() }
            }
            Some("ERR") if reason(error).contains("AUTH") => self.not_let_in(&reason(error)),
            Some(_) => OpenError::Failed { at, reason: reason(error) },
            None => OpenError::Unreachable { at, reason: self.unreached(error) },
        }
    }

    /// Why it could not be reached. Who talks plainly to one that encrypts hears nothing.
    fn unreached(&self, error: &RedisError) -> String {
        let hung_up = io_error(error).is_some_and(|error| {
            [Io::UnexpectedEof, Io::ConnectionReset, Io::BrokenPipe].contains(&error.kind())
        });
        match (hung_up, self.endpoint.is_encrypted()) {
            (true, false) => {
                "it closed the connection without an answer (if it encrypts, let the URL begin with rediss)"
                    .into()
            }
            (true, true) => {
                "it closed the connection without an answer (if it wants a certificate: sslcert and sslkey)"
                    .into()
            }
            (false, _) => reason(error),
        }
    }

    fn user(&self) -> &str {
        self.login.and_then(|login| login.user.as_deref()).unwrap_or("default")
    }

    fn not_let_in(&self, reason: &str) -> OpenError {
        let of_sentinel = self.is_of_sentinel();
        let variable = if of_sentinel { url::SENTINEL_PASSWORD } else { url::PASSWORD };
        let advice = match (self.login.map(|login| login.source), of_sentinel) {
            (None, true) => format!("give the sentinels' password in {variable}, or in sentinel_password"),
            (None, false) => {
                format!(
                    "give a password in {variable}, or in the URL, as in {}user:password@host",
                    self.endpoint.scheme("")
                )
            }
            (Some(Source::Environment), _) => {
                format!("check the password in {variable}, and the user in the URL")
            }
            (Some(Source::Url), true) => "check sentinel_user and sentinel_password in the URL".into(),
            (Some(Source::Url), false) => "check user and password in the URL".into(),
        };
        let (at, role, reason) = (self.at.to_string(), self.user().into(), reason.into());
        OpenError::NotLetIn { at, role, reason, advice }
    }

    fn is_of_sentinel(&self) -> bool {
        matches!(self.endpoint.mode, Mode::Sentinel { .. }) && self.endpoint.hosts.contains(self.at)
    }

    /// What gives a user the rights that it needs.
    fn grant(&self) -> String {
        format!("ACL SETUSER {} ~{}* &* {COMMANDS}", self.user(), self.endpoint.prefix)
    }
}

/// A line of `INFO`.
pub(crate) fn line<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

/// What the driver was told, which it keeps in a box of its own.
fn cause(error: &RedisError) -> Option<&Arc<dyn Error + Send + Sync>> {
    error.source().and_then(|source| source.downcast_ref())
}

fn io_error(error: &RedisError) -> Option<&std::io::Error> {
    cause(error).and_then(|cause| cause.downcast_ref())
}

/// What went wrong with the encryption, if that is it.
fn tls_error(error: &RedisError) -> Option<&rustls::Error> {
    let within = io_error(error).and_then(|error| error.get_ref()).and_then(|error| error.downcast_ref());
    within.or_else(|| cause(error).and_then(|cause| cause.downcast_ref()))
}
