//! `pointsman config`, and the options by which every command finds its configuration.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pointsman_server::config::{self, Env, Faults, Flag, Sources, Summary};

use crate::args::{Global, named};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, clean, say};

/// Where the configuration is, and what goes over it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// A configuration file; may be given several times [default: pointsman.yml, if there is one] [env:
    /// POINTSMAN_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Vec<OsString>,

    /// A folder whose `*.yml` and `*.yaml` files are read [env: POINTSMAN_CONFIG_DIR]
    #[arg(long, value_name = "DIR")]
    config_dir: Option<OsString>,

    /// Where to listen, over `server.listen`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,

    /// Where events and tasks are kept, over `store`: sqlite:PATH, sqlite::memory:, postgres://…,
    /// redis://…
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// How many tasks run at a time, over `workers`
    #[arg(long, value_name = "N")]
    workers: Option<String>,

    /// Which parts this process runs, over `rooms`: http,sequencer,scheduler,worker,clock,rescuer,pruner
    #[arg(long, value_name = "ROOM,…")]
    rooms: Option<String>,
}

impl ConfigArgs {
    pub(crate) fn sources(&self) -> Sources {
        let flags = [
            ("--listen", "server.listen", &self.listen),
            ("--store", "store", &self.store),
            ("--workers", "workers", &self.workers),
            ("--rooms", "rooms", &self.rooms),
        ];
        let flag = |(name, setting, value): (&str, &str, &Option<String>)| {
            let value = value.clone()?;
            Some(Flag { name: name.into(), setting: setting.into(), value })
        };
        let dir = self.config_dir.clone().or_else(|| std::env::var_os("POINTSMAN_CONFIG_DIR"));
        let mut files = self.config.clone();
        if files.is_empty() {
            files.extend(std::env::var_os("POINTSMAN_CONFIG"));
        }
        Sources {
            files: files.iter().filter_map(|file| named(file)).map(Into::into).collect(),
            dir: dir.as_deref().and_then(named).map(Into::into),
            env: Env::of_process(),
            flags: flags.into_iter().filter_map(flag).collect(),
            working: PathBuf::new(),
        }
    }
}

/// A configuration that cannot be used.
pub(crate) fn faulty(faults: &Faults) -> Failure {
    Failure::new(Exit::Configuration, format!("the configuration is not good\n{faults}"))
        .hint("`pointsman config check` checks it without starting anything.")
}

/// The configuration for those who only look at it: secrets that are not there are warned of.
pub(crate) fn viewed(sources: &Sources) -> Result<config::Config> {
    let (config, unset) = sources.view().map_err(|faults| faulty(&faults))?;
    for warning in unset {
        say(format!("warning: {warning}"));
    }
    Ok(config)
}

/// Check the configuration, or show it as it is understood
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman config check
  pointsman config check --config pointsman.yml --config tokens.yml
  POINTSMAN_WORKERS=4 pointsman config show")]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check the configuration and say what it means
    ///
    /// Shows every fault at once, each with its file, line and column. Nothing is started or changed.
    #[command(after_long_help = "\
Examples:
  pointsman config check
  pointsman config check --config pointsman.yml --config tokens.yml")]
    Check(ConfigArgs),
    /// Show the configuration in force, and where each value comes from
    #[command(after_long_help = "\
Examples:
  POINTSMAN_WORKERS=4 pointsman config show
  pointsman config show -o json | jq .settings.workers
  pointsman config show -o json | jq '.from[\"/workers\"]'")]
    Show(ConfigArgs),
}

impl Config {
    pub(crate) fn run(self, global: &Global) -> Result {
        match self.action {
            Action::Check(args) => check(&args.sources(), Output::new(global)),
            Action::Show(args) => show(&args.sources(), Output::new(global)),
        }
    }
}

fn check(sources: &Sources, output: Output) -> Result {
    let report = config::check(sources, pointsman_engine::now());
    match report.outcome {
        Ok(summary) if output.is_json() => Ok(output.json(&good(&summary))?),
        Ok(summary) => Ok(output.line(summary.to_string())?),
        Err(faults) => {
            if output.is_json() {
                output.json(&bad(&faults))?;
            }
            Err(Failure::new(Exit::Configuration, format!("the configuration is not good\n{faults}")))
        }
    }
}

fn good(summary: &Summary) -> serde_json::Value {
    let routes =
        summary.routes.iter().map(|(kind, handlers)| serde_json::json!({"type": kind, "handlers": handlers}));
    let tenants =
        summary.tenants.iter().map(|(name, weight)| serde_json::json!({"name": name, "weight": weight}));
    serde_json::json!({
        "good": true,
        "files": summary.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "handlers": summary.handlers,
        "routes": routes.collect::<Vec<_>>(),
        "sources": summary.sources,
        "schedules": summary.schedules,
        "chains": summary.chains,
        "tenants": tenants.collect::<Vec<_>>(),
        "tokens": summary.tokens,
        "warnings": summary.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn bad(faults: &Faults) -> serde_json::Value {
    let fault =
        |fault: &config::Fault| serde_json::json!({"place": fault.place(), "message": fault.message()});
    serde_json::json!({"good": false, "faults": faults.iter().map(fault).collect::<Vec<_>>()})
}

fn show(sources: &Sources, output: Output) -> Result {
    let config = viewed(sources)?;
    match output.is_json() {
        true => Ok(output.json(&config.to_json())?),
        false => config.to_yaml().lines().try_for_each(|line| Ok(output.line(clean(line))?)),
    }
}
