//! `pointsman serve`: runs a node until it is told to stop.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use clap::Args;
use pointsman_engine::Setup;
use pointsman_server::config::Config;
use pointsman_server::{Server, StartError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::Global;
use crate::config::{ConfigArgs, faulty};
use crate::failure::{Exit, Failure, Result};
use crate::output::Output;

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

The log goes to standard error. POINTSMAN_LOG says how much: error, warn, info (the default), debug, or
by module, as in info,pointsman_engine=debug.")]
pub(crate) struct Serve {
    #[command(flatten)]
    config: ConfigArgs,
}

/// How long what is left may take after a second signal.
const AT_ONCE: Duration = Duration::from_secs(2);

impl Serve {
    pub(crate) fn run(self, global: &Global) -> Result {
        log_to_stderr(Output::new(global))?;
        let sources = self.config.sources();
        let config = sources.load().map_err(|faults| faulty(&faults))?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(async {
            // Listened to from the start, so that no signal finds the process without an ear for it.
            let mut signals = Signals::new()?;
            let told = Told::of(&config);
            let server = Server::start(config, Some(sources), Setup::default()).await.map_err(not_started)?;
            told.tell(&server, Output::new(global))?;
            signals.next().await;
            tracing::info!("stopping; another signal stops at once");
            let engine = server.engine().clone();
            at_most_one(server.stop(), &mut signals).await.inspect_err(|_| engine.nudge())
        });
        runtime.shutdown_timeout(AT_ONCE);
        outcome
    }
}
