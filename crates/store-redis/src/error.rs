//! Errors of Redis, and their meaning for callers and operators.

use pointsman_core::store::StoreError;
use pointsman_store::error::{BoxError, Fault};
use redis::{ErrorKind, RedisError};

/// Reason why a store could not be opened or its server could not be reached. The messages say what an operator can do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the URL of Redis cannot be used: {0}")]
    BadUrl(String),
    #[error("the URL of Redis cannot be used: `{name}` {problem}")]
    BadParameter { name: String, problem: String },
    #[error(
        "cannot connect to Redis at {address}: {reason}; is it running, and can this machine reach it there?"
    )]
    Unreachable { address: String, reason: String },
    #[error(
        "the server at {address} does not speak the Redis protocol ({reason}); check host and port in the URL"
    )]
    NotRedis { address: String, reason: String },
    #[error("Redis at {address} refused the login of user {role}: {reason}; {advice}")]
    LoginRefused { address: String, role: String, reason: String, advice: String },
    #[error(
        "no trusted TLS connection to Redis at {address}: {reason}; check sslmode, sslrootcert, sslcert and sslkey \
         in the URL, and the certificate of the server"
    )]
    TlsFailed { address: String, reason: String },
    #[error(
        "there is no database {database} at {address}; name a smaller number in the URL, or raise `databases` in the \
         configuration of the server"
    )]
    NoDatabase { address: String, database: u32 },
    #[error(
        "Redis at {address} has version {found}, and 7.0 or newer is needed; upgrade it, or name another"
    )]
    ServerTooOld { address: String, found: String },
    #[error("user {role} lacks permissions ({reason}); let an administrator run: {grant}")]
    MissingPrivilege { role: String, reason: String, grant: String },
    #[error("Redis at {address} {found}, which does not match the URL; {advice}")]
    WrongServerKind { address: String, found: String, advice: String },
    #[error(
        "Redis at {address} is a replica of {master}, and replicas are read-only; name the master, or the \
         sentinels that know which is the master, as in redis+sentinel://host1,host2,host3/mymaster"
    )]
    IsReplica { address: String, master: String },
    #[error(
        "the sentinel at {address} watches no master named {name}; name one that it knows: {known_masters}"
    )]
    UnknownMaster { address: String, name: String, known_masters: String },
    #[error(
        "no node of the cluster at {address} has slot {slot}, which has the keys of the store; wait until \
         a failover has ended, or see `redis-cli --cluster check {address}`"
    )]
    SlotNotServed { address: String, slot: u16 },
    #[error(
        "the store at {address} was created by a newer version of Pointsman (its layout is {found}, this version \
         knows up to {supported}); run that version, or restore a backup made before the upgrade"
    )]
    LayoutTooNew { address: String, found: u32, supported: u32 },
    #[error(
        "the store at {address} was created before the first release of Pointsman (its layout is {found}, this version \
         needs {supported}) and cannot be upgraded; run `pointsman move` of the version that made it to copy it to a \
         file, or use another prefix, as in ?prefix=pointsman:"
    )]
    LayoutTooOld { address: String, found: u32, supported: u32 },
    #[error(
        "at {address} there is a key {key} that is not Pointsman's; name another database in the URL, or \
         another prefix, as in ?prefix=pointsman:"
    )]
    KeyOfAnotherApplication { address: String, key: String },
    #[error("Redis at {address} failed")]
    OpenFailed { address: String, source: BoxError },
    #[error("data of the store in Redis is damaged")]
    Damaged(#[source] BoxError),
}

/// Returns the error codes of a server error; a pipeline can have several, in the order of its commands.
pub(crate) fn error_codes(error: &RedisError) -> Vec<String> {
    let errors = error.clone().into_server_errors();
    errors.iter().flat_map(|errors| errors.iter()).map(|(_, error)| error.code().to_string()).collect()
}

/// Error codes with which a server cannot serve the store now, while another server, or the same one later, can.
const RECONNECT_CODES: [&str; 9] =
    ["ASK", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOAUTH", "NOREPLICAS", "READONLY", "TRYAGAIN"];

/// Returns whether the server must be resolved again, on a new connection, where the same command may succeed. Other
/// errors are caused by the command, or would be repeated by the server.
pub(crate) fn must_reconnect(error: &RedisError) -> bool {
    let broken = matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::AuthenticationFailed);
    broken || error_codes(error).iter().any(|code| RECONNECT_CODES.contains(&code.as_str()))
}

/// Returns whether a command that failed with this fault may succeed on a new connection.
pub(crate) fn is_connection_fault(fault: &Fault) -> bool {
    let Fault::Database(error) = fault else { return false };
    error.is::<OpenError>() || error.downcast_ref().is_some_and(must_reconnect)
}

/// Returns whether an error means damaged data: a key has the wrong type, or contains a value that no
/// version of Pointsman writes.
fn is_damaged_data(error: &BoxError) -> bool {
    error.downcast_ref::<RedisError>().is_some_and(|error| {
        error.kind() == ErrorKind::UnexpectedReturnType
            || error_codes(error).iter().any(|code| code == "WRONGTYPE")
    })
}

/// Describes an error as a part of a sentence; of a server error, its first sentence.
pub(crate) fn error_reason(error: &RedisError) -> String {
    if error.is_timeout() {
        return "no reply in time".into();
    }
    let errors = error.clone().into_server_errors();
    let reason = match errors.as_ref().and_then(|errors| errors.first()) {
        Some((_, error)) => {
            let details = error.details().unwrap_or_default();
            // The position within a script does not help an operator.
            let details = details.split(" script: ").next().unwrap_or_default();
            format!("{} {}", error.code(), details.split(". ").next().unwrap_or_default())
        }
        None => error.to_string(),
    };
    reason.lines().next().unwrap_or_default().trim_end().trim_end_matches('.').to_string()
}

/// Converts a fault into the error of the store API.
pub(crate) fn store_error_from_fault(fault: Fault) -> StoreError {
    match fault {
        Fault::Damaged(cause) => StoreError::damaged(cause),
        Fault::Database(error) if is_damaged_data(&error) => StoreError::damaged(shorten_driver_error(error)),
        Fault::Database(error) => StoreError::unavailable(shorten_driver_error(error)),
    }
}

/// An error of the driver, displayed as [`error_reason`] describes it. It has no source: the driver's text contains
/// that of its source.
#[derive(Debug, thiserror::Error)]
#[error("{}", error_reason(.0))]
pub(crate) struct DriverError(pub(crate) RedisError);

/// Wraps an error of the driver in a [`DriverError`].
fn shorten_driver_error(error: BoxError) -> BoxError {
    match error.downcast::<RedisError>() {
        Ok(error) => Box::new(DriverError(*error)),
        Err(other) => other,
    }
}

/// A commit that was not applied, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct CommitRefusedError(String);

pub(crate) fn commit_refused_fault(reason: impl Into<String>) -> Fault {
    CommitRefusedError(reason.into()).into()
}

/// Converts a fault into the reason why the store could not be opened.
pub(crate) fn open_error_from_fault(address: &str, fault: Fault) -> OpenError {
    match fault {
        Fault::Damaged(cause) => OpenError::Damaged(cause),
        Fault::Database(error) => match error.downcast::<OpenError>() {
            Ok(error) => *error,
            Err(error) => {
                OpenError::OpenFailed { address: address.into(), source: shorten_driver_error(error) }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(message: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{message}\r\n").as_bytes()).unwrap();
        value.extract_error().unwrap_err()
    }

    #[test]
    fn redirects_and_broken_connections_cause_a_reconnect() {
        for message in [
            "MOVED 6572 10.0.0.1:6379",
            "ASK 6572 10.0.0.1:6379",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "CLUSTERDOWN The cluster is down",
            "READONLY You can't write against a read only replica. script: 1f, on @user_script:1.",
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "NOREPLICAS Not enough good replicas to write.",
            "NOAUTH Authentication required.",
        ] {
            assert!(
                must_reconnect(&server_error(message)) && is_connection_fault(&server_error(message).into()),
                "{message}"
            );
        }
        let reset = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        let timed_out = RedisError::from(std::io::Error::from(std::io::ErrorKind::WouldBlock));
        assert!(must_reconnect(&reset) && must_reconnect(&timed_out));
        assert_eq!(error_reason(&timed_out), "no reply in time");
        let unreachable = OpenError::Unreachable { address: "a:1".into(), reason: "refused".into() };
        assert!(is_connection_fault(&unreachable.into()));
    }

    #[test]
    fn command_errors_do_not_cause_a_reconnect() {
        for (message, rest) in [
            ("ERR Error running script", ""),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                " script: 1f, on @user_script:1.",
            ),
            ("OOM command not allowed when used memory > 'maxmemory'", ". script: 1f, on @user_script:1."),
            ("MISCONF Errors writing to the AOF file: No space left on device", ""),
            ("NOSCRIPT No matching script", ". Please use EVAL."),
            ("BUSY Redis is busy running a script", ". You can only call SCRIPT KILL or SHUTDOWN NOSAVE."),
            ("NOPERM this user has no permissions to run the 'eval' command", ""),
            (
                "ERR AUTH <password> called without any password",
                ". Are you sure your configuration is correct?",
            ),
        ] {
            let error = server_error(&[message, rest].concat());
            assert!(!must_reconnect(&error), "{message}");
            assert_eq!(error_reason(&error), message, "only the first sentence is kept");
        }
        assert!(!is_connection_fault(&Fault::damaged("a row")));
    }

    #[test]
    fn only_undecodable_data_counts_as_damaged() {
        let converted = |message: &str| store_error_from_fault(server_error(message).into());
        assert!(matches!(converted("WRONGTYPE Operation against a key"), StoreError::Damaged(_)));
        assert!(matches!(converted("OOM command not allowed"), StoreError::Unavailable(_)));
        assert!(
            matches!(store_error_from_fault(Fault::damaged("a row")), StoreError::Damaged(cause) if cause.to_string() == "a row")
        );
    }
}
