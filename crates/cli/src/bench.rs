//! `pointsman bench`: what this machine reaches.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressStyle};
use pointsman_bench::{Figure, Options, Part, Report, Unit};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Measure this machine: Pointsman beside the bare store, in one run
///
/// Needs no server. Throughput and latency stand beside the limit that they could reach at best: the same rows
/// written by plain SQLite, with the same durability, in transactions of the same size. What should not matter (a
/// backlog, the flood of one tenant, idle queues, a limit, readers) is measured with it and without it. Absolute figures
/// move with the machine and its neighbours; the ratios are what counts. Small runs are noisy: there a ratio of two
/// rates can come out above 1, though nothing is faster than its limit.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman bench
  pointsman bench --events 20000 --seconds 5 --backlog 100000     a quick look
  pointsman bench --only flood --only schedules                   some of it
  pointsman bench --dir /mnt/disk -o json > figures.json          another disk, for a program")]
pub(crate) struct Bench {
    /// Where the databases are made: the disk under this folder is measured
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// How many events the throughput measurements take
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    events: u32,
    /// How long latency is measured; and the waits beside a flood, three times; and each pace with readers, a quarter
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How many tasks wait in the measurements of the backlog and of the flood
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    backlog: u32,
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
    /// Measure only this; may be given more than once
    #[arg(long, value_name = "PART", value_parser = part())]
    only: Vec<Part>,
}

fn part() -> impl TypedValueParser<Value = Part> {
    PossibleValuesParser::new(Part::ALL.map(Part::name)).try_map(|name| name.parse::<Part>())
}

impl Bench {
    pub(crate) fn run(self, global: &Global) -> Result {
        let output = Output::new(global);
        let options = Options {
            dir: self.dir,
            events: self.events as usize,
            seconds: self.seconds,
            backlog: self.backlog as usize,
            queues: self.queues as usize,
            schedules: self.schedules as usize,
            readers: self.readers as usize,
            orders: self.orders as usize,
            only: self.only,
            program: std::env::current_exe().ok(),
        };
        let bar = ProgressBar::new(pointsman_bench::steps(&options));
        let style = ProgressStyle::with_template("{spinner} [{elapsed}] {bar:20} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        let measured = pointsman_bench::run(&options, &|step, what| {
            bar.set_position(step);
            bar.set_message(what.to_string());
        });
        bar.finish_and_clear();
        let report =
            measured.map_err(|error| Failure::runtime(format!("the measurement failed: {error:#}")))?;
        if output.is_json() {
            return Ok(output.json(&report)?);
        }
        print(output, &report)
    }
}

fn print(output: Output, report: &Report) -> Result {
    let head = ["what", "measured", "beside", "ratio", "goal", ""];
    let rows = report.figures.iter().map(|figure| {
        let (against, ratio) = match (&figure.against, figure.ratio) {
            (Some((name, value)), Some(ratio)) => {
                (format!("{} ({name})", shown(*value, figure)), format!("{ratio:.2}"))
            }
            _ => (String::new(), String::new()),
        };
        let verdict = match figure.reached {
            Some(true) => "reached",
            Some(false) => "missed",
            None => "",
        };
        let goal = figure.goal.clone().unwrap_or_default();
        vec![figure.name.clone(), shown(figure.value, figure), against, ratio, goal, verdict.to_string()]
    });
    Ok(output.table(&head, rows.collect(), "nothing was measured")?)
}

fn shown(value: f64, figure: &Figure) -> String {
    match figure.unit {
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Milliseconds => format!("{value:.2} ms"),
        Unit::Megabytes => format!("{value:.0} MB"),
    }
}
