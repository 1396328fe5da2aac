//! Handshake on each new connection: log in, and check that the server is suitable for a store.

use std::error::Error;
use std::io::ErrorKind as IoErrorKind;
use std::sync::Arc;

use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Value, from_redis_value};

use super::{CLIENT_NAME, DiscoveryMode, Endpoint, Login, PasswordSource, ServerAddress, url};
use crate::error::{DriverError, OpenError, error_codes, error_reason};

/// Oldest supported major version of Redis.
pub(crate) const MIN_SERVER_MAJOR: u32 = 7;

/// ACL rules that a user needs besides access to the keys.
const REQUIRED_ACL_RULES: &str =
    "+@read +@write +@scripting +@pubsub +@connection +@transaction +info +role +time +cluster|slots";

/// Handshake with one server.
pub(super) struct Handshake<'a> {
    endpoint: &'a Endpoint,
    address: &'a ServerAddress,
    login: Option<&'a Login>,
}

/// Kind of server, as reported by `INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    Standalone,
    ClusterNode,
    Sentinel,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, address: &'a ServerAddress, login: Option<&'a Login>) -> Self {
        Self { endpoint, address, login }
    }

    /// Returns the login command, or PING if there is no login. It is sent alone: nothing else is sent before the login
    /// succeeds.
    pub(super) fn login_or_ping_command(&self) -> Cmd {
        let Some(Login { user, password, .. }) = self.login else { return redis::cmd("PING") };
        let mut auth = redis::cmd("AUTH");
        auth.arg(user.as_deref()).arg(password);
        auth
    }

    pub(super) fn check_login_reply(&self, reply: RedisResult<Value>) -> Result<(), OpenError> {
        self.check_ping_reply(reply)
    }

    /// Accepts the error `MISCONF`: a server that cannot write to its disk refuses `PING` and writes with it, but still
    /// serves reads.
    fn check_ping_reply(&self, reply: RedisResult<Value>) -> Result<(), OpenError> {
        match reply {
            Err(error) if error_codes(&error) == ["MISCONF"] => Ok(()),
            reply => self.decode_reply::<Value>(reply).map(drop),
        }
    }

    /// Returns the commands that query the server and configure the connection. Each has its own reply, even if others fail.
    pub(super) fn inspect_and_setup_commands(&self) -> Pipeline {
        let mut commands = redis::pipe();
        commands.cmd("INFO").arg("server").cmd("ROLE").cmd("PING");
        commands.cmd("CLIENT").arg("SETNAME").arg(CLIENT_NAME);
        if self.endpoint.database != 0 {
            commands.cmd("SELECT").arg(self.endpoint.database);
        }
        commands.ignore_errors();
        commands
    }

    /// Checks that the server is of the kind that the URL names, recent enough, and a master.
    pub(super) fn check_server(
        &self,
        replies: RedisResult<Vec<RedisResult<Value>>>,
    ) -> Result<(), OpenError> {
        let replies = replies.map_err(|error| self.open_error_from(&error))?;
        let mut replies = replies.into_iter();
        let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
        let (info, role, ping, _set_name, select) = (next(), next(), next(), next(), next());
        let info: String = self.decode_reply(info)?;
        let version = info_value(&info, "redis_version")
            .ok_or_else(|| self.not_redis_error("it reports no version"))?;
        if version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .is_none_or(|major: u32| major < MIN_SERVER_MAJOR)
        {
            return Err(OpenError::ServerTooOld { address: self.address.to_string(), found: version.into() });
        }
        self.check_server_kind(match info_value(&info, "redis_mode") {
            Some("cluster") => ServerKind::ClusterNode,
            Some("sentinel") => ServerKind::Sentinel,
            Some(_) | None => ServerKind::Standalone,
        })?;
        self.check_is_master(self.decode_reply(role)?)?;
        self.check_ping_reply(ping)?;
        match select {
            Err(error) if error_reason(&error).contains("out of range") => Err(OpenError::NoDatabase {
                address: self.address.to_string(),
                database: self.endpoint.database,
            }),
            select => self.decode_reply::<Value>(select).map(drop),
        }
    }

    /// Checks the kind of the server against the URL.
    fn check_server_kind(&self, found: ServerKind) -> Result<(), OpenError> {
        match (&self.endpoint.mode, found) {
            (DiscoveryMode::Single | DiscoveryMode::Sentinel { .. }, ServerKind::Standalone)
            | (DiscoveryMode::Cluster, ServerKind::ClusterNode) => Ok(()),
            (DiscoveryMode::Single | DiscoveryMode::Sentinel { .. } | DiscoveryMode::Cluster, found) => {
                Err(self.wrong_kind_error(found))
            }
        }
    }

    /// Returns the error for a server of another kind than the URL names.
    pub(super) fn wrong_kind_error(&self, kind: ServerKind) -> OpenError {
        let scheme = |mode_suffix| self.endpoint.url_scheme(mode_suffix);
        let (found, advice) = match (kind, &self.endpoint.mode) {
            (ServerKind::ClusterNode, _) => {
                ("is a node of a cluster", format!("write {}host1,host2,host3", scheme("+cluster")))
            }
            (ServerKind::Sentinel, _) => {
                ("is a sentinel", format!("write {}host1,host2,host3/mymaster", scheme("+sentinel")))
            }
            (ServerKind::Standalone, DiscoveryMode::Sentinel { .. }) => (
                "is not a sentinel",
                format!("name the sentinels, mostly at port 26379, or write {}host:6379", scheme("")),
            ),
            (ServerKind::Standalone, DiscoveryMode::Single | DiscoveryMode::Cluster) => {
                ("is not part of a cluster", format!("write {}host:6379", scheme("")))
            }
        };
        OpenError::WrongServerKind { address: self.address.to_string(), found: found.into(), advice }
    }

    fn check_is_master(&self, role_reply: Vec<Value>) -> Result<(), OpenError> {
        let mut parts = role_reply.into_iter();
        let mut next_text =
            || parts.next().and_then(|part| from_redis_value::<String>(part).ok()).unwrap_or_default();
        match next_text().as_str() {
            "master" => Ok(()),
            "slave" => {
                let master =
                    ServerAddress { host: next_text(), port: next_text().parse().unwrap_or_default() };
                Err(OpenError::IsReplica { address: self.address.to_string(), master: master.to_string() })
            }
            other => Err(self.not_redis_error(&format!("its role is {other:?}"))),
        }
    }

    fn not_redis_error(&self, reason: &str) -> OpenError {
        OpenError::NotRedis { address: self.address.to_string(), reason: reason.into() }
    }

    /// Decodes a reply as the expected type.
    pub(super) fn decode_reply<T: redis::FromRedisValue>(
        &self,
        reply: RedisResult<Value>,
    ) -> Result<T, OpenError> {
        let reply = reply.map_err(|error| self.open_error_from(&error))?;
        from_redis_value(reply).map_err(|error| self.not_redis_error(&error.to_string()))
    }

    /// Converts an error of the driver into one that says what an operator can do.
    pub(super) fn open_error_from(&self, error: &RedisError) -> OpenError {
        let at = self.address.to_string();
        if let Some(tls) = find_tls_error(error) {
            return match tls {
                rustls::Error::InvalidMessage(_) => {
                    self.not_redis_error("it does not use TLS; begin the URL with redis, not with rediss")
                }
                other => OpenError::TlsFailed { address: at, reason: other.to_string() },
            };
        }
        if error.is_timeout() {
            return self.endpoint.timeout_error(self.address);
        }
        match error.kind() {
            ErrorKind::Parse => return self.not_redis_error(&error_reason(error)),
            ErrorKind::AuthenticationFailed => return self.login_refused_error(&error_reason(error)),
            _ => {}
        }
        match error_codes(error).first().map(String::as_str) {
            Some("NOAUTH" | "WRONGPASS") => self.login_refused_error(&error_reason(error)),
            Some("DENIED") => {
                let role = self.user_name().into();
                let advice = "set a password (requirepass), or disable protected-mode on a trusted network";
                let reason = "it is in protected mode and accepts only local connections".into();
                OpenError::LoginRefused { address: at, role, reason, advice: advice.into() }
            }
            Some("NOPERM") => OpenError::MissingPrivilege {
                role: self.user_name().into(),
                reason: error_reason(error),
                grant: self.grant_command(),
            },
            Some("ERR") if error_reason(error).contains("AUTH") => {
                self.login_refused_error(&error_reason(error))
            }
            Some(_) => OpenError::OpenFailed { address: at, source: DriverError(error.clone()).into() },
            None => OpenError::Unreachable { address: at, reason: self.describe_unreachable(error) },
        }
    }

    /// Describes why the server was not reached. A TLS server closes a plaintext connection without a reply.
    fn describe_unreachable(&self, error: &RedisError) -> String {
        let was_closed = find_io_error(error).is_some_and(|error| {
            [IoErrorKind::UnexpectedEof, IoErrorKind::ConnectionReset, IoErrorKind::BrokenPipe]
                .contains(&error.kind())
        });
        match (was_closed, self.endpoint.is_encrypted()) {
            (true, false) => {
                "it closed the connection without a reply (if it uses TLS, begin the URL with rediss)"
                    .into()
            }
            (true, true) => {
                "it closed the connection without a reply (if it requires a client certificate: sslcert and sslkey)"
                    .into()
            }
            (false, _) => error_reason(error),
        }
    }

    fn user_name(&self) -> &str {
        self.login.and_then(|login| login.user.as_deref()).unwrap_or("default")
    }

    fn login_refused_error(&self, reason: &str) -> OpenError {
        let is_sentinel = self.is_sentinel_login();
        let variable = if is_sentinel { url::SENTINEL_PASSWORD_VARIABLE } else { url::PASSWORD_VARIABLE };
        let advice = match (self.login.map(|login| login.password_source), is_sentinel) {
            (None, true) => format!("give the sentinels' password in {variable}, or in sentinel_password"),
            (None, false) => {
                format!(
                    "give a password in {variable}, or in the URL, as in {}user:password@host",
                    self.endpoint.url_scheme("")
                )
            }
            (Some(PasswordSource::Environment), _) => {
                format!("check the password in {variable}, and the user in the URL")
            }
            (Some(PasswordSource::Url), true) => {
                "check sentinel_user and sentinel_password in the URL".into()
            }
            (Some(PasswordSource::Url), false) => "check user and password in the URL".into(),
        };
        let (at, role, reason) = (self.address.to_string(), self.user_name().into(), reason.into());
        OpenError::LoginRefused { address: at, role, reason, advice }
    }

    fn is_sentinel_login(&self) -> bool {
        matches!(self.endpoint.mode, DiscoveryMode::Sentinel { .. })
            && self.endpoint.hosts.contains(self.address)
    }

    /// Returns the command that grants the required permissions to the user.
    fn grant_command(&self) -> String {
        format!("ACL SETUSER {} ~{}* &* {REQUIRED_ACL_RULES}", self.user_name(), self.endpoint.key_prefix)
    }
}

/// Returns the value of a field in the reply of `INFO`.
pub(crate) fn info_value<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

/// Returns the error that caused a driver error, which the driver wraps in an `Arc`.
fn driver_error_source(error: &RedisError) -> Option<&Arc<dyn Error + Send + Sync>> {
    error.source().and_then(|source| source.downcast_ref())
}

fn find_io_error(error: &RedisError) -> Option<&std::io::Error> {
    driver_error_source(error).and_then(|cause| cause.downcast_ref())
}

/// Returns the TLS error behind a driver error, if there is one.
fn find_tls_error(error: &RedisError) -> Option<&rustls::Error> {
    let in_io_error =
        find_io_error(error).and_then(|error| error.get_ref()).and_then(|error| error.downcast_ref());
    in_io_error.or_else(|| driver_error_source(error).and_then(|cause| cause.downcast_ref()))
}
