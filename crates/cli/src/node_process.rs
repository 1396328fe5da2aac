//! The process of the commands that run a node, `serve` and `work`: logging, signals and start errors. `tasks redrive`
//! uses the signals as well.

use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_engine::ServiceFailure;
use pointsman_engine::handlers::command::{adopt_orphans, kill_orphans};
use pointsman_server::StartOrReloadError;
#[cfg(feature = "postgres")]
use pointsman_store_postgres::OpenError as PostgresError;
#[cfg(feature = "redis")]
use pointsman_store_redis::OpenError as RedisError;
#[cfg(feature = "sqlite")]
use pointsman_store_sqlite::OpenError as SqliteError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, ExitReason, Failure};
use crate::output::Paint;

/// How long the runtime waits for its futures to be dropped when the process ends, as after a second signal. Dropping a
/// running attempt kills the programs that it started.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs a node until it ends, on all cores. `default_log_level` is the log level without POINTSMAN_LOG.
pub(crate) fn run_node(
    global: &GlobalOptions,
    default_log_level: &str,
    node: impl Future<Output = CommandResult>,
) -> CommandResult {
    init_stderr_logging(global, default_log_level)?;
    if let Err(error) = adopt_orphans() {
        tracing::warn!(%error, "cannot become a child subreaper (prctl); processes that commands detach may keep running after their attempt");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(node);
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    kill_orphans();
    outcome
}

/// The error of a node that stopped because one of its services failed for good.
pub(crate) fn service_failure(failure: &ServiceFailure) -> Failure {
    Failure::runtime(failure).with_hint(
        "The node gave its tasks back and stopped. Start it again, and please report this error with the log lines \
         before it.",
    )
}

/// Waits until `stopped` is ready: the node has stopped gracefully. A stop signal meanwhile returns an error at once, so
/// that the process ends immediately.
pub(crate) async fn wait_for_graceful_stop(
    stopped: impl Future<Output = ()>,
    signals: &mut StopSignals,
) -> CommandResult {
    tokio::select! {
        () = stopped => Ok(()),
        () = signals.recv() => Err(Failure::runtime("stopped immediately; running tasks were aborted and will be retried")),
    }
}

/// The signals that stop a command: SIGTERM and SIGINT.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the signal handlers. Called before anything starts, so that a signal during a long start is not lost.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn init_stderr_logging(global: &GlobalOptions, default_log_level: &str) -> CommandResult {
    let directives = std::env::var("POINTSMAN_LOG").ok().filter(|directives| !directives.is_empty());
    let filter = EnvFilter::try_new(directives.as_deref().unwrap_or(default_log_level))
        .map_err(|e| Failure::usage(format!("POINTSMAN_LOG is not a valid log filter: {e}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(Paint::for_stderr(global.color).is_enabled())
        .init();
    Ok(())
}

#[cfg(any(feature = "postgres", feature = "redis"))]
const UNREACHABLE_DATABASE_HINT: &str = "\
A node needs its database to start; once it runs, it survives an outage. Choose another database with
--store or POINTSMAN_STORE.";
#[cfg(any(feature = "postgres", feature = "redis"))]
const DATABASE_PASSWORD_HINT: &str =
    "Pass a URL with a password in POINTSMAN_STORE, or in a file named by POINTSMAN_STORE_FILE.";

/// Converts a start error: the message with its causes, a hint and the exit code.
pub(crate) fn start_failure(error: StartOrReloadError) -> Failure {
    let exit = start_exit_reason(&error);
    let hint = match &error {
        StartOrReloadError::Listen { .. } => {
            Some("Another server may be listening there. Choose another address with --listen.")
        }
        #[cfg(feature = "sqlite")]
        StartOrReloadError::Sqlite(SqliteError::Io { .. } | SqliteError::Sqlite { .. }) => {
            Some("Its directory must exist and be writable. Choose another file with --store.")
        }
        #[cfg(feature = "postgres")]
        StartOrReloadError::Postgres(PostgresError::Unreachable { .. }) => Some(UNREACHABLE_DATABASE_HINT),
        #[cfg(feature = "postgres")]
        StartOrReloadError::Postgres(PostgresError::LoginRefused { .. }) => Some(DATABASE_PASSWORD_HINT),
        #[cfg(feature = "redis")]
        StartOrReloadError::Redis(RedisError::Unreachable { .. } | RedisError::SlotNotServed { .. }) => {
            Some(UNREACHABLE_DATABASE_HINT)
        }
        #[cfg(feature = "redis")]
        StartOrReloadError::Redis(RedisError::LoginRefused { .. }) => Some(DATABASE_PASSWORD_HINT),
        _ => None,
    };
    let mut message = ErrorChain(&error).to_string();
    #[cfg(feature = "sqlite")]
    if let StartOrReloadError::Sqlite(SqliteError::InUse { path }) = &error
        && let Ok(Some(holder)) = pointsman_store_sqlite::doctor::find_lock_holder(path)
    {
        message = format!("{message} (in use {holder})");
    }
    let failure = Failure::new(exit, message);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn start_exit_reason(error: &StartOrReloadError) -> ExitReason {
    match error {
        StartOrReloadError::NoTokenConfigured(_)
        | StartOrReloadError::Config(_)
        | StartOrReloadError::DuplicateHandler(_)
        | StartOrReloadError::MissingStoreFeature(_) => ExitReason::Configuration,
        // These errors may pass without a change of the configuration, or when another process ends.
        #[cfg(feature = "sqlite")]
        StartOrReloadError::Sqlite(
            SqliteError::InUse { .. }
            | SqliteError::DiskFull { .. }
            | SqliteError::Io { .. }
            | SqliteError::Sqlite { .. },
        ) => ExitReason::Unavailable,
        StartOrReloadError::Engine(_) => ExitReason::Unavailable,
        #[cfg(feature = "postgres")]
        StartOrReloadError::Postgres(error) => postgres_exit_reason(error),
        #[cfg(feature = "redis")]
        StartOrReloadError::Redis(error) => redis_exit_reason(error),
        // The operator must fix all other errors.
        _ => ExitReason::Runtime,
    }
}

#[cfg(feature = "postgres")]
fn postgres_exit_reason(error: &PostgresError) -> ExitReason {
    match error {
        PostgresError::Unreachable { .. }
        | PostgresError::OpenFailed { .. }
        | PostgresError::SchemaLocked { .. } => ExitReason::Unavailable,
        PostgresError::BadUrl(_)
        | PostgresError::BadParameter { .. }
        | PostgresError::TlsFailed { .. }
        | PostgresError::NotPostgres { .. }
        | PostgresError::LoginRefused { .. }
        | PostgresError::DatabaseNotFound { .. }
        | PostgresError::DefaultDatabaseNotFound { .. }
        | PostgresError::ServerTooOld { .. }
        | PostgresError::NotUtf8 { .. }
        | PostgresError::MissingPrivilege { .. }
        | PostgresError::SchemaTooNew { .. }
        | PostgresError::ForeignSchema { .. }
        | PostgresError::UndeclaredPooler { .. }
        | PostgresError::MigrationChanged { .. } => ExitReason::Configuration,
        PostgresError::SchemaIncomplete { .. } | PostgresError::Damaged(_) => ExitReason::Runtime,
    }
}

#[cfg(feature = "redis")]
fn redis_exit_reason(error: &RedisError) -> ExitReason {
    match error {
        RedisError::Unreachable { .. } | RedisError::OpenFailed { .. } | RedisError::SlotNotServed { .. } => {
            ExitReason::Unavailable
        }
        RedisError::BadUrl(_)
        | RedisError::BadParameter { .. }
        | RedisError::NotRedis { .. }
        | RedisError::LoginRefused { .. }
        | RedisError::TlsFailed { .. }
        | RedisError::NoDatabase { .. }
        | RedisError::ServerTooOld { .. }
        | RedisError::MissingPrivilege { .. }
        | RedisError::WrongServerKind { .. }
        | RedisError::IsReplica { .. }
        | RedisError::UnknownMaster { .. }
        | RedisError::LayoutTooNew { .. }
        | RedisError::LayoutTooOld { .. }
        | RedisError::KeyOfAnotherApplication { .. } => ExitReason::Configuration,
        RedisError::Damaged(_) => ExitReason::Runtime,
    }
}
