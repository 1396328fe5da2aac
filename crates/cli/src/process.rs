//! What the commands share that run a node themselves, `serve` and `work`: the log, the signals that end them,
//! and what a person is told when the store cannot be opened. A redrive and a measurement listen to the signals too.

use std::error::Error;
use std::time::Duration;

use pointsman_engine::handlers::command::{adopt_orphans, kill_orphans};
use pointsman_server::StartError;
use pointsman_store_postgres::OpenError as PostgresError;
use pointsman_store_redis::OpenError as RedisError;
use pointsman_store_sqlite::OpenError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::Global;
use crate::failure::{Exit, Failure, Result};
use crate::output::Paint;

/// How long tasks may take to let go after a second signal: programs that they started are killed meanwhile.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Runs a node to its end, on all cores. `level` is how much is logged unless POINTSMAN_LOG says otherwise.
pub(crate) fn run(global: &Global, level: &str, node: impl Future<Output = Result>) -> Result {
    log_to_stderr(global, level)?;
    if let Err(error) = adopt_orphans() {
        tracing::warn!(%error, "cannot become a child subreaper; a process that a command detaches may outlive its attempt");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(node);
    runtime.shutdown_timeout(AT_ONCE);
    kill_orphans();
    outcome
}

/// Lets a node stop in good order; a signal meanwhile stops it at once.
pub(crate) async fn stop(stopped: impl Future<Output = ()>, signals: &mut Signals) -> Result {
    tokio::select! {
        () = stopped => Ok(()),
        () = signals.next() => Err(Failure::runtime("stopped at once; running tasks were cut off")),
    }
}

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they are heard. Asked for before anything starts, so that a signal during a long start is not
    /// lost.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for a signal, which is heard as soon as this is waited for. A second one ends the process at once, for what is put in
/// order after the first may take long.
pub(crate) async fn interrupted() {
    let Ok(mut signals) = Signals::new() else { return std::future::pending().await };
    let (tell, told) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        signals.next().await;
        // Nobody listens any more if all has ended meanwhile.
        let _ = tell.send(());
        signals.next().await;
        std::process::exit(Exit::Interrupted as i32);
    });
    let _ = told.await;
}

fn log_to_stderr(global: &Global, level: &str) -> Result {
    let wish = std::env::var("POINTSMAN_LOG").ok().filter(|wish| !wish.is_empty());
    let filter = EnvFilter::try_new(wish.as_deref().unwrap_or(level))
        .map_err(|e| Failure::usage(format!("POINTSMAN_LOG does not say what to log: {e}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(Paint::of_stderr(global.color).is_on())
        .init();
    Ok(())
}

/// Why a node did not start, and what to do about it.
pub(crate) fn not_started(error: StartError) -> Failure {
    let exit = exit_of(&error);
    let hint = match &error {
        StartError::Listen { .. } => {
            Some("Another server may be running there. --listen names another address.")
        }
        StartError::Store(OpenError::Io { .. } | OpenError::Sqlite { .. }) => {
            Some("Its folder must exist and be writable. --store names another file.")
        }
        StartError::Postgres(PostgresError::Unreachable { .. })
        | StartError::Redis(RedisError::Unreachable { .. } | RedisError::NotServed { .. }) => Some(
            "A node needs its database at the start; once it runs, it outlives an outage. --store or POINTSMAN_STORE\n\
             names another database.",
        ),
        StartError::Postgres(PostgresError::NotLetIn { .. })
        | StartError::Redis(RedisError::NotLetIn { .. }) => Some(
            "A URL with a password belongs into POINTSMAN_STORE, or into a file that POINTSMAN_STORE_FILE names.",
        ),
        _ => None,
    };
    let mut what = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        what = format!("{what}: {error}");
        cause = error.source();
    }
    let failure = Failure::new(exit, what);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn exit_of(error: &StartError) -> Exit {
    match error {
        StartError::Unguarded(_) | StartError::Config(_) | StartError::HandlerTwice(_) => Exit::Configuration,
        // These may go away by themselves, or when another process ends.
        StartError::Store(
            OpenError::InUse { .. }
            | OpenError::DiskFull { .. }
            | OpenError::Io { .. }
            | OpenError::Sqlite { .. },
        )
        | StartError::Engine(_) => Exit::Unavailable,
        StartError::Postgres(error) => exit_of_postgres(error),
        StartError::Redis(error) => exit_of_redis(error),
        // The rest will not.
        _ => Exit::Runtime,
    }
}

fn exit_of_postgres(error: &PostgresError) -> Exit {
    match error {
        PostgresError::Unreachable { .. } | PostgresError::Failed { .. } | PostgresError::Held { .. } => {
            Exit::Unavailable
        }
        PostgresError::BadUrl(_)
        | PostgresError::BadParameter { .. }
        | PostgresError::NotTrusted { .. }
        | PostgresError::NotPostgres { .. }
        | PostgresError::NotLetIn { .. }
        | PostgresError::NoDatabase { .. }
        | PostgresError::NoneNamed { .. }
        | PostgresError::TooOld { .. }
        | PostgresError::NotUtf8 { .. }
        | PostgresError::NoRight { .. }
        | PostgresError::Newer { .. }
        | PostgresError::NotOurs { .. }
        | PostgresError::Pooler { .. }
        | PostgresError::Altered { .. } => Exit::Configuration,
        PostgresError::Incomplete { .. } | PostgresError::Damaged(_) => Exit::Runtime,
    }
}

fn exit_of_redis(error: &RedisError) -> Exit {
    match error {
        RedisError::Unreachable { .. } | RedisError::Failed { .. } | RedisError::NotServed { .. } => {
            Exit::Unavailable
        }
        RedisError::BadUrl(_)
        | RedisError::BadParameter { .. }
        | RedisError::NotRedis { .. }
        | RedisError::NotLetIn { .. }
        | RedisError::NotTrusted { .. }
        | RedisError::NoDatabase { .. }
        | RedisError::TooOld { .. }
        | RedisError::NoRight { .. }
        | RedisError::WrongKind { .. }
        | RedisError::Replica { .. }
        | RedisError::NoMaster { .. }
        | RedisError::Newer { .. }
        | RedisError::Older { .. }
        | RedisError::NotOurs { .. } => Exit::Configuration,
        RedisError::Damaged(_) => Exit::Runtime,
    }
}
