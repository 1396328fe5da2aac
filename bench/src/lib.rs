//! What `pointsman bench` measures: this machine, now, with both sides of every comparison in one run.
//!
//! Figures from one machine say little about another, so everything is measured next to something: throughput and
//! latency next to the limit they could reach at best (the same rows written by plain SQL, with the same durability),
//! and what should not matter (a backlog, a flood, idle queues, a limit, readers, a second node) next to the same
//! without it. What is compared is printed with the result.
//!
//! - `ground/` is where stores are made: a folder, or databases on a server. `fill.rs` fills them, `rig.rs` puts engines
//!   on them, `claims.rs` asks them for tasks.
//! - `bare/` is plain SQL.
//! - The parts of a run are a file each; `part.rs` knows them all, and `report.rs` what they found.

mod backlog;
mod bare;
mod claims;
mod emit;
mod end_to_end;
mod fill;
mod flood;
mod ground;
mod idle_queues;
mod latency;
mod limits;
mod load;
mod memory;
mod nodes;
mod orders;
mod part;
mod readers;
mod report;
mod rig;
mod schedules;
mod waiting;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use ground::Site;
pub use ground::Target;
pub use part::{Part, UnknownPart};
pub use report::{Course, Figure, Line, Report, Unit};

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store that is measured.
    pub target: Target,
    /// Where SQLite's files are made; the disk under it is what is measured.
    pub dir: PathBuf,
    /// How many events the throughput measurements take.
    pub events: usize,
    /// How long latency is measured, in seconds; and the waits beside a flood, and the paces with readers, accordingly.
    pub seconds: u64,
    /// How many tasks wait in the measurements of the backlog and the flood.
    pub backlog: usize,
    /// How many ended ones are kept beside the backlog. Only PostgreSQL is filled with such.
    pub kept: usize,
    /// How long a server is watched under full load, in seconds.
    pub load: u64,
    /// How many queues have nothing to run in the measurement of idle queues.
    pub queues: usize,
    pub schedules: usize,
    /// How many follow an object by long poll; as many do it as server-sent events.
    pub readers: usize,
    /// How many orders travel the chain.
    pub orders: usize,
    /// The program whose idle memory is measured, if it can be started.
    pub program: Option<PathBuf>,
    /// Only these; all if empty.
    pub only: Vec<Part>,
}

impl Options {
    fn parts(&self) -> impl Iterator<Item = Part> {
        let wanted = |part: &Part| self.only.is_empty() || self.only.contains(part);
        Part::ALL.into_iter().filter(|part| part.is_on(&self.target)).filter(wanted)
    }

    /// How many ended tasks are kept beside the backlog.
    fn kept(&self) -> usize {
        match self.target {
            Target::Sqlite | Target::Redis { .. } => 0,
            Target::Postgres { .. } => self.kept,
        }
    }
}

/// How many steps a run has.
pub fn steps(options: &Options) -> u64 {
    options.parts().map(|part| part.steps(options)).sum()
}

/// Runs every measurement, telling `progress` which one begins.
pub fn run(options: &Options, progress: &dyn Fn(u64, &str)) -> anyhow::Result<Report> {
    run_until(options, progress, std::future::pending()).map(Option::unwrap_or_default)
}

/// Programs and servers that were started for a run hear an interrupt too, and it may fail for that before it is told to
/// stop: so long it waits to be told.
const A_MOMENT: Duration = Duration::from_millis(200);

/// The same, unless `stop` comes first: then there is no report, and all that was made for the run is gone.
pub fn run_until(
    options: &Options,
    progress: &dyn Fn(u64, &str),
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Option<Report>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut stop = pin!(stop);
    let outcome = runtime.block_on(async {
        tokio::select! {
            // It is looked at before anything is made.
            biased;
            () = &mut stop => Ok(None),
            measured = measure(options, progress) => match measured {
                Ok(report) => Ok(Some(report)),
                Err(error) => tokio::select! {
                    () = &mut stop => Ok(None),
                    () = tokio::time::sleep(A_MOMENT) => Err(error),
                }
            }
        }
    });
    // What still runs in threads is of no use any more.
    runtime.shutdown_background();
    outcome
}

async fn measure(options: &Options, progress: &dyn Fn(u64, &str)) -> anyhow::Result<Report> {
    let site = Site::find(options)?;
    let mut report = Report::default();
    let mut step = 0;
    let mut begin = |what: &str| {
        progress(step, what);
        step += 1;
    };
    for part in options.parts() {
        report.extend(part.measure(options, &site, &mut begin).await?);
    }
    Ok(report)
}
