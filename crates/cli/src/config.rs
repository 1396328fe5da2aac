//! `pointsman config`, and the configuration options of all commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pointsman_server::config::{self, ConfigFaults, ConfigFlag, ConfigInputs, ConfigSummary, Environment};

use crate::args::{GlobalOptions, non_empty_path};
use crate::failure::{CommandResult, ExitReason, Failure};
use crate::output::{Output, escape_controls, print_to_stderr};

/// The configuration files, and options that override their settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Configuration file; can be repeated [default: pointsman.yml if it exists] [env: POINTSMAN_CONFIG]
    #[arg(long = "config", value_name = "FILE")]
    config_files: Vec<OsString>,

    /// Directory whose `*.yml` and `*.yaml` files are read [env: POINTSMAN_CONFIG_DIR]
    #[arg(long, value_name = "DIR")]
    config_dir: Option<OsString>,

    /// Address to listen on; overrides `server.listen`. Port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,

    /// Store; overrides `store`: sqlite:PATH, sqlite::memory:, postgres://…, redis://…
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Maximum number of tasks that run at a time; overrides `workers`
    #[arg(long, value_name = "N")]
    workers: Option<String>,

    /// Services that this process runs; overrides `services`:
    /// http,sequencer,scheduler,worker,clock,rescuer,pruner
    #[arg(long, value_name = "SERVICE,…")]
    services: Option<String>,
}

impl ConfigArgs {
    /// The inputs of the configuration: these options, and the environment.
    pub(crate) fn to_inputs(&self) -> ConfigInputs {
        let flags = [
            ("--listen", "server.listen", &self.listen),
            ("--store", "store", &self.store),
            ("--workers", "workers", &self.workers),
            ("--services", "services", &self.services),
        ];
        let flag = |(name, setting, value): (&str, &str, &Option<String>)| {
            let value = value.clone()?;
            Some(ConfigFlag { name: name.into(), setting_path: setting.into(), value })
        };
        let dir = self.config_dir.clone().or_else(|| std::env::var_os("POINTSMAN_CONFIG_DIR"));
        let mut files = self.config_files.clone();
        if files.is_empty() {
            files.extend(std::env::var_os("POINTSMAN_CONFIG"));
        }
        ConfigInputs {
            files: files.iter().filter_map(|file| non_empty_path(file)).map(Into::into).collect(),
            config_dir: dir.as_deref().and_then(non_empty_path).map(Into::into),
            env: Environment::from_process(),
            flags: flags.into_iter().filter_map(flag).collect(),
            working_dir: PathBuf::new(),
        }
    }
}

/// The error of an invalid configuration.
pub(crate) fn configuration_failure(faults: &ConfigFaults) -> Failure {
    Failure::new(ExitReason::Configuration, format!("the configuration is invalid\n{faults}"))
        .with_hint("`pointsman config check` checks it without starting anything.")
}

/// Loads the configuration to print it: a missing secret is only a warning.
pub(crate) fn load_config_for_display(inputs: &ConfigInputs) -> CommandResult<config::Config> {
    let (config, missing_secrets) =
        inputs.load_with_placeholder_secrets().map_err(|faults| configuration_failure(&faults))?;
    for warning in missing_secrets {
        print_to_stderr(format!("warning: {warning}"));
    }
    Ok(config)
}

/// Check or show the configuration
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman config check
  pointsman config check --config pointsman.yml --config tokens.yml
  POINTSMAN_WORKERS=4 pointsman config show")]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    subcommand: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    /// Check the configuration and summarize it
    ///
    /// Reports all errors at once, each with its file, line and column. Nothing is started or changed.
    #[command(after_long_help = "\
Examples:
  pointsman config check
  pointsman config check --config pointsman.yml --config tokens.yml")]
    Check(ConfigArgs),
    /// Show the effective configuration and the origin of each value
    #[command(after_long_help = "\
Examples:
  POINTSMAN_WORKERS=4 pointsman config show
  pointsman config show -o json | jq .settings.workers
  pointsman config show -o json | jq '.from[\"/workers\"]'")]
    Show(ConfigArgs),
}

impl ConfigCommand {
    pub(crate) fn run(self, global: &GlobalOptions) -> CommandResult {
        match self.subcommand {
            ConfigSubcommand::Check(args) => check_configuration(&args.to_inputs(), Output::new(global)),
            ConfigSubcommand::Show(args) => print_configuration(&args.to_inputs(), Output::new(global)),
        }
    }
}

fn check_configuration(inputs: &ConfigInputs, output: Output) -> CommandResult {
    let report = config::check_config(inputs, pointsman_engine::machine_clock_now());
    match report.outcome {
        Ok(summary) if output.is_json() => Ok(output.print_json(&summary_json(&summary))?),
        Ok(summary) => Ok(output.print_line(summary.to_string())?),
        Err(faults) => {
            if output.is_json() {
                output.print_json(&faults_json(&faults))?;
            }
            Err(Failure::new(ExitReason::Configuration, format!("the configuration is invalid\n{faults}")))
        }
    }
}

fn summary_json(summary: &ConfigSummary) -> serde_json::Value {
    let routes = summary
        .routes
        .iter()
        .map(|(event_type, handlers)| serde_json::json!({"type": event_type, "handlers": handlers}));
    let tenants = summary
        .tenant_weights
        .iter()
        .map(|(name, weight)| serde_json::json!({"name": name, "weight": weight}));
    serde_json::json!({
        "good": true,
        "files": summary.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "handlers": summary.handlers,
        "routes": routes.collect::<Vec<_>>(),
        "sources": summary.sources,
        "schedules": summary.schedules,
        "chains": summary.chains,
        "tenants": tenants.collect::<Vec<_>>(),
        "tokens": summary.token_count,
        "warnings": summary.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn faults_json(faults: &ConfigFaults) -> serde_json::Value {
    let fault = |fault: &config::ConfigFault| serde_json::json!({"location": fault.location(), "message": fault.message()});
    serde_json::json!({"good": false, "faults": faults.iter().map(fault).collect::<Vec<_>>()})
}

fn print_configuration(inputs: &ConfigInputs, output: Output) -> CommandResult {
    let config = load_config_for_display(inputs)?;
    match output.is_json() {
        true => Ok(output.print_json(&config.to_json_with_locations())?),
        false => config.to_yaml().lines().try_for_each(|line| Ok(output.print_line(escape_controls(line))?)),
    }
}
