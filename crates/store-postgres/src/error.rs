//! Faults of the database, and what they mean to callers and to the person who runs it.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use pointsman_core::store::StoreError;
use pointsman_store::error::{BoxError, Fault};
use tokio_postgres::error::{DbError, SqlState};

use crate::connect::{Endpoint, Password};

/// Why a store could not be opened, in words for the person who runs it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the URL of the database cannot be used: {0}")]
    BadUrl(String),
    #[error("the URL of the database cannot be used: `{name}` {what}")]
    BadParameter { name: String, what: String },
    #[error(
        "cannot connect to PostgreSQL at {at}: {reason}; is it running, and can this machine reach it there?"
    )]
    Unreachable { at: String, reason: String },
    #[error(
        "what answers at {at} does not speak PostgreSQL's protocol ({reason}); check host and port in the URL"
    )]
    NotPostgres { at: String, reason: String },
    #[error("PostgreSQL at {at} does not let the role {role} in: {reason}; {advice}")]
    NotLetIn { at: String, role: String, reason: String, advice: String },
    #[error(
        "PostgreSQL at {at} cannot be talked to as the URL asks for: {reason}; check sslmode and sslrootcert in the URL, \
         and the certificate of the server"
    )]
    NotTrusted { at: String, reason: String },
    #[error("there is no database {database} at {at}; make it there: CREATE DATABASE {}", quoted(.database))]
    NoDatabase { at: String, database: String },
    #[error(
        "the URL names no database, and at {at} there is none that is named like the role, {role}; name one in the URL, \
         or make it there: CREATE DATABASE {}",
        quoted(.role)
    )]
    NoneNamed { at: String, role: String },
    #[error("PostgreSQL at {at} has version {found}, and 15 or newer is needed; upgrade it, or name another")]
    TooOld { at: String, found: i32 },
    #[error(
        "the database {database} keeps its texts in {found}, and UTF8 is needed; make one: \
         CREATE DATABASE {} TEMPLATE template0 ENCODING UTF8",
        quoted(&format!("{database}_utf8"))
    )]
    NotUtf8 { database: String, found: String },
    #[error("the role {role} has not the rights that it needs ({reason}); let an owner run: {grant}")]
    NoRight { role: String, reason: String, grant: String },
    #[error(
        "the schema pointsman was made by a newer version of Pointsman (its layout is {found}, this version knows up \
         to {known}); run that version, or restore a backup made before the upgrade"
    )]
    Newer { found: i32, known: i32 },
    #[error(
        "the database {database} has a schema pointsman that is not Pointsman's; rename that schema, or name another \
         database"
    )]
    NotOurs { database: String },
    #[error(
        "the layout of the schema pointsman was made by another {name} than the one of this version; run the version \
         that made it, or restore a backup"
    )]
    Altered { name: String },
    #[error(
        "the schema pointsman is not whole ({what}): somebody has removed something; run `pointsman doctor`, and restore \
         a backup"
    )]
    Incomplete { what: String },
    #[error(
        "the layout of the schema pointsman cannot be looked at now, because others use it: {by}; wait until they have \
         ended, or end them: SELECT pg_terminate_backend({pid})"
    )]
    Held { by: String, pid: i32 },
    #[error(
        "{at} is a pooler in transaction mode, and the URL does not say so; add pooler=transaction to it, or prepared \
         statements and settings will be those of others, and listen= with a direct URL (percent-encoded), so that \
         nodes can wake each other"
    )]
    Pooler { at: String },
    #[error("PostgreSQL at {at} could not do what is needed at the start: {reason}")]
    Failed { at: String, reason: String },
    #[error("what the database holds cannot be understood: {0}")]
    Damaged(String),
}

impl OpenError {
    /// What it means that no connection was made.
    pub(crate) fn unconnected(endpoint: &Endpoint, error: &ConnectError) -> Self {
        let at = endpoint.place();
        let ConnectError::Driver(driver) = error else {
            return Self::Unreachable { at, reason: error.to_string() };
        };
        let reason = reason(driver);
        // PgBouncer takes no settings that it does not know.
        if reason.contains("unsupported startup parameter") {
            return Self::Pooler { at };
        }
        let role = endpoint.role().to_string();
        match driver.code() {
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => match endpoint.names_database() {
                true => Self::NoDatabase { at, database: endpoint.database().into() },
                false => Self::NoneNamed { at, role },
            },
            Some(code) if code.code().starts_with("28") => {
                Self::not_let_in(endpoint, &reason, proofs(endpoint))
            }
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                let grant =
                    format!("GRANT CONNECT ON DATABASE {} TO {}", quoted(endpoint.database()), quoted(&role));
                Self::NoRight { role, reason, grant }
            }
            Some(_) => Self::Failed { at, reason },
            None => match driver.to_string().as_str() {
                // The server wants another kind of proof.
                "authentication error" => Self::not_let_in(endpoint, &reason, proofs(endpoint)),
                "invalid configuration" if reason.ends_with("password missing") => {
                    let advice = "give one in PGPASSWORD, or in the URL, as in postgres://user:password@host";
                    Self::not_let_in(endpoint, "it asks for a password, and none was given", advice.into())
                }
                "invalid configuration" => Self::BadUrl(reason),
                "unexpected message from server" | "error parsing response from server" => {
                    Self::NotPostgres { at, reason }
                }
                "error communicating with the server" | "error performing TLS handshake"
                    if is_foreign(driver) =>
                {
                    Self::NotPostgres { at, reason }
                }
                "error performing TLS handshake" => Self::NotTrusted { at, reason },
                _ => Self::Unreachable { at, reason },
            },
        }
    }

    fn not_let_in(endpoint: &Endpoint, reason: &str, advice: String) -> Self {
        let tried = match endpoint.names_user() {
            true => "",
            false => " (the URL names no user, so that the one was tried who runs this program)",
        };
        let (at, role) = (endpoint.place(), endpoint.role().into());
        Self::NotLetIn { at, role, reason: format!("{reason}{tried}"), advice }
    }
}

/// What may be wrong with what we have shown to the server.
fn proofs(endpoint: &Endpoint) -> String {
    let check = match endpoint.password() {
        _ if !endpoint.names_user() => return "name one in the URL, as in postgres://user@host".into(),
        None => "check the user in the URL",
        Some(Password::Url) => "check user and password in the URL",
        Some(Password::Environment) => "check the user in the URL, the password in PGPASSWORD",
    };
    format!("{check}, and pg_hba.conf on the server")
}

/// Whether what came back was none of the messages of PostgreSQL, nor of TLS.
fn is_foreign(error: &tokio_postgres::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| {
        let tls = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(said) => matches!(said, rustls::Error::InvalidMessage(_)),
            // Of these kinds is what the driver says; what the system says is of others.
            None => {
                let kinds = [ErrorKind::InvalidData, ErrorKind::InvalidInput, ErrorKind::Other];
                kinds.contains(&cause.kind())
            }
        }
    })
}

/// A name as it stands in a statement.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{}", reason(.0))]
    Driver(#[from] tokio_postgres::Error),
    #[error("it does not answer within {} s", .0.as_secs())]
    Silent(Duration),
}

impl ConnectError {
    /// The server has as many connections as it allows.
    pub(crate) fn is_crowded(&self) -> bool {
        match self {
            Self::Driver(error) => error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS),
            Self::Silent(_) => false,
        }
    }
}

/// What went wrong, in a line. The driver's own text does not say it; what it was caused by does.
pub(crate) fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_string();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Whether what the database says means that its contents are damaged.
pub(crate) fn is_damage(error: &BoxError) -> bool {
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
    code.is_some_and(|code| *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED)
}

/// Whether the connection broke, so that the same on another may succeed: it is closed, or the server ends it, because it
/// stops, somebody told it to, or it was idle for too long.
pub(crate) fn is_broken(fault: &Fault) -> bool {
    let Fault::Database(error) = fault else { return false };
    let Some(error) = error.downcast_ref::<tokio_postgres::Error>() else { return false };
    match error.as_db_error() {
        Some(said) => {
            let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
            ended.contains(said.code())
        }
        None => error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>()),
    }
}

/// Whether the database could be asked, but cannot keep what it was given: a value that it does not take or that is too
/// large.
pub(crate) fn is_of_contents(fault: &Fault) -> bool {
    let check = |error: &DbError| {
        // A row for which there is no slice violates none by name.
        *error.code() == SqlState::CHECK_VIOLATION && error.constraint().is_some()
    };
    db_error(fault).is_some_and(|error| {
        check(error) || ["22", "54"].iter().any(|class| error.code().code().starts_with(class))
    })
}

/// Whether what the database was given does not go with what is there: a number that is taken, say.
pub(crate) fn is_conflict(fault: &Fault) -> bool {
    code_of(fault).is_some_and(|code| code.code().starts_with("23"))
}

fn db_error(fault: &Fault) -> Option<&DbError> {
    let Fault::Database(error) = fault else { return None };
    error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::as_db_error)
}

fn code_of(fault: &Fault) -> Option<&SqlState> {
    db_error(fault).map(DbError::code)
}

/// A fault in a line.
pub(crate) fn words(fault: &Fault) -> String {
    match fault {
        Fault::Damaged(what) => what.clone(),
        Fault::Database(error) => describe(error),
    }
}

/// What a fault means to whoever asked the store.
pub(crate) fn explain(fault: &Fault) -> StoreError {
    match fault {
        Fault::Damaged(what) => StoreError::Damaged(what.clone()),
        Fault::Database(error) if is_damage(error) => StoreError::Damaged(describe(error)),
        Fault::Database(error) => StoreError::Unavailable(describe(error)),
    }
}

/// What went wrong, in a line, whoever says it.
pub(crate) fn describe(error: &BoxError) -> String {
    error.downcast_ref::<tokio_postgres::Error>().map_or_else(|| error.to_string(), reason)
}
