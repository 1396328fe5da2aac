//! Errors of the database, and their meaning for callers and operators.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;
use pointsman_store::error::{BoxError, Fault};
use tokio_postgres::error::{DbError, SqlState};

use crate::connect::{Endpoint, PasswordSource};

/// Why a store could not be opened, with advice for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the URL of the database is invalid: {0}")]
    BadUrl(String),
    #[error("the URL of the database is invalid: `{name}` {problem}")]
    BadParameter { name: String, problem: String },
    #[error(
        "cannot connect to PostgreSQL at {address}: {reason}; is it running, and can this machine reach it there?"
    )]
    Unreachable { address: String, reason: String },
    #[error(
        "the server at {address} does not speak PostgreSQL's protocol ({reason}); check host and port in the URL"
    )]
    NotPostgres { address: String, reason: String },
    #[error("PostgreSQL at {address} denies access to the role {role}: {reason}; {advice}")]
    LoginRefused { address: String, role: String, reason: String, advice: String },
    #[error(
        "the TLS connection to PostgreSQL at {address} failed: {reason}; check sslmode and sslrootcert in the URL, \
         and the certificate of the server"
    )]
    TlsFailed { address: String, reason: String },
    #[error("there is no database {database} at {address}; create it: CREATE DATABASE {}", quote_identifier(.database))]
    DatabaseNotFound { address: String, database: String },
    #[error(
        "the URL names no database, and at {address} there is none that is named like the role, {role}; name one in the \
         URL, or create it: CREATE DATABASE {}",
        quote_identifier(.role)
    )]
    DefaultDatabaseNotFound { address: String, role: String },
    #[error(
        "PostgreSQL at {address} has version {found}, and 15 or newer is required; upgrade it, or use another server"
    )]
    ServerTooOld { address: String, found: i32 },
    #[error(
        "the database {database} has the encoding {found}, and UTF8 is required; create one: \
         CREATE DATABASE {} TEMPLATE template0 ENCODING UTF8",
        quote_identifier(&format!("{database}_utf8"))
    )]
    NotUtf8 { database: String, found: String },
    #[error("the role {role} lacks privileges ({reason}); run as an owner: {grant}")]
    MissingPrivilege { role: String, reason: String, grant: String },
    #[error(
        "the schema pointsman was made by a newer version of Pointsman (its layout is {found}, this version supports \
         up to {supported}); run that version, or restore a backup made before the upgrade"
    )]
    SchemaTooNew { found: i32, supported: i32 },
    #[error(
        "the database {database} has a schema pointsman that is not Pointsman's; rename that schema, or use another \
         database"
    )]
    ForeignSchema { database: String },
    #[error(
        "the schema pointsman was migrated with a {name} that differs from the one of this version; run the version \
         that made it, or restore a backup"
    )]
    MigrationChanged { name: String },
    #[error(
        "the schema pointsman is incomplete ({problem}): something was removed from it; run `pointsman doctor`, and \
         restore a backup"
    )]
    SchemaIncomplete { problem: String },
    #[error(
        "the schema pointsman cannot be checked or migrated, because other sessions lock it: {holders}; wait until they \
         have ended, or end them: SELECT pg_terminate_backend({pid})"
    )]
    SchemaLocked { holders: String, pid: i32 },
    #[error(
        "{address} is a pooler in transaction mode, and the URL does not declare it; add pooler=transaction to it, or \
         prepared statements and settings get mixed up between clients, and listen= with a direct URL \
         (percent-encoded), so that nodes can wake each other"
    )]
    UndeclaredPooler { address: String },
    #[error("opening the store on PostgreSQL at {address} failed")]
    OpenFailed { address: String, source: BoxError },
    #[error("the database contains data that cannot be decoded; restore a backup, or report a bug")]
    Damaged(#[source] BoxError),
}

impl OpenError {
    /// Explains a failed connection.
    pub(crate) fn from_connect_error(endpoint: &Endpoint, error: ConnectError) -> Self {
        let address = endpoint.address();
        let ConnectError::Driver(DriverError(driver)) = error else {
            return Self::Unreachable { address, reason: error.to_string() };
        };
        let reason = format_driver_error(&driver);
        // PgBouncer rejects settings that it does not know.
        if reason.contains("unsupported startup parameter") {
            return Self::UndeclaredPooler { address };
        }
        let role = endpoint.role().to_string();
        match driver.code() {
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => match endpoint.has_url_database() {
                true => Self::DatabaseNotFound { address, database: endpoint.database().into() },
                false => Self::DefaultDatabaseNotFound { address, role },
            },
            Some(code) if code.code().starts_with("28") => {
                Self::login_refused_error(endpoint, &reason, credentials_advice(endpoint))
            }
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                let grant = format!(
                    "GRANT CONNECT ON DATABASE {} TO {}",
                    quote_identifier(endpoint.database()),
                    quote_identifier(&role)
                );
                Self::MissingPrivilege { role, reason, grant }
            }
            Some(_) => Self::OpenFailed { address, source: Box::new(DriverError(driver)) },
            None => match driver.to_string().as_str() {
                // The server requires another authentication method.
                "authentication error" => {
                    Self::login_refused_error(endpoint, &reason, credentials_advice(endpoint))
                }
                "invalid configuration" if reason.ends_with("password missing") => {
                    let advice = "give one in PGPASSWORD, or in the URL, as in postgres://user:password@host";
                    Self::login_refused_error(
                        endpoint,
                        "it requires a password, and none was given",
                        advice.into(),
                    )
                }
                "invalid configuration" => Self::BadUrl(reason),
                "unexpected message from server" | "error parsing response from server" => {
                    Self::NotPostgres { address, reason }
                }
                "error communicating with the server" | "error performing TLS handshake"
                    if is_protocol_mismatch(&driver) =>
                {
                    Self::NotPostgres { address, reason }
                }
                "error performing TLS handshake" => Self::TlsFailed { address, reason },
                _ => Self::Unreachable { address, reason },
            },
        }
    }

    fn login_refused_error(endpoint: &Endpoint, reason: &str, advice: String) -> Self {
        let user_hint = match endpoint.has_url_user() {
            true => "",
            false => " (the URL names no user, so the operating system's user was tried)",
        };
        let (address, role) = (endpoint.address(), endpoint.role().into());
        Self::LoginRefused { address, role, reason: format!("{reason}{user_hint}"), advice }
    }
}

/// Advises which credentials to check after access was denied.
fn credentials_advice(endpoint: &Endpoint) -> String {
    let credentials = match endpoint.password_source() {
        _ if !endpoint.has_url_user() => return "name one in the URL, as in postgres://user@host".into(),
        None => "check the user in the URL",
        Some(PasswordSource::Url) => "check user and password in the URL",
        Some(PasswordSource::Environment) => "check the user in the URL, the password in PGPASSWORD",
    };
    format!("{credentials}, and pg_hba.conf on the server")
}

/// True if connecting failed because the server's response was a message neither of PostgreSQL nor of TLS.
fn is_protocol_mismatch(error: &tokio_postgres::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| {
        let tls_error = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls_error {
            Some(tls_error) => matches!(tls_error, rustls::Error::InvalidMessage(_)),
            // The driver's errors have these kinds; errors of the operating system have others.
            None => {
                let kinds = [ErrorKind::InvalidData, ErrorKind::InvalidInput, ErrorKind::Other];
                kinds.contains(&cause.kind())
            }
        }
    })
}

/// Quotes an identifier for a statement.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Driver(DriverError),
    #[error("no response within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl From<tokio_postgres::Error> for ConnectError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(DriverError(error))
    }
}

impl ConnectError {
    /// True if the server has reached its connection limit.
    pub(crate) fn is_too_many_connections(&self) -> bool {
        match self {
            Self::Driver(error) => error.0.code() == Some(&SqlState::TOO_MANY_CONNECTIONS),
            Self::TimedOut(_) => false,
        }
    }
}

/// An error of the driver, displayed as the message of the server if there is one. The driver's own text is only
/// "db error" then.
#[derive(Debug)]
pub(crate) struct DriverError(pub(crate) tokio_postgres::Error);

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_db_error() {
            Some(db_error) => f.write_str(db_error.message()),
            None => self.0.fmt(f),
        }
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if self.0.as_db_error().is_some() { None } else { self.0.source() }
    }
}

/// Formats a driver error with its causes, in a line.
pub(crate) fn format_driver_error(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db_error) => db_error.message().into(),
        None => ErrorChain(error).to_string(),
    }
}

/// True if the error means that the database is corrupted.
pub(crate) fn is_corruption(error: &BoxError) -> bool {
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
    code.is_some_and(|code| *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED)
}

/// True if the connection was lost, so that a retry on another connection may succeed: the connection is closed, or
/// the server ended it because of a shutdown, an administrator or an idle timeout.
pub(crate) fn is_connection_lost(fault: &Fault) -> bool {
    let Fault::Database(error) = fault else { return false };
    let Some(error) = error.downcast_ref::<tokio_postgres::Error>() else { return false };
    match error.as_db_error() {
        Some(db_error) => {
            let ending_codes =
                [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
            ending_codes.contains(db_error.code())
        }
        None => error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>()),
    }
}

/// True if the database is available, but rejects a value as invalid or too large.
pub(crate) fn is_value_rejected(fault: &Fault) -> bool {
    let violates_check = |error: &DbError| {
        // An insert for which no partition exists is also a check violation, but without a constraint name.
        *error.code() == SqlState::CHECK_VIOLATION && error.constraint().is_some()
    };
    find_db_error(fault).is_some_and(|error| {
        violates_check(error) || ["22", "54"].iter().any(|class| error.code().code().starts_with(class))
    })
}

/// True if a row conflicts with existing rows, for example a duplicate key.
pub(crate) fn is_constraint_violation(fault: &Fault) -> bool {
    find_sql_state(fault).is_some_and(|code| code.code().starts_with("23"))
}

pub(crate) fn find_db_error(fault: &Fault) -> Option<&DbError> {
    let Fault::Database(error) = fault else { return None };
    error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::as_db_error)
}

fn find_sql_state(fault: &Fault) -> Option<&SqlState> {
    find_db_error(fault).map(DbError::code)
}

/// Converts a fault for the callers of the store.
pub(crate) fn to_store_error(fault: Fault) -> StoreError {
    match fault {
        Fault::Damaged(cause) => StoreError::damaged(cause),
        Fault::Database(error) if is_corruption(&error) => StoreError::damaged(describe_by_server(error)),
        Fault::Database(error) => StoreError::unavailable(describe_by_server(error)),
    }
}

/// Converts a fault for the operator who opens the store.
pub(crate) fn to_open_error(address: String, fault: Fault) -> OpenError {
    match fault {
        Fault::Damaged(cause) => OpenError::Damaged(cause),
        Fault::Database(error) => OpenError::OpenFailed { address, source: describe_by_server(error) },
    }
}

/// Wraps an error of the driver in a [`DriverError`].
pub(crate) fn describe_by_server(error: BoxError) -> BoxError {
    match error.downcast::<tokio_postgres::Error>() {
        Ok(error) => Box::new(DriverError(*error)),
        Err(other) => other,
    }
}
