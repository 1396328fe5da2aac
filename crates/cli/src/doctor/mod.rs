//! `pointsman doctor`: looks at everything that a server needs, and says what to do about what is wrong.

mod server;
mod shown;

use std::time::Duration;

use clap::Args;
use pointsman_core::time::parse_http_duration;
use pointsman_server::config::{self, Sources, StoreUrl};
use pointsman_store::finding::{Finding, Verdict};
use pointsman_store_postgres::doctor as postgres;
use pointsman_store_redis::doctor as redis;
use pointsman_store_sqlite::doctor::{self as sqlite, Depth};

use crate::args::Global;
use crate::config::ConfigArgs;
use crate::failure::{Failure, Result};
use crate::output::{Output, counted};

/// Look at all that a server needs: configuration, store, settings of the database
///
/// Changes nothing, and may be run beside a running server. Each check is fine (✓), a warning (!) or a fault (✗),
/// with what was found and what to do about it. Ends with 1 if there is a fault, with 0 otherwise.
///
/// Of PostgreSQL it looks at the connection, rights, layout and what is missing of it, settings that lose data or
/// hinder, long transactions, what vacuum has left, the outbox and the nodes; of Redis at the connection, how the server
/// is found, rights, settings that lose data or hinder, memory, replicas, the outbox and the nodes; of SQLite at the
/// file, its rights, the disk, who has it open, and its contents. A server that runs at --url is asked how it is.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman doctor
  pointsman doctor --config pointsman.yml --deep
  POINTSMAN_STORE=postgres://bus@db/bus pointsman doctor
  pointsman doctor --store redis+sentinel://host1,host2,host3/mymaster
  pointsman doctor -o json | jq '.findings[] | select(.verdict != \"ok\")'")]
pub(crate) struct Doctor {
    /// Look at every index of a SQLite file too, which takes longer
    #[arg(long)]
    deep: bool,

    /// Name transactions that are open on PostgreSQL for longer than this
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    long: Duration,

    #[command(flatten)]
    config: ConfigArgs,
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    parse_http_duration(text).map_err(|e| e.to_string())
}

impl Doctor {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let output = Output::new(global);
        let sources = self.config.sources();
        let (mut findings, store) = configuration(&sources);
        if let Some(store) = &store {
            findings.extend(self.examine(store).await?);
        }
        findings.extend(server::examine(global, store.as_ref()).await?);
        match output.is_json() {
            true => output.json(&shown::json(&findings))?,
            false => shown::lines(output, &findings)?,
        }
        match findings.iter().filter(|finding| finding.verdict == Verdict::Fault).count() {
            0 => Ok(()),
            faults => {
                let faults = counted(faults as u64, "fault was", "faults were");
                Err(Failure::runtime(format!("{faults} found")))
            }
        }
    }

    async fn examine(&self, store: &StoreUrl) -> Result<Vec<Finding>> {
        match store {
            StoreUrl::Postgres(url) => Ok(postgres::examine(url.whole(), self.long).await),
            StoreUrl::Redis(url) => Ok(redis::examine(url.whole()).await),
            StoreUrl::Sqlite { path } => {
                let (path, depth) = (path.clone(), if self.deep { Depth::Deep } else { Depth::Quick });
                let examined = tokio::task::spawn_blocking(move || sqlite::examine(&path, depth));
                examined.await.map_err(Failure::runtime)
            }
            StoreUrl::SqliteMemory => {
                let found = "in memory: everything is gone when the process ends";
                Ok(vec![Finding::warning("store", found).advise("Name a file: store: sqlite:pointsman.db")])
            }
        }
    }
}

/// What `config check` says of the configuration, and the store that it names. Where it has faults, the store is the one
/// of the command line, if there is one.
fn configuration(sources: &Sources) -> (Vec<Finding>, Option<StoreUrl>) {
    let loaded = sources.load();
    let report = config::check(sources, pointsman_engine::now());
    match (loaded, report.outcome) {
        (Ok(config), Ok(summary)) => {
            let told = summary.to_string();
            let (first, read) = (told.lines().next().unwrap_or_default(), sentence(&config.read_from()));
            let found = format!("{first} {read}");
            let warnings = summary.warnings.iter();
            let warnings = warnings.map(|warning| Finding::warning("configuration", warning.to_string()));
            let findings = [Finding::ok("configuration", found)].into_iter().chain(warnings);
            (findings.collect(), Some(config.store))
        }
        (Err(faults), _) | (Ok(_), Err(faults)) => {
            let fault = |fault: &config::Fault| {
                Finding::fault("configuration", format!("{}: {}", fault.place(), fault.message()))
            };
            let given = sources.flags.iter().find(|flag| flag.setting == "store");
            (faults.iter().map(fault).collect(), given.and_then(|flag| flag.value.parse().ok()))
        }
    }
}

/// A half of a sentence, as a whole one.
fn sentence(half: &str) -> String {
    let mut letters = half.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}
