//! `pointsman work`: a bounded run. Takes so many tasks, or works for so long, and ends.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use pointsman_core::store::{ChainView, QueueView, Store, StoreError};
use pointsman_core::task::QueueOf;
use pointsman_core::time::parse_http_duration;
use pointsman_core::{HandlerName, Rule};
use pointsman_engine::metrics::Attempts;
use pointsman_engine::{Bound, Engine, Rooms, Settings, Setup, Unfit};
use pointsman_server::StartError;
use pointsman_server::config::nearest::hint;
use pointsman_server::config::{Config, StoreUrl};
use pointsman_server::server;
use pointsman_store_sqlite::OpenError;

use crate::args::Global;
use crate::config::{ConfigArgs, faulty};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, clean, counted, say};
use crate::process::{self, Signals, not_started};

/// Work on what waits, for a while
///
/// Opens the store of the configuration itself, without a server and without HTTP, and runs the tasks of these
/// handlers: for a job that is started by something else, or a machine that is lent for an hour. It ends when
/// it has begun --max-events attempts and they have ended, or when --ttl is over, whichever comes first.
///
/// The time counts from the start. Its last part is for what still runs: as long as a server drains, and a
/// quarter of the time at most, in which nothing new begins. What runs on after it is given back, at no cost;
/// programs may need a few seconds more to end.
///
/// It runs the handlers as the store has them from the last server, and changes neither them nor the routes.
/// What the configuration says otherwise, a server has to tell the store first.
///
/// On PostgreSQL and Redis it joins the servers that run there, as a node of its own. The embedded store belongs to one process at
/// a time: while a server has it, use a pull worker instead.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman work --handler index --max-events 1000 --ttl 300s
  pointsman work --handler index --handler notify --ttl 1h
  pointsman work --ttl 60s -o json | jq .succeeded

It exits with 0 also if tasks have failed: they are tried again as their handlers say. The log goes to \
standard error; POINTSMAN_LOG says how much.")]
pub(crate) struct Work {
    /// Run only this handler's or source's tasks; may be given several times [default: all]
    #[arg(long = "handler", value_name = "NAME")]
    handlers: Vec<HandlerName>,
    /// Begin no more attempts than this
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    max_events: u64,
    /// Give back what still runs after this time: `90`, `90s`, `1h30m`
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = duration)]
    ttl: Duration,
    #[command(flatten)]
    config: ConfigArgs,
}

fn at_least_one(text: &str) -> std::result::Result<u64, &'static str> {
    text.parse().ok().filter(|many| *many > 0).ok_or("a run begins at least 1 attempt; write a whole number")
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    parse_http_duration(text).map_err(|e| e.to_string())
}

impl Work {
    pub(crate) fn run(self, global: &Global) -> Result {
        process::run(global, "warn", self.work(Output::new(global)))
    }

    async fn work(self, output: Output) -> Result {
        let (began, mut signals) = (Instant::now(), Signals::new()?);
        let config = self.config.sources().load().map_err(|faults| faulty(&faults))?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let setup = config.setup().map_err(|faults| faulty(&faults))?;
        self.check(&setup)?;
        let store = open(&config).await?;
        let done = self.attend(&store, &config, setup, began, &mut signals).await;
        let held = match &done {
            Ok(summary) if summary.attempts == 0 => self.held(&*store).await,
            _ => None,
        };
        store.close();
        done?.show(output)?;
        if let Some(held) = held.filter(|_| !output.is_json()) {
            say(held);
        }
        Ok(())
    }

    async fn attend(
        &self,
        store: &Arc<dyn Store>,
        config: &Config,
        setup: Setup,
        began: Instant,
        signals: &mut Signals,
    ) -> Result<Summary> {
        let (bound, drain) = (self.bound(), config.drain.min(self.ttl / 4));
        let checked = bound.check(&**store, &setup).await;
        checked.map_err(unanswered)?.map_err(unfit)?;
        let left = |reserve: Duration| self.ttl.saturating_sub(reserve).saturating_sub(began.elapsed());
        if left(drain).is_zero() {
            return Ok(Summary::of(Attempts::default(), Why::Time));
        }
        let settings = settings(config, bound);
        let engine = Engine::start(store.clone(), settings, setup).await.map_err(unanswered)?;
        let why = tokio::select! {
            () = engine.bound_reached() => Why::Events,
            () = tokio::time::sleep(left(drain)) => Why::Time,
            () = signals.next() => Why::Told,
        };
        process::stop(engine.stop(config.drain.min(left(Duration::ZERO))), signals).await?;
        Ok(Summary::of(engine.metrics().attempts(), why))
    }

    /// How many tasks are held back by rules, and by which. Said beside a run that came to nothing: a store that does
    /// not answer now is left alone.
    async fn held(&self, store: &dyn Store) -> Option<String> {
        let wanted = |name: &HandlerName| self.handlers.is_empty() || self.handlers.contains(name);
        let queues = store.queues(None).await.ok()?;
        let queues: Vec<_> = queues.iter().filter(|queue| queue.held && wanted(&queue.handler)).collect();
        let waiting: u64 = queues.iter().map(|queue| queue.ready + queue.waiting + queue.scheduled).sum();
        let holds =
            |rule: &&Rule| queues.iter().any(|queue| rule.holds(&queue.handler, &queue.of, &queue.tenant));
        let rules = store.rules().await.ok()?;
        let mut holders: Vec<String> = rules.iter().filter(holds).map(rule_in_words).collect();
        holders.extend(stopped(&store.chains().await.ok()?.0, &queues));
        let tasks = counted(waiting, "task is", "tasks are");
        (waiting > 0 && !holders.is_empty()).then(|| format!("{tasks} held back: {}", holders.join(", ")))
    }

    fn bound(&self) -> Bound {
        Bound { handlers: self.handlers.iter().cloned().collect(), max_events: self.max_events }
    }

    /// What is to be run must be there, and run by nodes.
    fn check(&self, setup: &Setup) -> Result {
        for name in &self.handlers {
            let Some(spec) = setup.handlers.iter().find(|spec| spec.def.name == *name) else {
                let known: Vec<&str> = setup.handlers.iter().map(|spec| spec.def.name.as_str()).collect();
                let hint = hint(name.as_str(), known.iter().copied());
                return Err(Failure::usage(format!("the configuration has no handler {name:?}{hint}"))
                    .hint(format!("It has these: {}", known.join(", "))));
            };
            if spec.def.pull {
                return Err(Failure::usage(format!("{name} is pulled: its tasks are fetched by workers"))
                    .hint("Give it a `run` in the configuration, or start a pull worker for it."));
            }
        }
        Ok(())
    }
}

/// The chains and nodes that are stopped, and hold one of these queues.
fn stopped(chains: &[ChainView], queues: &[&QueueView]) -> BTreeSet<String> {
    let word = |queue: &&QueueView| {
        let QueueOf::Node { chain, node } = &queue.of else { return None };
        let state = &chains.iter().find(|view| view.chain.path == *chain)?.state;
        let what = if state.stopped { chain.to_string() } else { format!("{node} of {chain}") };
        state.holds(node).then(|| format!("{what} is stopped"))
    };
    queues.iter().filter_map(word).collect()
}

fn rule_in_words(rule: &Rule) -> String {
    let tenant = rule.tenant.as_ref().map(|tenant| format!(" for {tenant}")).unwrap_or_default();
    format!("a {} of {}{tenant} by {}", rule.kind.as_str(), rule.place.name(), clean(&rule.by))
}

fn settings(config: &Config, bound: Bound) -> Settings {
    Settings {
        // Planned times and old history are the server's business.
        rooms: Rooms { scheduler: true, worker: true, rescuer: true, clock: false, pruner: false },
        bound: Some(bound),
        ..server::settings(config)
    }
}

async fn open(config: &Config) -> Result<Arc<dyn Store>> {
    match &config.store {
        StoreUrl::SqliteMemory => {
            return Err(Failure::usage("a store in memory ends with its process, and nothing waits in it")
                .hint("--store names a file."));
        }
        StoreUrl::Sqlite { path } if !path.exists() => {
            return Err(Failure::runtime(format!("there is no store at {}", path.display()))
                .hint("A server makes it on its first start. --store names another file."));
        }
        StoreUrl::Sqlite { .. } | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => {}
    }
    server::open(&config.store).await.map_err(not_opened)
}

fn unanswered(error: StoreError) -> Failure {
    not_started(StartError::Engine(error))
}

fn unfit(unfit: Unfit) -> Failure {
    Failure::new(Exit::Configuration, unfit).hint(
        "A bounded run changes nothing for the others: it runs the handlers as the last server told the store of\n\
         them. Start `pointsman serve` once with this configuration, or name other handlers with --handler.",
    )
}

fn not_opened(error: StartError) -> Failure {
    let in_use = matches!(error, StartError::Store(OpenError::InUse { .. }));
    let failure = not_started(error);
    match in_use {
        true => failure.hint(
            "A server works on it already, and runs its tasks too. To use this command, stop the server first;\n\
             to lend it a hand, make the handler `run: pull` and start a pull worker, such as the one in\n\
             examples/python.",
        ),
        false => failure,
    }
}

/// Why a run has ended.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Why {
    Events,
    Time,
    Told,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Events => "as many as were to be begun",
            Self::Time => "its time is up",
            Self::Told => "it was told to stop",
        })
    }
}

/// What a run has done.
#[derive(Debug, serde::Serialize)]
struct Summary {
    /// How many attempts it began.
    attempts: u64,
    succeeded: u64,
    failed: u64,
    /// Put off by the handler, or given back unfinished.
    other: u64,
    ended: Why,
}

impl Summary {
    fn of(attempts: Attempts, ended: Why) -> Self {
        let Attempts { succeeded, failed, snoozed, released } = attempts;
        let other = snoozed + released;
        Self { attempts: succeeded + failed + other, succeeded, failed, other, ended }
    }

    fn show(&self, output: Output) -> Result {
        if output.is_json() {
            return Ok(output.json(self)?);
        }
        let other = if self.other > 0 { format!(", {} put off", self.other) } else { String::new() };
        let attempts = counted(self.attempts, "attempt", "attempts");
        Ok(output.line(format!(
            "{attempts}: {} succeeded, {} failed{other}; {}",
            self.succeeded, self.failed, self.ended
        ))?)
    }
}
