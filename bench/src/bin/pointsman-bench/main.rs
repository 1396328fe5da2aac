//! `cargo xtask bench`: measures throughput and latency on this machine, and prints the figures.

mod arguments;
mod stop_signal;
mod tables;

use std::process::ExitCode;
use std::time::Duration;

use arguments::{Arguments, OutputFormat};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// The interval at which the progress bar is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: the benchmark failed: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let output_format = arguments.output_format;
    let options = arguments.into_options()?;
    let progress = new_progress_bar(pointsman_bench::count_progress_steps(&options))?;
    let report_step = |step, message: &str| {
        progress.set_position(step);
        progress.set_message(message.to_owned());
    };
    let stop = stop_signal::wait_for_stop_signal();
    let outcome = pointsman_bench::run_benchmarks_until(&options, &report_step, stop);
    progress.finish_and_clear();
    let Some(report) = outcome? else {
        eprintln!("interrupted; the data of the benchmark was deleted");
        return Ok(ExitCode::from(stop_signal::INTERRUPTED_EXIT_CODE));
    };
    match output_format {
        OutputFormat::Table => tables::write_report(&mut std::io::stdout().lock(), &report)?,
        OutputFormat::Json => println!("{}", serde_json::to_string(&report)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// A progress bar on standard error if that is a terminal, nothing otherwise.
fn new_progress_bar(steps: u64) -> anyhow::Result<ProgressBar> {
    let template = "{spinner} [{elapsed}] {bar:20} {human_pos}/{human_len} {wide_msg}";
    let bar = ProgressBar::new(steps).with_style(ProgressStyle::with_template(template)?);
    bar.enable_steady_tick(REDRAW_INTERVAL);
    Ok(bar)
}
