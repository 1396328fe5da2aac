//! `pointsman work`: runs a limited number of tasks, or for a limited time, and ends.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use pointsman_core::store::{ChainView, QueueView, Store, StoreError};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::task::QueueSubject;
use pointsman_core::time::parse_http_duration;
use pointsman_core::{HandlerName, Rule};
use pointsman_engine::metrics::EndedAttemptCounts;
use pointsman_engine::{BoundedRun, BoundedRunError, EnabledServices, Engine, Settings, Setup};
use pointsman_server::StartOrReloadError;
use pointsman_server::config::{Config, StoreUrl};
use pointsman_server::server;

use crate::args::GlobalOptions;
use crate::config::{ConfigArgs, configuration_failure};
use crate::failure::{CommandResult, ExitReason, Failure};
use crate::node_process::{self, StopSignals, start_failure};
use crate::output::{Output, escape_controls, format_count, print_to_stderr};

/// Run waiting tasks for a limited time, without a server
///
/// Opens the configured store directly, without HTTP, and runs the tasks of these handlers: for a job started by another
/// scheduler, or a machine that helps out for an hour. It ends after --max-events attempts, or after --ttl, whichever
/// comes first.
///
/// The time counts from the start. At its end, running tasks may finish for as long as a server drains, but at most a
/// quarter of the time; no new task starts then. Tasks that still run afterwards are released without counting as failed;
/// programs may need a few seconds more to end.
///
/// It uses the handlers that the last server stored, and changes neither them nor the routes. After a change of the
/// configuration, start a server first.
///
/// On PostgreSQL and Redis it joins the running servers as a node. A SQLite store can be used by one process at a time:
/// while a server uses it, start a pull worker instead.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman work --handler index --max-events 1000 --ttl 300s
  pointsman work --handler index --handler notify --ttl 1h
  pointsman work --ttl 60s -o json | jq .succeeded

The exit code is 0 even if tasks failed: they are retried as their handlers are configured. The log goes to standard \
error; POINTSMAN_LOG sets its level.")]
pub(crate) struct WorkCommand {
    /// Run only tasks of this handler or source; can be repeated [default: all]
    #[arg(long = "handler", value_name = "NAME")]
    handlers: Vec<HandlerName>,
    /// Maximum number of attempts
    #[arg(long = "max-events", value_name = "N", default_value_t = 1000, value_parser = parse_max_attempts)]
    max_attempts: u64,
    /// Maximum time: `90`, `90s`, `1h30m`
    #[arg(long = "ttl", value_name = "DURATION", default_value = "300s", value_parser = parse_duration)]
    time_limit: Duration,
    #[command(flatten)]
    config: ConfigArgs,
}

fn parse_max_attempts(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|count| *count > 0).ok_or("expected a whole number of at least 1")
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_http_duration(text).map_err(|e| e.to_string())
}

impl WorkCommand {
    pub(crate) fn run(self, global: &GlobalOptions) -> CommandResult {
        node_process::run_node(global, "warn", self.run_tasks(Output::new(global)))
    }

    async fn run_tasks(self, output: Output) -> CommandResult {
        let (started, mut signals) = (Instant::now(), StopSignals::new()?);
        let config =
            self.config.to_inputs().load_config().map_err(|faults| configuration_failure(&faults))?;
        for warning in &config.warnings {
            tracing::warn!("configuration warning; it does not prevent the run: {warning}");
        }
        let setup = config.build_setup().map_err(|faults| configuration_failure(&faults))?;
        self.check_selected_handlers(&setup)?;
        let store = open_store(&config).await?;
        let result = self.run_engine(&store, &config, setup, started, &mut signals).await;
        let paused = match &result {
            Ok(summary) if summary.attempts == 0 => self.describe_paused_tasks(&*store).await,
            _ => None,
        };
        store.close();
        result?.print(output)?;
        if let Some(paused) = paused.filter(|_| !output.is_json()) {
            print_to_stderr(paused);
        }
        Ok(())
    }

    async fn run_engine(
        &self,
        store: &Arc<dyn Store>,
        config: &Config,
        setup: Setup,
        started: Instant,
        signals: &mut StopSignals,
    ) -> CommandResult<RunSummary> {
        let (bounds, drain) = (self.to_bounded_run(), config.drain_timeout.min(self.time_limit / 4));
        let checked = bounds.check_registered_handlers(&**store, &setup).await;
        checked.map_err(store_failure)?.map_err(handler_mismatch_failure)?;
        let remaining =
            |reserve: Duration| self.time_limit.saturating_sub(reserve).saturating_sub(started.elapsed());
        if remaining(drain).is_zero() {
            return Ok(RunSummary::new(EndedAttemptCounts::default(), EndReason::TimeLimit));
        }
        let settings = work_engine_settings(config, bounds);
        let engine = Engine::start(store.clone(), settings, setup).await.map_err(store_failure)?;
        let reason = tokio::select! {
            () = engine.wait_for_bounded_run_end() => Ok(EndReason::AttemptLimit),
            () = tokio::time::sleep(remaining(drain)) => Ok(EndReason::TimeLimit),
            () = signals.recv() => Ok(EndReason::Signal),
            failure = engine.wait_for_service_failure() => Err(failure),
        };
        node_process::wait_for_graceful_stop(
            engine.stop(config.drain_timeout.min(remaining(Duration::ZERO))),
            signals,
        )
        .await?;
        let reason = reason.map_err(|failure| node_process::service_failure(&failure))?;
        Ok(RunSummary::new(engine.metrics().ended_attempt_counts(), reason))
    }

    /// Says how many tasks of the selected handlers wait because of rules and of stopped chains, and names these. None
    /// if there are none or the store cannot be read: the text only explains why a run made no attempts.
    async fn describe_paused_tasks(&self, store: &dyn Store) -> Option<String> {
        let is_selected = |name: &HandlerName| self.handlers.is_empty() || self.handlers.contains(name);
        let queues = store.list_queues(None).await.ok()?;
        let queues: Vec<_> =
            queues.iter().filter(|queue| queue.is_paused_or_blocked && is_selected(&queue.handler)).collect();
        let waiting: u64 =
            queues.iter().map(|queue| queue.ready_count + queue.waiting_count + queue.scheduled_count).sum();
        let applies = |rule: &&Rule| {
            queues.iter().any(|queue| rule.applies_to_queue(&queue.handler, &queue.subject, &queue.tenant))
        };
        let rules = store.list_rules().await.ok()?;
        let mut reasons: Vec<String> = rules.iter().filter(applies).map(describe_rule).collect();
        reasons.extend(describe_stopped_chain_nodes(&store.list_chains().await.ok()?.0, &queues));
        let tasks = format_count(waiting, "task is", "tasks are");
        (waiting > 0 && !reasons.is_empty()).then(|| format!("{tasks} waiting: {}", reasons.join(", ")))
    }

    fn to_bounded_run(&self) -> BoundedRun {
        BoundedRun { handlers: self.handlers.iter().cloned().collect(), max_attempts: self.max_attempts }
    }

    /// Checks that the selected handlers are configured and not pull handlers.
    fn check_selected_handlers(&self, setup: &Setup) -> CommandResult {
        for name in &self.handlers {
            let Some(spec) = setup.handlers.iter().find(|spec| spec.def.name == *name) else {
                let names: Vec<&str> = setup.handlers.iter().map(|spec| spec.def.name.as_str()).collect();
                let hint = did_you_mean_suffix(name.as_str(), names.iter().copied());
                return Err(Failure::usage(format!("the configuration has no handler {name:?}{hint}"))
                    .with_hint(format!("Configured handlers: {}", names.join(", "))));
            };
            if spec.def.pull {
                return Err(Failure::usage(format!(
                    "{name} is a pull handler: external workers run its tasks"
                ))
                .with_hint("Set a `run` command or URL in the configuration, or start a pull worker."));
            }
        }
        Ok(())
    }
}

/// Names the stopped chains and chain nodes that keep the tasks of these queues from starting.
fn describe_stopped_chain_nodes(chains: &[ChainView], queues: &[&QueueView]) -> BTreeSet<String> {
    let describe = |queue: &&QueueView| {
        let QueueSubject::ChainNode { chain, node } = &queue.subject else { return None };
        let state = &chains.iter().find(|view| view.chain.path == *chain)?.state;
        let name =
            if state.stopped { format!("chain {chain}") } else { format!("node {node} of chain {chain}") };
        state.is_node_stopped(node).then(|| format!("{name} is stopped"))
    };
    queues.iter().filter_map(describe).collect()
}

fn describe_rule(rule: &Rule) -> String {
    let tenant = rule.tenant.as_ref().map(|tenant| format!(" for tenant {tenant}")).unwrap_or_default();
    format!("{} of {}{tenant} by {}", rule.kind.as_str(), rule.scope.name(), escape_controls(&rule.set_by))
}

fn work_engine_settings(config: &Config, bounds: BoundedRun) -> Settings {
    Settings {
        // Servers fire schedules and prune.
        enabled_services: EnabledServices {
            scheduler: true,
            worker: true,
            rescuer: true,
            clock: false,
            pruner: false,
        },
        bounded_run: Some(bounds),
        ..server::engine_settings(config)
    }
}

async fn open_store(config: &Config) -> CommandResult<Arc<dyn Store>> {
    match &config.store_url {
        StoreUrl::SqliteMemory => {
            return Err(Failure::usage("a store in memory has no waiting tasks")
                .with_hint("Choose a file with --store."));
        }
        StoreUrl::Sqlite { path } if !path.exists() => {
            return Err(Failure::runtime(format!("there is no store at {}", path.display()))
                .with_hint("A server creates it on its first start. Choose another file with --store."));
        }
        StoreUrl::Sqlite { .. } | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => {}
    }
    server::open_store(&config.store_url).await.map_err(open_store_failure)
}

fn store_failure(error: StoreError) -> Failure {
    start_failure(StartOrReloadError::Engine(error))
}

fn handler_mismatch_failure(mismatch: BoundedRunError) -> Failure {
    Failure::new(ExitReason::Configuration, mismatch).with_hint(
        "`work` uses the handlers that the last server stored. Start `pointsman serve` once with this configuration,\n\
         or select other handlers with --handler.",
    )
}

fn open_store_failure(error: StartOrReloadError) -> Failure {
    #[cfg(feature = "sqlite")]
    let in_use = matches!(error, StartOrReloadError::Sqlite(pointsman_store_sqlite::OpenError::InUse { .. }));
    #[cfg(not(feature = "sqlite"))]
    let in_use = false;
    let failure = start_failure(error);
    match in_use {
        true => failure.with_hint(
            "A server uses the store and runs its tasks. Stop the server to use this command; to add capacity, configure\n\
             the handler with `run: pull` and start a pull worker, such as the one in examples/python.",
        ),
        false => failure,
    }
}

/// Why a run of `work` ended.
#[derive(Clone, Copy, Debug, serde::Serialize)]
enum EndReason {
    #[serde(rename = "events")]
    AttemptLimit,
    #[serde(rename = "time")]
    TimeLimit,
    #[serde(rename = "signal")]
    Signal,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AttemptLimit => "reached --max-events",
            Self::TimeLimit => "reached --ttl",
            Self::Signal => "stopped by a signal",
        })
    }
}

/// The result of a run of `work`, as it is printed.
#[derive(Debug, serde::Serialize)]
struct RunSummary {
    /// The number of started attempts.
    attempts: u64,
    succeeded: u64,
    failed: u64,
    /// Attempts that were snoozed by the handler or released unfinished.
    #[serde(rename = "other")]
    snoozed_or_released: u64,
    #[serde(rename = "ended")]
    end_reason: EndReason,
}

impl RunSummary {
    fn new(attempts: EndedAttemptCounts, end_reason: EndReason) -> Self {
        let EndedAttemptCounts { succeeded, failed, snoozed, released } = attempts;
        let snoozed_or_released = snoozed + released;
        Self {
            attempts: succeeded + failed + snoozed_or_released,
            succeeded,
            failed,
            snoozed_or_released,
            end_reason,
        }
    }

    fn print(&self, output: Output) -> CommandResult {
        if output.is_json() {
            return Ok(output.print_json(self)?);
        }
        let other = if self.snoozed_or_released > 0 {
            format!(", {} snoozed or released", self.snoozed_or_released)
        } else {
            String::new()
        };
        let attempts = format_count(self.attempts, "attempt", "attempts");
        Ok(output.print_line(format!(
            "{attempts}: {} succeeded, {} failed{other}; {}",
            self.succeeded, self.failed, self.end_reason
        ))?)
    }
}
