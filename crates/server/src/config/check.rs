//! What `config check` says: every fault, or in words what the configuration means.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::PathBuf;

use pointsman_core::chain::{Chain, Node, Role};
use pointsman_core::fire::Makes;
use pointsman_core::{HandlingKey, Limits, SourceDef, Timestamp, Weight};
use pointsman_engine::Schedule;
use serde::Serialize;

use super::Config;
use super::decode::words;
use super::fault::{Faults, Warning};
use super::handlers::Handler;
use super::lookup::{Sources, read_from};
use super::run::Run;
use super::schedules::Planned;
use super::surprises::of_its_times;

/// How many coming times of a schedule are told.
const TIMES: usize = 3;

/// The result of a check.
#[derive(Debug)]
pub struct Report {
    pub outcome: Result<Summary, Faults>,
}

/// What a good configuration means.
#[derive(Debug)]
pub struct Summary {
    /// The files it was read from.
    pub files: Vec<PathBuf>,
    pub handlers: Vec<HandlerTold>,
    /// Event types, and the handlers and chains that such an event reaches in the end.
    pub routes: Vec<(String, Vec<String>)>,
    pub sources: Vec<SourceTold>,
    /// Those of the sources' collections too.
    pub schedules: Vec<ScheduleTold>,
    pub chains: Vec<ChainTold>,
    /// Tenants and their weights.
    pub tenants: Vec<(String, u16)>,
    pub tokens: usize,
    pub warnings: Vec<Warning>,
}

/// What is told of a handler.
#[derive(Debug, Serialize)]
pub struct HandlerTold {
    pub name: String,
    /// `http`, `command` or `pull`.
    pub run: &'static str,
    /// Where it goes, or what it starts; empty if it is pulled.
    pub target: String,
    /// In words.
    pub limits: Vec<String>,
}

/// What is told of a source.
#[derive(Debug, Serialize)]
pub struct SourceTold {
    pub name: String,
    pub run: &'static str,
    pub target: String,
    pub tenant: String,
    pub collections: Vec<CollectionTold>,
}

/// What is told of a source's collection.
#[derive(Debug, Serialize)]
pub struct CollectionTold {
    pub name: String,
    pub priority: u16,
    /// Otherwise it is synchronised on request only.
    pub scheduled: bool,
}

/// What is told of a schedule.
#[derive(Debug, Serialize)]
pub struct ScheduleTold {
    pub name: String,
    /// When it does what, in words.
    pub does: String,
    pub next: Vec<Timestamp>,
}

/// What is told of a chain.
#[derive(Debug, Serialize)]
pub struct ChainTold {
    pub path: String,
    /// The nodes where something is done, in their order. Orders begin at the first of all nodes.
    pub steps: Vec<String>,
    pub ends: Vec<String>,
}

/// Reads the sources and tells what they mean at `now`. Nothing is started.
pub fn check(sources: &Sources, now: Timestamp) -> Report {
    let checked = sources.load().and_then(|config| config.setup().map(|_| summary(&config, now)));
    Report { outcome: checked }
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.outcome.is_ok()
    }
}

fn summary(config: &Config, now: Timestamp) -> Summary {
    let route = |kind: &HandlingKey| {
        let told = config.routes.resolve(kind).into_iter().map(|binding| match binding.sync {
            true => format!("{} (sync)", binding.handler),
            false => binding.handler.to_string(),
        });
        let chains = config.chain_routes.resolve(kind).into_iter().map(|path| path.to_string());
        (kind.to_string(), told.chain(chains).collect())
    };
    let kinds: BTreeSet<&HandlingKey> = config.routes.iter().map(|(kind, _)| kind).collect();
    let kinds = &kinds | &config.chain_routes.iter().map(|(kind, _)| kind).collect();
    let scheduled: HashSet<&str> =
        config.schedules.iter().map(|planned| planned.schedule.name.as_str()).collect();
    Summary {
        files: config.files.clone(),
        handlers: config.handlers.iter().map(handler).collect(),
        routes: kinds.into_iter().map(route).collect(),
        sources: config.sources.iter().filter_map(|told| source(told, &scheduled)).collect(),
        schedules: config.schedules.iter().map(|planned| schedule(&planned.schedule, now)).collect(),
        chains: config.chains.iter().map(|charted| chain(&charted.chain)).collect(),
        tenants: config.tenants.iter().map(|(name, weight)| (name.to_string(), weight.get())).collect(),
        tokens: config.tokens.len(),
        warnings: config.warnings_at(now),
    }
}

fn handler(handler: &Handler) -> HandlerTold {
    HandlerTold {
        name: handler.def.name.to_string(),
        run: handler.run.kind(),
        target: target(&handler.run),
        limits: limits(&handler.def.limits),
    }
}

fn source(source: &Handler, scheduled: &HashSet<&str>) -> Option<SourceTold> {
    let SourceDef { tenant, collections } = source.def.source.as_ref()?;
    let name = &source.def.name;
    let collections = collections.iter().map(|(collection, priority)| CollectionTold {
        name: collection.to_string(),
        priority: priority.get(),
        scheduled: scheduled.contains(format!("{name}/{collection}").as_str()),
    });
    Some(SourceTold {
        name: name.to_string(),
        run: source.run.kind(),
        target: target(&source.run),
        tenant: tenant.to_string(),
        collections: collections.collect(),
    })
}

fn schedule(schedule: &Schedule, now: Timestamp) -> ScheduleTold {
    let when = schedule.when.expression().describe();
    let zone = match schedule.when.zone().name() {
        "UTC" => String::new(),
        name => format!(" in {name}"),
    };
    let makes = match &schedule.makes {
        Makes::Event(event) => format!("emits {}", event.kind),
        Makes::Run(run) => format!("synchronises {}", run.pair),
        Makes::Order(order) => match &order.id {
            Some(id) => format!("adds the order {},{id}", order.chain),
            None => format!("adds an order to {}", order.chain),
        },
    };
    ScheduleTold {
        name: schedule.name.to_string(),
        does: format!("{when}{zone}, {makes}"),
        next: schedule.when.upcoming(now).take(TIMES).collect(),
    }
}

fn chain(chain: &Chain) -> ChainTold {
    let (ends, steps): (Vec<&Node>, Vec<&Node>) = chain.nodes.iter().partition(|node| node.role == Role::End);
    let ids = |nodes: Vec<&Node>| nodes.into_iter().map(|node| node.id.to_string()).collect();
    ChainTold { path: chain.path.to_string(), steps: ids(steps), ends: ids(ends) }
}

impl Config {
    /// What is allowed but probably not meant, also of what the schedules do after `now`. What several collections
    /// inherit is told once.
    pub(crate) fn warnings_at(&self, now: Timestamp) -> Vec<Warning> {
        let mut told = HashSet::new();
        let mut found = self.warnings.clone();
        for Planned { schedule, place } in &self.schedules {
            for surprise in of_its_times(schedule, now) {
                if told.insert((place.to_string(), surprise.clone())) {
                    found.push(Warning::new(place, format!("the schedule {:?}: {surprise}", schedule.name)));
                }
            }
        }
        found
    }
}

/// A URL's query may hold a key, and so may an argument: they are not repeated.
fn target(run: &Run) -> String {
    match run {
        Run::Http(http) => format!("{}{}", http.url.origin().ascii_serialization(), http.url.path()),
        Run::Command(command) => command.spec.argv[0].clone(),
        Run::Pull => String::new(),
    }
}

fn limits(limits: &Limits) -> Vec<String> {
    let Limits { concurrency, concurrency_per_key, rate, weight, ageing } = limits;
    let told = [
        concurrency.map(|most| format!("at most {most} at a time")),
        concurrency_per_key.map(|most| format!("at most {most} of one object at a time")),
        rate.map(|rate| format!("at most {rate}")),
        (*weight != Weight::default()).then(|| format!("weight {}", weight.get())),
        ageing.map(|each| format!("one point of priority more for each {} of waiting", words(each))),
    ];
    told.into_iter().flatten().collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(summary) => summary.fmt(f),
            Err(faults) => faults.fmt(f),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The configuration is good: {}, {}, {}, {}, {}, {}.",
            counted(self.handlers.len(), "handler"),
            counted(self.routes.len(), "routed event type"),
            counted(self.sources.len(), "source"),
            counted(self.schedules.len(), "schedule"),
            counted(self.chains.len(), "chain"),
            counted(self.tokens, "token"),
        )?;
        write!(f, "\n{}", read_from(&self.files))?;
        for (name, weight) in &self.tenants {
            write!(f, "\ntenant {name}: weight {weight}")?;
        }
        for handler in &self.handlers {
            write!(f, "\n{handler}")?;
        }
        for (kind, handlers) in &self.routes {
            write!(f, "\nevent {kind}: {}", handlers.join(", "))?;
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

impl fmt::Display for HandlerTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handler {}: {}", self.name, run(self.run, &self.target))?;
        self.limits.iter().try_for_each(|limit| write!(f, ", {limit}"))
    }
}

impl fmt::Display for SourceTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let collections = self.collections.iter().map(|collection| match collection.scheduled {
            true => collection.name.clone(),
            false => format!("{} (only on request)", collection.name),
        });
        let collections: Vec<String> = collections.collect();
        write!(
            f,
            "source {}: {}; collections {}",
            self.name,
            run(self.run, &self.target),
            collections.join(", ")
        )
    }
}

impl fmt::Display for ScheduleTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<String> = self.next.iter().map(|time| seconds(*time)).collect();
        let next = if times.is_empty() { "never".into() } else { format!("at {}", times.join(", ")) };
        write!(f, "schedule {}: {}; next {next}", self.name, self.does)
    }
}

impl fmt::Display for ChainTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, steps, ends } = self;
        write!(f, "chain {path}: ")?;
        if !steps.is_empty() {
            write!(f, "steps {}; ", steps.join(", "))?;
        }
        write!(f, "ends {}", ends.join(", "))
    }
}

fn run(kind: &str, target: &str) -> String {
    if target.is_empty() { kind.to_owned() } else { format!("{kind} {target}") }
}

/// Schedules fall on whole seconds, mostly: the fraction is only shown where there is one.
fn seconds(time: Timestamp) -> String {
    time.to_string().replace(".000000Z", "Z")
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
