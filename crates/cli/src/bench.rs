//! `pointsman bench`: what this machine reaches.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pointsman_bench::{Course, Options, Part, Report, Target, Unit};

use crate::args::Global;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, Progress};
use crate::process;

/// Measure this machine: Pointsman beside the bare store, in one run
///
/// Needs no server. Throughput and latency stand beside the limit that they could reach at best: the same rows
/// written by plain SQL with the same durability, on SQLite in transactions of the same size, on PostgreSQL a thousand
/// at a time over one connection; on Redis by plain commands, a thousand tasks in a pipeline. What should not matter (a backlog, the flood of one tenant, idle queues, a limit,
/// readers, a second node) is measured with it and without it. Absolute figures move with the machine and its
/// neighbours; the ratios are what counts. Small runs are noisy: there a ratio of two rates can come out above 1,
/// though nothing is faster than its limit.
///
/// On PostgreSQL it measures latency, emits, end-to-end, nodes, backlog, flood, orders and load; the last one watches the
/// tables for minutes at full load and says whether they stay as large as they are. On Redis it measures latency, emits,
/// end-to-end, nodes, backlog, flood, orders and waiting; the last one is the memory that a waiting task takes.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman bench
  pointsman bench --events 20000 --seconds 5 --backlog 100000     a quick look
  pointsman bench --only flood --only schedules                   some of it
  pointsman bench --dir /mnt/disk -o json > figures.json          another disk, for a program
  pointsman bench --postgres                                      on a PostgreSQL server of its own
  pointsman bench --store postgres://me@host/db                   on one that is there
  pointsman bench --redis                                         on a Redis of its own
  pointsman bench --postgres --only backlog --backlog 1000000     beside a million waiting and five million ended
  pointsman bench --postgres --only load --load 900               a quarter of an hour at full load")]
pub(crate) struct Bench {
    /// Measure on this PostgreSQL or Redis server instead of SQLite. Databases are made there and dropped again, so that
    /// the role must be allowed to make some; the one that is named is not touched. On Redis all keys have a prefix of
    /// their own and are removed again
    #[arg(long, value_name = "URL", value_parser = server)]
    store: Option<String>,
    /// Measure on a PostgreSQL server that is started for the run, with the durability that it has by default. Its data
    /// lie in the folder for temporary files
    #[arg(long, conflicts_with = "store")]
    postgres: bool,
    /// Measure on a Redis that is started for the run and writes each commit to the disk before it answers
    #[arg(long, conflicts_with_all = ["store", "postgres"])]
    redis: bool,
    /// Where SQLite's files are made: the disk under this folder is measured
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// How many events the throughput measurements take
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    events: u32,
    /// How long latency is measured; and the waits beside a flood, three times; and each pace with readers, a quarter
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How many tasks wait in the measurements of the backlog and of the flood [default: 1000000, on PostgreSQL and Redis 100000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    backlog: Option<u32>,
    /// On PostgreSQL, how many ended tasks are kept beside the backlog [default: five times as many as wait]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=500_000_000))]
    kept: Option<u32>,
    /// On PostgreSQL, for how many seconds the tables are watched at full load
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u64).range(6..=86_400))]
    load: u64,
    /// How many queues are idle in the measurement of idle queues
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    queues: u32,
    /// How many schedules are checked
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    schedules: u32,
    /// How many readers follow an object each by long poll; as many do it as server-sent events, and a tenth as many
    /// of each read everything
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    readers: u32,
    /// How many orders travel a chain of five steps
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    orders: u32,
    /// Measure only this; may be given more than once. `postgres` is the same as --postgres
    #[arg(long, value_name = "PART", value_parser = only())]
    only: Vec<Only>,
}

/// What is measured alone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Only {
    Part(Part),
    /// What is measured on PostgreSQL.
    Postgres,
}

const POSTGRES: &str = "postgres";

fn only() -> impl TypedValueParser<Value = Only> {
    let names = Part::ALL.map(Part::name).into_iter().chain([POSTGRES]);
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        POSTGRES => Ok(Only::Postgres),
        part => part.parse().map(Only::Part),
    })
}

/// The URL of a server.
fn server(url: &str) -> std::result::Result<String, String> {
    match url.split_once("://") {
        Some(("postgres" | "postgresql" | "redis", _)) => Ok(url.to_owned()),
        Some(_) | None => {
            Err("this is neither postgres://… nor redis://…; without --store, SQLite is measured in \
                               files of its own"
                .into())
        }
    }
}

/// How many tasks wait, where nothing else is said.
fn usual_backlog(target: &Target) -> u32 {
    match target {
        Target::Sqlite => 1_000_000,
        Target::Postgres { .. } | Target::Redis { .. } => 100_000,
    }
}

impl Bench {
    fn target(&self) -> Target {
        let wanted = self.postgres || self.only.contains(&Only::Postgres);
        match &self.store {
            Some(url) if url.starts_with("redis") => Target::Redis { url: Some(url.clone()) },
            Some(url) => Target::Postgres { url: Some(url.clone()) },
            None if wanted => Target::Postgres { url: None },
            None if self.redis => Target::Redis { url: None },
            None => Target::Sqlite,
        }
    }

    /// The parts that are wanted; none if all that there are.
    fn parts(&self, target: &Target) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for only in &self.only {
            match only {
                Only::Postgres => {}
                Only::Part(part) if part.is_on(target) => parts.push(*part),
                Only::Part(part) => return Err(elsewhere(*part, target)),
            }
        }
        Ok(parts)
    }

    pub(crate) fn run(self, global: &Global) -> Result {
        let output = Output::new(global);
        let target = self.target();
        let only = self.parts(&target)?;
        let backlog = self.backlog.unwrap_or(usual_backlog(&target)) as usize;
        let options = Options {
            target,
            dir: self.dir,
            events: self.events as usize,
            seconds: self.seconds,
            backlog,
            kept: self.kept.map_or(5 * backlog, |kept| kept as usize),
            load: self.load,
            queues: self.queues as usize,
            schedules: self.schedules as usize,
            readers: self.readers as usize,
            orders: self.orders as usize,
            only,
            program: std::env::current_exe().ok(),
        };
        let steps = pointsman_bench::steps(&options);
        let progress = Progress::of(steps);
        let tell = |step, what: &str| {
            progress.is_at(step, steps);
            progress.doing(what);
        };
        let measured = pointsman_bench::run_until(&options, &tell, process::interrupted());
        drop(progress);
        let measured =
            measured.map_err(|error| Failure::runtime(format!("the measurement failed: {error:#}")))?;
        let report = measured.ok_or_else(|| {
            Failure::new(Exit::Interrupted, "interrupted; what was made for the measurement is removed")
        })?;
        if output.is_json() {
            return Ok(output.json(&report)?);
        }
        print(output, &report)?;
        report.courses.iter().try_for_each(|course| print_course(output, course))
    }
}

/// A part that is measured on another store.
fn elsewhere(part: Part, target: &Target) -> Failure {
    let stores = [
        (Target::Sqlite, "SQLite", "Leave out --postgres, --redis and --store."),
        (
            Target::Postgres { url: None },
            "PostgreSQL",
            "Say --postgres, or --store with the URL of a server.",
        ),
        (Target::Redis { url: None }, "Redis", "Say --redis, or --store with the URL of a server."),
    ];
    let here =
        stores.iter().find(|(other, ..)| std::mem::discriminant(other) == std::mem::discriminant(target));
    let there: Vec<_> = stores.iter().filter(|(other, ..)| part.is_on(other)).collect();
    let names: Vec<&str> = there.iter().map(|(_, name, _)| *name).collect();
    let here = here.map_or("this store", |(_, name, _)| *name);
    let said = format!("{} is measured on {}, and not on {here}", part.name(), names.join(" and "));
    Failure::usage(said).hint(there.first().map_or("", |(.., hint)| *hint))
}

fn print(output: Output, report: &Report) -> Result {
    let head = ["what", "measured", "beside", "ratio", "goal", ""];
    let rows = report.figures.iter().map(|figure| {
        let (against, ratio) = match (&figure.against, figure.ratio) {
            (Some((name, value)), Some(ratio)) => {
                (format!("{} ({name})", shown(*value, figure.unit)), format!("{ratio:.2}"))
            }
            (Some((name, value)), None) => {
                (format!("{} ({name})", shown(*value, figure.unit)), String::new())
            }
            (None, _) => (String::new(), String::new()),
        };
        let verdict = match figure.reached {
            Some(true) => "reached",
            Some(false) => "missed",
            None => "",
        };
        let goal = figure.goal.clone().unwrap_or_default();
        vec![figure.name.clone(), shown(figure.value, figure.unit), against, ratio, goal, verdict.to_string()]
    });
    Ok(output.table(&head, rows.collect(), "nothing was measured")?)
}

/// A line for each time, a column for each thing that was looked at.
fn print_course(output: Output, course: &Course) -> Result {
    output.line("")?;
    output.line(&course.name)?;
    let head: Vec<&str> =
        ["after"].into_iter().chain(course.lines.iter().map(|line| line.name.as_str())).collect();
    let rows = course.times.iter().enumerate().map(|(i, time)| {
        let values = course.lines.iter().map(|line| {
            let value = line.values.get(i).copied();
            value.map_or_else(String::new, |value| shown(value, line.unit))
        });
        [format!("{time:.0} s")].into_iter().chain(values).collect()
    });
    Ok(output.table(&head, rows.collect(), "nothing was looked at")?)
}

fn shown(value: f64, unit: Unit) -> String {
    let sign = unit.sign();
    match unit {
        Unit::PerSecond | Unit::Rows | Unit::Bytes => format!("{value:.0}{sign}"),
        Unit::Milliseconds => format!("{value:.2}{sign}"),
        Unit::Megabytes if value < 1.0 => format!("{value:.2}{sign}"),
        Unit::Megabytes => format!("{value:.0}{sign}"),
    }
}
