//! `config check`: reports every fault, or a summary of what a valid configuration does.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::PathBuf;

use pointsman_core::chain::{Chain, ChainNode, ChainNodeRole};
use pointsman_core::fire::FireAction;
use pointsman_core::{EventType, Limits, SourceDef, Timestamp, Weight};
use pointsman_engine::ScheduleSpec;
use serde::Serialize;

use super::Config;
use super::command_user::CommandUser;
use super::decode::format_duration;
use super::fault::{ConfigFaults, ConfigWarning};
use super::handler_run::HandlerRunConfig;
use super::handlers::HandlerConfig;
use super::inputs::{ConfigInputs, describe_config_files};
use super::schedule_lints::lint_schedule_times;
use super::schedules::ScheduleConfig;
use super::secrets::Environment;

/// The maximum number of upcoming times in the summary of a schedule.
const MAX_UPCOMING_FIRE_TIMES: usize = 3;

/// The result of `config check`.
#[derive(Debug)]
pub struct CheckReport {
    pub outcome: Result<ConfigSummary, ConfigFaults>,
}

/// The summary of a valid configuration.
#[derive(Debug)]
pub struct ConfigSummary {
    /// The files that the configuration was read from.
    pub files: Vec<PathBuf>,
    pub handlers: Vec<HandlerSummary>,
    /// Event types, each with all handlers and chains that an event of the type reaches.
    pub routes: Vec<(String, Vec<String>)>,
    pub sources: Vec<SourceSummary>,
    /// Includes the schedules of the sources' collections.
    pub schedules: Vec<ScheduleSummary>,
    pub chains: Vec<ChainSummary>,
    /// Tenants and their weights.
    pub tenant_weights: Vec<(String, u16)>,
    pub token_count: usize,
    pub warnings: Vec<ConfigWarning>,
}

/// The summary of a handler.
#[derive(Debug, Serialize)]
pub struct HandlerSummary {
    pub name: String,
    /// How the handler is run: `http`, `command` or `pull`.
    #[serde(rename = "run")]
    pub run_kind: &'static str,
    /// The URL without its query, or the program; empty for `pull`.
    pub target: String,
    /// The user and group that a command runs as, if it names any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// Each limit as a phrase, such as "at most 4 at a time".
    pub limits: Vec<String>,
}

/// The summary of a source.
#[derive(Debug, Serialize)]
pub struct SourceSummary {
    pub name: String,
    #[serde(rename = "run")]
    pub run_kind: &'static str,
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    pub tenant: String,
    pub collections: Vec<CollectionSummary>,
}

/// The summary of a source's collection.
#[derive(Debug, Serialize)]
pub struct CollectionSummary {
    pub name: String,
    pub priority: u16,
    /// Whether the collection has a schedule. Otherwise it is synchronised on request only.
    #[serde(rename = "scheduled")]
    pub is_scheduled: bool,
}

/// The summary of a schedule.
#[derive(Debug, Serialize)]
pub struct ScheduleSummary {
    pub name: String,
    /// When the schedule fires and what it does, as a phrase.
    #[serde(rename = "does")]
    pub description: String,
    /// The next times at which the schedule fires, at most `MAX_UPCOMING_FIRE_TIMES`.
    #[serde(rename = "next")]
    pub upcoming_times: Vec<Timestamp>,
}

/// The summary of a chain.
#[derive(Debug, Serialize)]
pub struct ChainSummary {
    #[serde(rename = "path")]
    pub chain_path: String,
    /// The nodes that run a handler, in the order of the configuration.
    #[serde(rename = "steps")]
    pub step_nodes: Vec<String>,
    /// The nodes at which orders end.
    #[serde(rename = "ends")]
    pub end_nodes: Vec<String>,
}

/// Reads a configuration and summarizes what it does at `now`. Nothing is started.
pub fn check_config(inputs: &ConfigInputs, now: Timestamp) -> CheckReport {
    let check = |config: Config| {
        config.build_setup()?;
        let mut summary = summarize_config(&config, now);
        summary.warnings.extend(commands_as_root_warning(&config, &inputs.env));
        Ok(summary)
    };
    CheckReport { outcome: inputs.load_config().and_then(check) }
}

impl CheckReport {
    pub fn is_valid(&self) -> bool {
        self.outcome.is_ok()
    }
}

fn summarize_config(config: &Config, now: Timestamp) -> ConfigSummary {
    let summarize_route = |event_type: &EventType| {
        let handlers = config.routes.find_handlers_of_event_type(event_type).into_iter().map(|binding| {
            match binding.sync {
                true => format!("{} (sync)", binding.handler),
                false => binding.handler.to_string(),
            }
        });
        let chains = config
            .chain_routes
            .find_chains_of_event_type(event_type)
            .into_iter()
            .map(|path| path.to_string());
        (event_type.to_string(), handlers.chain(chains).collect())
    };
    let event_types: BTreeSet<&EventType> = config.routes.iter().map(|(event_type, _)| event_type).collect();
    let event_types = &event_types | &config.chain_routes.iter().map(|(event_type, _)| event_type).collect();
    let scheduled: HashSet<&str> =
        config.schedules.iter().map(|schedule_config| schedule_config.schedule.name.as_str()).collect();
    ConfigSummary {
        files: config.files.clone(),
        handlers: config.handlers.iter().map(summarize_handler).collect(),
        routes: event_types.into_iter().map(summarize_route).collect(),
        sources: config.sources.iter().filter_map(|source| summarize_source(source, &scheduled)).collect(),
        schedules: config
            .schedules
            .iter()
            .map(|schedule_config| summarize_schedule(&schedule_config.schedule, now))
            .collect(),
        chains: config.chains.iter().map(|chain_config| summarize_chain(&chain_config.chain)).collect(),
        tenant_weights: config
            .tenant_weights
            .iter()
            .map(|(name, weight)| (name.to_string(), weight.get()))
            .collect(),
        token_count: config.tokens.len(),
        warnings: config.all_warnings(now),
    }
}

fn summarize_handler(handler: &HandlerConfig) -> HandlerSummary {
    HandlerSummary {
        name: handler.def.name.to_string(),
        run_kind: handler.run.kind(),
        target: describe_run_target(&handler.run),
        run_as: describe_command_user(&handler.run),
        limits: describe_handler_limits(&handler.def.limits),
    }
}

fn summarize_source(source: &HandlerConfig, scheduled: &HashSet<&str>) -> Option<SourceSummary> {
    let SourceDef { tenant, collections } = source.def.source.as_ref()?;
    let name = &source.def.name;
    let collections = collections.iter().map(|(collection, priority)| CollectionSummary {
        name: collection.to_string(),
        priority: priority.get(),
        is_scheduled: scheduled.contains(format!("{name}/{collection}").as_str()),
    });
    Some(SourceSummary {
        name: name.to_string(),
        run_kind: source.run.kind(),
        target: describe_run_target(&source.run),
        run_as: describe_command_user(&source.run),
        tenant: tenant.to_string(),
        collections: collections.collect(),
    })
}

fn summarize_schedule(schedule: &ScheduleSpec, now: Timestamp) -> ScheduleSummary {
    let when = schedule.cron.expression().describe();
    let zone = match schedule.cron.zone().name() {
        "UTC" => String::new(),
        name => format!(" in {name}"),
    };
    let effect = match &schedule.action {
        FireAction::EmitEvent(event) => format!("emits {}", event.event_type),
        FireAction::RunCollection(run) => format!("synchronises {}", run.source_collection),
        FireAction::AddOrder(order) => match &order.id {
            Some(id) => format!("adds the order {},{id}", order.chain),
            None => format!("adds an order to {}", order.chain),
        },
    };
    ScheduleSummary {
        name: schedule.name.to_string(),
        description: format!("{when}{zone}, {effect}"),
        upcoming_times: schedule.cron.upcoming(now).take(MAX_UPCOMING_FIRE_TIMES).collect(),
    }
}

fn summarize_chain(chain: &Chain) -> ChainSummary {
    let (ends, steps): (Vec<&ChainNode>, Vec<&ChainNode>) =
        chain.nodes.iter().partition(|node| node.role == ChainNodeRole::End);
    let ids = |nodes: Vec<&ChainNode>| nodes.into_iter().map(|node| node.id.to_string()).collect();
    ChainSummary { chain_path: chain.path.to_string(), step_nodes: ids(steps), end_nodes: ids(ends) }
}

impl Config {
    /// All warnings, including those about the times at which schedules fire after `now`. A warning that several
    /// collections inherit from their source is reported once.
    pub(crate) fn all_warnings(&self, now: Timestamp) -> Vec<ConfigWarning> {
        let mut reported = HashSet::new();
        let mut warnings = self.warnings.clone();
        for ScheduleConfig { schedule, location } in &self.schedules {
            for lint in lint_schedule_times(schedule, now) {
                if reported.insert((location.to_string(), lint.clone())) {
                    warnings.push(ConfigWarning::new(
                        location,
                        format!("the schedule {:?}: {lint}", schedule.name),
                    ));
                }
            }
        }
        warnings
    }
}

/// The URL that a handler calls, or its program; empty for `pull`. Queries and arguments are left out, since they may
/// contain secrets.
fn describe_run_target(run: &HandlerRunConfig) -> String {
    match run {
        HandlerRunConfig::Http(http) => {
            format!("{}{}", http.url.origin().ascii_serialization(), http.url.path())
        }
        HandlerRunConfig::Command(command) => command.spec.argv[0].clone(),
        HandlerRunConfig::Pull => String::new(),
    }
}

fn describe_command_user(run: &HandlerRunConfig) -> Option<String> {
    match run {
        HandlerRunConfig::Command(command) => command.user.as_ref().map(ToString::to_string),
        HandlerRunConfig::Http(_) | HandlerRunConfig::Pull => None,
    }
}

/// Warns of commands without `user` if the process runs as root.
fn commands_as_root_warning(config: &Config, env: &Environment) -> Option<ConfigWarning> {
    let handlers = config.handlers.iter().chain(&config.sources).filter(|_| env.is_root());
    let as_root: Vec<&HandlerConfig> = handlers
        .filter(|handler| match &handler.run {
            HandlerRunConfig::Command(command) => !command.user.as_ref().is_some_and(CommandUser::has_user),
            HandlerRunConfig::Http(_) | HandlerRunConfig::Pull => false,
        })
        .collect();
    let names: Vec<&str> = as_root.iter().map(|handler| handler.def.name.as_str()).collect();
    let names = match names.split_last()? {
        (last, []) => (*last).to_owned(),
        (last, others) => format!("{} and {last}", others.join(", ")),
    };
    let message = format!(
        "the commands of {names} would run as root; set `user` in their `run`, or run the server as a user other than \
         root"
    );
    as_root.first().map(|first| ConfigWarning::new(&first.location, message))
}

fn describe_handler_limits(limits: &Limits) -> Vec<String> {
    let Limits { concurrency, concurrency_per_key, rate, weight, ageing_interval: ageing } = limits;
    let descriptions = [
        concurrency.map(|limit| format!("at most {limit} at a time")),
        concurrency_per_key.map(|limit| format!("at most {limit} of one object at a time")),
        rate.map(|rate| format!("at most {rate}")),
        (*weight != Weight::default()).then(|| format!("weight {}", weight.get())),
        ageing
            .map(|each| format!("one point of priority more for each {} of waiting", format_duration(each))),
    ];
    descriptions.into_iter().flatten().collect()
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(summary) => summary.fmt(f),
            Err(faults) => faults.fmt(f),
        }
    }
}

impl fmt::Display for ConfigSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The configuration is good: {}, {}, {}, {}, {}, {}.",
            format_count_with_noun(self.handlers.len(), "handler"),
            format_count_with_noun(self.routes.len(), "routed event type"),
            format_count_with_noun(self.sources.len(), "source"),
            format_count_with_noun(self.schedules.len(), "schedule"),
            format_count_with_noun(self.chains.len(), "chain"),
            format_count_with_noun(self.token_count, "token"),
        )?;
        write!(f, "\n{}", describe_config_files(&self.files))?;
        for (name, weight) in &self.tenant_weights {
            write!(f, "\ntenant {name}: weight {weight}")?;
        }
        for handler in &self.handlers {
            write!(f, "\n{handler}")?;
        }
        for (event_type, targets) in &self.routes {
            write!(f, "\nevent {event_type}: {}", targets.join(", "))?;
        }
        for source in &self.sources {
            write!(f, "\n{source}")?;
        }
        for schedule in &self.schedules {
            write!(f, "\n{schedule}")?;
        }
        for chain in &self.chains {
            write!(f, "\n{chain}")?;
        }
        for warning in &self.warnings {
            write!(f, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

impl fmt::Display for HandlerSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "handler {}: {}",
            self.name,
            format_run_summary(self.run_kind, &self.target, self.run_as.as_deref())
        )?;
        self.limits.iter().try_for_each(|limit| write!(f, ", {limit}"))
    }
}

impl fmt::Display for SourceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let collections = self.collections.iter().map(|collection| match collection.is_scheduled {
            true => collection.name.clone(),
            false => format!("{} (only on request)", collection.name),
        });
        let collections: Vec<String> = collections.collect();
        write!(
            f,
            "source {}: {}; collections {}",
            self.name,
            format_run_summary(self.run_kind, &self.target, self.run_as.as_deref()),
            collections.join(", ")
        )
    }
}

impl fmt::Display for ScheduleSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<String> =
            self.upcoming_times.iter().map(|time| format_time_without_zero_fraction(*time)).collect();
        let next = if times.is_empty() { "never".into() } else { format!("at {}", times.join(", ")) };
        write!(f, "schedule {}: {}; next {next}", self.name, self.description)
    }
}

impl fmt::Display for ChainSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain_path, step_nodes, end_nodes } = self;
        write!(f, "chain {chain_path}: ")?;
        if !step_nodes.is_empty() {
            write!(f, "steps {}; ", step_nodes.join(", "))?;
        }
        write!(f, "ends {}", end_nodes.join(", "))
    }
}

fn format_run_summary(kind: &str, target: &str, run_as: Option<&str>) -> String {
    let run = if target.is_empty() { kind.to_owned() } else { format!("{kind} {target}") };
    run_as.map_or(run.clone(), |run_as| format!("{run} as {run_as}"))
}

/// Formats a time without its fraction of a second if the fraction is zero, as in most planned times.
fn format_time_without_zero_fraction(time: Timestamp) -> String {
    time.to_string().replace(".000000Z", "Z")
}

fn format_count_with_noun(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
