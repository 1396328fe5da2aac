//! `pointsman serve`: runs a node until it is told to stop.

mod banner;

use std::error::Error;
use std::time::Duration;

use clap::Args;
use pointsman_engine::Setup;
use pointsman_server::{Server, StartError};
use pointsman_store_sqlite::OpenError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::Global;
use crate::config::{ConfigArgs, faulty};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, Paint};
use banner::Banner;

/// Run the server: store, scheduler, workers and the HTTP API
///
/// Without any configuration it keeps its data in `pointsman.db` in the working folder, listens on
/// 127.0.0.1:7646, and makes a token on its first start, which it prints once.
///
/// SIGTERM or SIGINT (Ctrl-C) stops it in good order: running tasks may end, the others are given back. A
/// second one stops it at once.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman serve
  pointsman serve --config pointsman.yml --listen 127.0.0.1:0
  POINTSMAN_LOG=debug pointsman serve --store sqlite::memory:

The log goes to standard error. POINTSMAN_LOG says how much: error, warn, info (the default), debug,
or by module, as in info,pointsman_engine=debug.")]
pub(crate) struct Serve {
    #[command(flatten)]
    config: ConfigArgs,
}

/// How long tasks may take to let go after a second signal: programs that they started are killed meanwhile.
const AT_ONCE: Duration = Duration::from_secs(2);

impl Serve {
    pub(crate) fn run(self, global: &Global) -> Result {
        log_to_stderr(global)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(self.serve(Output::new(global)));
        runtime.shutdown_timeout(AT_ONCE);
        outcome
    }

    async fn serve(self, output: Output) -> Result {
        // Heard from the start, so that a signal during a long start is not lost.
        let mut signals = Signals::new()?;
        let sources = self.config.sources();
        let config = sources.load().map_err(|faults| faulty(&faults))?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let banner = Banner::of(&config);
        let server = Server::start(config, Some(sources), Setup::default()).await.map_err(not_started)?;
        banner.show(&server, output)?;
        signals.next().await;
        tracing::info!("stopping; another signal stops at once");
        tokio::select! {
            () = server.stop() => Ok(()),
            () = signals.next() => Err(Failure::runtime("stopped at once; running tasks were cut off")),
        }
    }
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn log_to_stderr(global: &Global) -> Result {
    let wish = std::env::var("POINTSMAN_LOG").ok().filter(|wish| !wish.is_empty());
    let filter = EnvFilter::try_new(wish.as_deref().unwrap_or("info"))
        .map_err(|e| Failure::usage(format!("POINTSMAN_LOG does not say what to log: {e}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(Paint::of_stderr(global.color).is_on())
        .init();
    Ok(())
}

/// Why the server did not start, and what to do about it.
fn not_started(error: StartError) -> Failure {
    let exit = exit_of(&error);
    let hint = match &error {
        StartError::Listen { .. } => {
            Some("Another server may be running there. --listen names another address.")
        }
        StartError::Store(OpenError::Io { .. } | OpenError::Sqlite { .. }) => {
            Some("Its folder must exist and be writable. --store names another file.")
        }
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
        StartError::Store(OpenError::InUse { .. } | OpenError::Io { .. } | OpenError::Sqlite { .. })
        | StartError::Engine(_) => Exit::Unavailable,
        // The rest will not.
        _ => Exit::Runtime,
    }
}
