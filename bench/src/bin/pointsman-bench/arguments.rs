//! The command line of the benchmark.

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use pointsman_bench::{BenchOptions, BenchPart, StoreTarget};

/// Benchmark Pointsman against the bare store
///
/// Needs no server. Throughput and latency are compared with their limit: the same rows written by plain SQL with the
/// same durability, on SQLite in transactions of the same size, on PostgreSQL a thousand at a time over one connection;
/// on Redis by plain commands, a thousand tasks per pipeline. Factors that should not matter (a backlog, one busy
/// tenant, idle queues, a limit, readers, a second node) are measured with and without. Absolute numbers depend on the
/// machine and its load; compare the ratios. Small runs are noisy: a ratio of two rates can exceed 1.
///
/// On PostgreSQL it measures latency, emits, end-to-end, nodes, backlog, flood, orders and load; `load` checks for
/// minutes whether the tables keep their size at full load. On Redis it measures latency, emits, end-to-end, nodes,
/// backlog, flood, orders and waiting; `waiting` is the memory per waiting task.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", max_term_width = 100)]
#[command(after_long_help = "\
Examples:
  cargo xtask bench
  cargo xtask bench --events 20000 --seconds 5 --backlog 100000     a quick run
  cargo xtask bench --only flood --only schedules                   only some parts
  cargo xtask bench --dir /mnt/disk -o json > figures.json          another disk, as JSON
  cargo xtask bench --postgres                                      on a temporary PostgreSQL server
  cargo xtask bench --store postgres://me@host/db                   on an existing server
  cargo xtask bench --redis                                         on a temporary Redis
  cargo xtask bench --postgres --only backlog --backlog 1000000     with a million waiting and five million ended tasks
  cargo xtask bench --postgres --only load --load 900               15 minutes at full load")]
pub(crate) struct Arguments {
    /// PostgreSQL or Redis server to measure instead of SQLite. On PostgreSQL, databases are created and dropped, so the
    /// role needs CREATEDB; the database of the URL is not changed. On Redis, all keys have their own prefix and are
    /// deleted afterwards
    #[arg(long = "store", value_name = "URL", value_parser = validate_database_server_url)]
    database_server_url: Option<String>,
    /// Start a temporary PostgreSQL server with its default durability, with its data in the directory for temporary
    /// files
    #[arg(long, conflicts_with = "database_server_url")]
    postgres: bool,
    /// Start a temporary Redis that writes each commit to disk before it replies
    #[arg(long, conflicts_with_all = ["database_server_url", "postgres"])]
    redis: bool,
    /// Directory for SQLite files; its disk is measured
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Number of events for the throughput measurements
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    events: u32,
    /// Duration of the latency measurement; the flood takes three times, and each rate with readers a quarter of it
    #[arg(long = "seconds", value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    latency_seconds: u64,
    /// Number of waiting tasks for backlog and flood [default: 1000000; on PostgreSQL and Redis 100000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    backlog: Option<u32>,
    /// Number of ended tasks kept besides the backlog, on PostgreSQL [default: five times the backlog]
    #[arg(long = "kept", value_name = "KEPT", value_parser = clap::value_parser!(u32).range(0..=500_000_000))]
    archived_task_count: Option<u32>,
    /// Duration of the load measurement in seconds, on PostgreSQL
    #[arg(long = "load", value_name = "LOAD", default_value_t = 240, value_parser = clap::value_parser!(u64).range(6..=86_400))]
    load_seconds: u64,
    /// Number of idle queues
    #[arg(long = "queues", value_name = "QUEUES", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    idle_queue_count: u32,
    /// Number of schedules
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    schedules: u32,
    /// Number of readers that follow one object each by long poll; as many use server-sent events, and a tenth of each
    /// kind read everything
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    readers: u32,
    /// Number of orders that run through a chain of five steps
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    orders: u32,
    /// Measure only this part; can be repeated. `postgres` is the same as --postgres
    #[arg(long = "only", value_name = "PART", value_parser = part_filter_parser())]
    part_filters: Vec<PartFilter>,
    /// Binary of the server whose idle memory is measured, on SQLite [default: `pointsman` beside this program]
    #[arg(long = "server", value_name = "FILE")]
    server_program: Option<PathBuf>,
    /// Output format
    #[arg(short, long = "output", value_enum, default_value_t = OutputFormat::Table, value_name = "FORMAT")]
    pub(crate) output_format: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Table,
    Json,
}

/// A value of `--only`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PartFilter {
    Part(BenchPart),
    /// All parts, on PostgreSQL.
    AllOnPostgres,
}

const POSTGRES_FILTER_NAME: &str = "postgres";

fn part_filter_parser() -> impl TypedValueParser<Value = PartFilter> {
    let names = BenchPart::ALL.map(BenchPart::name).into_iter().chain([POSTGRES_FILTER_NAME]);
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        POSTGRES_FILTER_NAME => Ok(PartFilter::AllOnPostgres),
        part => part.parse().map(PartFilter::Part),
    })
}

/// Checks the URL of a PostgreSQL or Redis server.
fn validate_database_server_url(url: &str) -> Result<String, String> {
    match url.split_once("://") {
        Some(("postgres" | "postgresql" | "redis", _)) => Ok(url.to_owned()),
        Some(_) | None => {
            Err("expected postgres://… or redis://…; without --store, SQLite is measured".into())
        }
    }
}

/// The number of waiting tasks without --backlog.
fn default_backlog_size(target: &StoreTarget) -> u32 {
    match target {
        StoreTarget::Sqlite => 1_000_000,
        StoreTarget::Postgres { .. } | StoreTarget::Redis { .. } => 100_000,
    }
}

impl Arguments {
    fn store_target(&self) -> StoreTarget {
        let is_postgres = self.postgres || self.part_filters.contains(&PartFilter::AllOnPostgres);
        match &self.database_server_url {
            Some(url) if url.starts_with("redis") => StoreTarget::Redis { url: Some(url.clone()) },
            Some(url) => StoreTarget::Postgres { url: Some(url.clone()) },
            None if is_postgres => StoreTarget::Postgres { url: None },
            None if self.redis => StoreTarget::Redis { url: None },
            None => StoreTarget::Sqlite,
        }
    }

    /// Returns the parts to measure, from --only. Empty if all are measured. Exits with a usage error if a selected
    /// part is not measured on this store.
    fn selected_parts(&self, target: &StoreTarget) -> Vec<BenchPart> {
        let mut parts = Vec::new();
        for filter in &self.part_filters {
            match filter {
                PartFilter::AllOnPostgres => {}
                PartFilter::Part(part) if part.is_supported_on(target) => parts.push(*part),
                PartFilter::Part(part) => {
                    let message = describe_unsupported_part(*part, target);
                    Self::command().error(ErrorKind::ArgumentConflict, message).exit()
                }
            }
        }
        parts
    }

    /// Converts the command line into the options of a run.
    pub(crate) fn into_options(self) -> anyhow::Result<BenchOptions> {
        let target = self.store_target();
        let selected_parts = self.selected_parts(&target);
        let backlog = self.backlog.unwrap_or(default_backlog_size(&target)) as usize;
        let server_program = match self.server_program {
            Some(program) => program,
            None => std::env::current_exe()?.with_file_name("pointsman"),
        };
        let options = BenchOptions {
            store_target: target,
            dir: self.dir,
            event_count: self.events as usize,
            latency_seconds: self.latency_seconds,
            backlog_size: backlog,
            archived_task_count: self.archived_task_count.map_or(5 * backlog, |count| count as usize),
            full_load_seconds: self.load_seconds,
            idle_queue_count: self.idle_queue_count as usize,
            schedule_count: self.schedules as usize,
            readers_per_protocol: self.readers as usize,
            order_count: self.orders as usize,
            server_program,
            selected_parts,
        };
        if options.parts_to_measure().any(|part| part == BenchPart::IdleServerMemory) {
            let program = &options.server_program;
            std::fs::metadata(program).with_context(|| {
                format!(
                    "cannot measure the memory of the server {}; build it with `cargo build --release`, name another \
                     with --server, or select other parts with --only",
                    program.display()
                )
            })?;
        }
        Ok(options)
    }
}

/// The error for a part that cannot be measured on this store, with what to do.
fn describe_unsupported_part(part: BenchPart, target: &StoreTarget) -> String {
    let stores = [
        (StoreTarget::Sqlite, "SQLite", "omit --postgres, --redis and --store"),
        (
            StoreTarget::Postgres { url: None },
            "PostgreSQL",
            "use --postgres, or --store with the URL of a server",
        ),
        (StoreTarget::Redis { url: None }, "Redis", "use --redis, or --store with the URL of a server"),
    ];
    let current =
        stores.iter().find(|(other, ..)| std::mem::discriminant(other) == std::mem::discriminant(target));
    let supported: Vec<_> = stores.iter().filter(|(other, ..)| part.is_supported_on(other)).collect();
    let names: Vec<&str> = supported.iter().map(|(_, name, _)| *name).collect();
    let current = current.map_or("this store", |(_, name, _)| *name);
    let advice = supported.first().map_or("", |(.., advice)| *advice);
    format!("{} is measured on {}, not on {current}; {advice}", part.name(), names.join(" and "))
}
