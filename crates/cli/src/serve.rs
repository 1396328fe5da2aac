//! `pointsman serve`: runs a node until a signal stops it.

mod banner;

use std::time::Duration;

use clap::Args;
use pointsman_engine::Setup;
use pointsman_server::Server;
use pointsman_server::server::engine_settings;

use crate::args::GlobalOptions;
use crate::config::{ConfigArgs, configuration_failure};
use crate::failure::CommandResult;
use crate::node_process::{self, StopSignals};
use crate::output::{Output, format_count};
use crate::root_warning::{RUN_AS_ROOT_ADVICE, describe_commands_run_as_root};
use banner::Banner;

/// Run the server: store, scheduler, workers and the HTTP API
///
/// Without a configuration it stores its data in `pointsman.db` in the working directory, listens on 127.0.0.1:7646,
/// and on its first start creates a token and prints it once.
///
/// SIGTERM or SIGINT (Ctrl-C) stops it gracefully: running tasks may finish, all others stay queued. A second signal
/// stops it immediately.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman serve
  pointsman serve --config pointsman.yml --listen 127.0.0.1:0
  POINTSMAN_LOG=debug pointsman serve --store sqlite::memory:

The log goes to standard error. POINTSMAN_LOG sets its level: error, warn, info (the default), debug, \
or per module: info,pointsman_engine=debug.")]
pub(crate) struct ServeCommand {
    #[command(flatten)]
    config: ConfigArgs,
}

impl ServeCommand {
    pub(crate) fn run(self, global: &GlobalOptions) -> CommandResult {
        node_process::run_node(global, "info", self.serve(Output::new(global)))
    }

    async fn serve(self, output: Output) -> CommandResult {
        let mut signals = StopSignals::new()?;
        let inputs = self.config.to_inputs();
        let config = inputs.load_config().map_err(|faults| configuration_failure(&faults))?;
        tracing::info!("{}", config.describe_config_files());
        for warning in &config.warnings {
            tracing::warn!("configuration warning; it does not prevent the start: {warning}");
        }
        if let Some(warning) = describe_commands_run_as_root(&config, nix::unistd::geteuid().is_root()) {
            tracing::warn!("{warning}. {RUN_AS_ROOT_ADVICE}");
        }
        let banner = Banner::from_config(&config);
        let (name, drain) = (engine_settings(&config).node_name, config.drain_timeout);
        let started = Server::start(config, Some(inputs), Setup::default()).await;
        let mut server = started.map_err(node_process::start_failure)?;
        banner.print(&server, output)?;
        let failure = tokio::select! {
            () = signals.recv() => None,
            failure = server.wait_for_service_failure() => Some(failure),
        };
        let stopped = async {
            let waiting = describe_awaited_tasks(&server, &name, drain).await;
            // After a service failure there was no signal yet.
            let signal = if failure.is_some() { "a signal" } else { "another signal" };
            tracing::info!("stopping the server{waiting}; {signal} stops it immediately");
            server.stop().await;
        };
        node_process::wait_for_graceful_stop(stopped, &mut signals).await?;
        tracing::info!("server stopped; unfinished tasks stay queued");
        failure.map_or(Ok(()), |failure| Err(node_process::service_failure(&failure)))
    }
}

/// Says how many running tasks a stop waits for, and for how long at most. Empty if no task is running.
async fn describe_awaited_tasks(server: &Server, name: &str, drain: Duration) -> String {
    let nodes = server.engine().store().list_nodes().await.unwrap_or_default();
    let running = nodes
        .iter()
        .filter(|node| !node.has_left_or_died && node.name == name)
        .map(|node| node.running_task_count)
        .sum();
    match running {
        0 => String::new(),
        _ => {
            let tasks = format_count(running, "running task", "running tasks");
            format!(": waiting for {tasks}, at most {} s", drain.as_secs_f64())
        }
    }
}
