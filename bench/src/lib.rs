//! What `pointsman bench` measures: this machine, now, with the engine and the bare store side by side.
//!
//! Figures from one machine say little about another, so everything is measured next to the limit it could
//! reach at best: the same rows written by plain SQLite, with the same durability, in transactions of the same
//! size, in the same run. What is compared is printed with the result.

mod backlog;
mod bare;
mod emit;
mod end_to_end;
mod latency;
mod memory;
mod report;
mod rig;

use std::path::PathBuf;

pub use report::{Figure, Report, Unit};

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the databases are made; the disk under it is what is measured.
    pub dir: PathBuf,
    /// How many events the throughput measurements take.
    pub events: usize,
    /// How long latency is measured, in seconds.
    pub seconds: u64,
    /// How many tasks wait in the measurement of the backlog.
    pub backlog: usize,
    /// The program whose idle memory is measured, if it can be started.
    pub program: Option<PathBuf>,
}

/// How many measurements there are.
pub fn steps(options: &Options) -> u64 {
    4 + emit::SHAPES.len() as u64 + u64::from(options.program.is_some())
}

/// Runs every measurement, telling `progress` which one begins.
pub fn run(options: &Options, progress: &dyn Fn(u64, &str)) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let mut step = 0;
    let mut begin = |what: &str| {
        progress(step, what);
        step += 1;
    };
    if let Some(program) = &options.program {
        begin("idle memory of a server");
        report.extend(memory::idle(program, &options.dir)?);
    }
    begin("latency from emit to handler start, and of a bare durable commit");
    report.extend(runtime.block_on(latency::measure(options))?);
    for shape in emit::SHAPES {
        begin(&format!("emits acknowledged, {shape}"));
        report.extend(runtime.block_on(emit::measure(options, shape))?);
    }
    for slots in [end_to_end::DEFAULT_SLOTS, end_to_end::MANY_SLOTS] {
        begin(&format!("end to end: emitted, handled in {slots} slots, ended, history kept"));
        report.extend(runtime.block_on(end_to_end::measure(options, slots))?);
    }
    begin("claims with few and with many tasks waiting");
    report.extend(runtime.block_on(backlog::measure(options))?);
    Ok(report)
}
