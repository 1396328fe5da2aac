//! `pointsman doctor`: checks what a server needs, and says how to fix what is wrong.

mod report;
mod server;

#[cfg(feature = "postgres")]
use std::time::Duration;

use clap::Args;
#[cfg(feature = "postgres")]
use pointsman_core::time::parse_http_duration;
use pointsman_engine::machine_clock_now;
use pointsman_server::config::{self, ConfigInputs, StoreUrl};
use pointsman_store::finding::{Finding, FindingSeverity};

use crate::args::GlobalOptions;
use crate::config::ConfigArgs;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, format_count};
use crate::root_warning;

/// Check the configuration, the store and the database settings
///
/// Changes nothing, and can be used while a server runs. Each check passes (✓), warns (!) or fails (✗), with what was
/// found and how to fix it. The exit code is 1 if a check fails, else 0.
///
/// PostgreSQL: connection, permissions, schema, settings that can lose data or slow the server down, long transactions,
/// vacuum, outbox and nodes. Redis: connection, topology, permissions, settings that can lose data or slow the server
/// down, memory, replicas, outbox and nodes. SQLite: the file, its permissions, the disk, the process that uses it, and
/// its contents. The server at --url, if one runs: its health, version, store and clocks.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman doctor
  pointsman doctor --config pointsman.yml --deep
  POINTSMAN_STORE=postgres://bus@db/bus pointsman doctor
  pointsman doctor --store redis+sentinel://host1,host2,host3/mymaster
  pointsman doctor -o json | jq '.findings[] | select(.verdict != \"ok\")'")]
pub(crate) struct DoctorCommand {
    /// Also check every index of a SQLite file, which takes longer
    #[cfg(feature = "sqlite")]
    #[arg(long)]
    deep: bool,

    /// Report PostgreSQL transactions that are open for longer than this
    #[cfg(feature = "postgres")]
    #[arg(long = "long", value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    max_transaction_age: Duration,

    #[command(flatten)]
    config: ConfigArgs,
}

#[cfg(feature = "postgres")]
fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_http_duration(text).map_err(|e| e.to_string())
}

impl DoctorCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let output = Output::new(global);
        let inputs = self.config.to_inputs();
        let (mut findings, store) = check_configuration(&inputs);
        let mut store_findings = Vec::new();
        if let Some(store) = &store {
            store_findings = self.check_store(store).await?;
        }
        let server_findings = server::check_server(global, store.as_ref(), &store_findings).await?;
        findings.extend(store_findings);
        findings.extend(server_findings);
        match output.is_json() {
            true => output.print_json(&report::findings_to_json(&findings))?,
            false => report::print_findings(output, &findings)?,
        }
        match findings.iter().filter(|finding| finding.severity == FindingSeverity::Fault).count() {
            0 => Ok(()),
            faults => {
                let faults = format_count(faults as u64, "check", "checks");
                Err(Failure::runtime(format!("{faults} failed")))
            }
        }
    }

    async fn check_store(&self, store: &StoreUrl) -> CommandResult<Vec<Finding>> {
        match store {
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => {
                use pointsman_store_postgres::doctor::examine;

                Ok(examine(url.full_url(), self.max_transaction_age, machine_clock_now).await)
            }
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => {
                Ok(pointsman_store_redis::doctor::examine(url.full_url(), machine_clock_now).await)
            }
            #[cfg(feature = "sqlite")]
            StoreUrl::Sqlite { path } => {
                use pointsman_store_sqlite::doctor::{CheckDepth, examine};

                let depth = if self.deep { CheckDepth::Deep } else { CheckDepth::Quick };
                let path = path.clone();
                let checked = tokio::task::spawn_blocking(move || examine(&path, depth));
                checked.await.map_err(Failure::runtime)
            }
            StoreUrl::SqliteMemory => {
                let found = "in memory: all data is lost when the process ends";
                Ok(vec![
                    Finding::warning("store", found).with_advice("Use a file: store: sqlite:pointsman.db"),
                ])
            }
            #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
            missing => Err(Failure::usage(missing.missing_feature_error())),
        }
    }
}

/// Returns the findings of `config check`, and the configured store. If the configuration is invalid, the store is that
/// of --store, or none without this option.
fn check_configuration(inputs: &ConfigInputs) -> (Vec<Finding>, Option<StoreUrl>) {
    let loaded = inputs.load_config();
    let report = config::check_config(inputs, machine_clock_now());
    match (loaded, report.outcome) {
        (Ok(config), Ok(summary)) => {
            let summary_text = summary.to_string();
            let (first, read) = (
                summary_text.lines().next().unwrap_or_default(),
                clause_to_sentence(&config.describe_config_files()),
            );
            let found = format!("{first} {read}");
            let warnings = summary.warnings.iter();
            let warnings = warnings.map(|warning| Finding::warning("configuration", warning.to_string()));
            let findings = [Finding::ok("configuration", found)].into_iter().chain(warnings);
            let findings = findings.chain(commands_run_as_root_finding(&config));
            (findings.collect(), Some(config.store_url))
        }
        (Err(faults), _) | (Ok(_), Err(faults)) => {
            let fault = |fault: &config::ConfigFault| {
                Finding::fault("configuration", format!("{}: {}", fault.location(), fault.message()))
            };
            let store_flag = inputs.flags.iter().find(|flag| flag.setting_path == "store");
            (faults.iter().map(fault).collect(), store_flag.and_then(|flag| flag.value.parse().ok()))
        }
    }
}

/// A warning if commands would run as root.
fn commands_run_as_root_finding(config: &config::Config) -> Option<Finding> {
    let warning = root_warning::describe_commands_run_as_root(config, nix::unistd::geteuid().is_root())?;
    Some(Finding::warning("commands", warning).with_advice(root_warning::RUN_AS_ROOT_ADVICE))
}

/// Makes a sentence of a clause: a capital letter and a full stop.
fn clause_to_sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}
