//! `pointsman serve`: runs a node until it is told to stop.

mod banner;

use std::time::Duration;

use clap::Args;
use pointsman_engine::Setup;
use pointsman_server::Server;
use pointsman_server::server::settings;

use crate::args::Global;
use crate::config::{ConfigArgs, faulty};
use crate::failure::Result;
use crate::output::{Output, counted};
use crate::process::{self, Signals};
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

The log goes to standard error. POINTSMAN_LOG says how much: error, warn, info (the default), debug, \
or by module, as in info,pointsman_engine=debug.")]
pub(crate) struct Serve {
    #[command(flatten)]
    config: ConfigArgs,
}

impl Serve {
    pub(crate) fn run(self, global: &Global) -> Result {
        process::run(global, "info", self.serve(Output::new(global)))
    }

    async fn serve(self, output: Output) -> Result {
        let mut signals = Signals::new()?;
        let sources = self.config.sources();
        let config = sources.load().map_err(|faults| faulty(&faults))?;
        tracing::info!("{}", config.read_from());
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let banner = Banner::of(&config);
        let (name, drain) = (settings(&config).node_name, config.drain);
        let started = Server::start(config, Some(sources), Setup::default()).await;
        let server = started.map_err(process::not_started)?;
        banner.show(&server, output)?;
        signals.next().await;
        let stopped = async {
            tracing::info!("stopping{}; another signal stops at once", awaited(&server, &name, drain).await);
            server.stop().await;
        };
        process::stop(stopped, &mut signals).await?;
        tracing::info!("stopped");
        Ok(())
    }
}

/// What keeps the server from ending at once, and how long at most.
async fn awaited(server: &Server, name: &str, drain: Duration) -> String {
    let nodes = server.engine().store().nodes().await.unwrap_or_default();
    let running = nodes.iter().filter(|node| !node.gone && node.name == name).map(|node| node.running).sum();
    match running {
        0 => String::new(),
        _ => {
            let tasks = counted(running, "running task", "running tasks");
            format!(": waiting for {tasks}, at most {} s", drain.as_secs_f64())
        }
    }
}
