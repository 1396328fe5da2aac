//! What `config check` says: every fault, or in words what the configuration means.

use std::fmt;

use pointsman_core::{HandlingKey, Timestamp};

use super::fault::{Faults, Warning};
use super::run::Run;
use super::sources::Sources;
use super::{Config, handlers::Handler};

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
    /// Name, kind and target of each handler.
    pub handlers: Vec<[String; 3]>,
    /// Event types, and the handlers that such an event reaches in the end.
    pub routes: Vec<(String, Vec<String>)>,
    /// Name, what it does, and the next times.
    pub schedules: Vec<(String, String, Vec<Timestamp>)>,
    pub tokens: usize,
    pub warnings: Vec<Warning>,
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
        (kind.to_string(), told.collect())
    };
    let schedules = config.schedules.iter().map(|schedule| {
        let when = schedule.when.expression().describe();
        let zone = match schedule.when.zone().name() {
            "UTC" => String::new(),
            name => format!(" in {name}"),
        };
        let does = format!("{when}{zone}, emits {}", schedule.emit.kind);
        (schedule.name.clone(), does, schedule.when.upcoming(now).take(TIMES).collect())
    });
    let mut warnings = config.warnings.clone();
    warnings.extend(surprises(config, now));
    Summary {
        handlers: config.handlers.iter().map(handler).collect(),
        routes: config.routes.iter().map(|(kind, _)| route(kind)).collect(),
        schedules: schedules.collect(),
        tokens: config.tokens.len(),
        warnings,
    }
}

/// What the schedules do that their author may not expect.
fn surprises(config: &Config, now: Timestamp) -> Vec<Warning> {
    let mut found = Vec::new();
    for schedule in &config.schedules {
        let written = config.tree.get("schedules").and_then(|node| node.get(&schedule.name));
        let place = &written.unwrap_or(&config.tree).place;
        for surprise in schedule.when.warnings(now) {
            found.push(Warning::new(place, format!("the schedule {:?} {surprise}", schedule.name)));
        }
    }
    found
}

/// A URL's query may hold a key, and so may an argument: they are not repeated.
fn handler(handler: &Handler) -> [String; 3] {
    let (kind, target) = match &handler.run {
        Run::Http(http) => {
            ("http", format!("{}{}", http.url.origin().ascii_serialization(), http.url.path()))
        }
        Run::Command(command) => ("command", command.spec.argv[0].clone()),
    };
    [handler.def.name.to_string(), kind.to_owned(), target]
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
            "The configuration is good: {}, {}, {}, {}.",
            counted(self.handlers.len(), "handler"),
            counted(self.routes.len(), "routed event type"),
            counted(self.schedules.len(), "schedule"),
            counted(self.tokens, "token"),
        )?;
        for [name, kind, target] in &self.handlers {
            write!(f, "\nhandler {name}: {kind} {target}")?;
        }
        for (kind, handlers) in &self.routes {
            write!(f, "\nevent {kind}: {}", handlers.join(", "))?;
        }
        for (name, does, times) in &self.schedules {
            let times: Vec<String> = times.iter().map(|time| seconds(*time)).collect();
            let next = if times.is_empty() { "never".into() } else { format!("at {}", times.join(", ")) };
            write!(f, "\nschedule {name}: {does}; next {next}")?;
        }
        for warning in &self.warnings {
            write!(f, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

/// Schedules fall on whole seconds, mostly: the fraction is only shown where there is one.
fn seconds(time: Timestamp) -> String {
    time.to_string().replace(".000000Z", "Z")
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
