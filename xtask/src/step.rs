//! Steps of `cargo xtask test`: each is announced, timed and listed in the summary; its output goes to the terminal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;

/// The result of a step.
enum StepResult {
    Passed,
    Failed,
}

/// Runs the steps, and keeps the result of each for the summary.
pub(crate) struct StepRunner {
    root: PathBuf,
    started_at: Instant,
    /// The name, the result and the time of each step.
    step_results: Vec<(&'static str, StepResult, Duration)>,
    /// Environment variables for cargo and the tests.
    environment_variables: Vec<(String, String)>,
}

impl StepRunner {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            started_at: Instant::now(),
            step_results: vec![],
            environment_variables: vec![],
        }
    }

    /// Adds environment variables for all later steps.
    pub(crate) fn add_environment_variables(&mut self, variables: &[(String, String)]) {
        self.environment_variables.extend_from_slice(variables);
    }

    /// Runs cargo with these arguments. Its output goes straight to the terminal.
    pub(crate) fn run_cargo_step(
        &mut self,
        name: &'static str,
        arguments: &[&str],
        advice: &str,
    ) -> anyhow::Result<()> {
        print_heading(name, &format!("cargo {}", arguments.join(" ")));
        let started_at = Instant::now();
        let variables = self.environment_variables.iter().map(|(name, value)| (name, value));
        let status = cargo_command(&self.root, arguments).envs(variables).status();
        let passed = matches!(&status, Ok(status) if status.success());
        self.record_result_and_check_if_passed(name, started_at, passed, advice)
    }

    /// Runs a step that is a function of this program.
    pub(crate) fn run_function_step<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&Path) -> anyhow::Result<T>,
        advice: &str,
    ) -> anyhow::Result<T> {
        print_heading(name, "");
        let started_at = Instant::now();
        let outcome = work(&self.root);
        if let Err(error) = &outcome {
            eprintln!("{error:#}");
        }
        self.record_result_and_check_if_passed(name, started_at, outcome.is_ok(), advice)?;
        outcome
    }

    /// Records the result of a step. Fails, after printing the summary, if the step did not pass.
    fn record_result_and_check_if_passed(
        &mut self,
        name: &'static str,
        started_at: Instant,
        passed: bool,
        advice: &str,
    ) -> anyhow::Result<()> {
        let result = if passed { StepResult::Passed } else { StepResult::Failed };
        self.step_results.push((name, result, started_at.elapsed()));
        if passed {
            return Ok(());
        }
        self.print_summary();
        bail!("the step `{name}` failed. {advice}")
    }

    /// Prints the result and the time of each step.
    pub(crate) fn print_summary(&self) {
        eprintln!("\n── summary");
        for (name, result, duration) in &self.step_results {
            let time = format!("{:.1} s", duration.as_secs_f64());
            match result {
                StepResult::Passed => eprintln!("  passed   {name:<12} {time:>9}"),
                StepResult::Failed => eprintln!("  FAILED   {name:<12} {time:>9}"),
            }
        }
        eprintln!("  total    {:<12} {:>9}", "", format!("{:.1} s", self.started_at.elapsed().as_secs_f64()));
    }
}

fn print_heading(name: &str, detail: &str) {
    eprintln!("\n── {name}  {detail}");
}

/// Returns a command for the cargo that runs this program, in the repository.
pub(crate) fn cargo_command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    command
}

/// Returns whether a cargo subcommand is installed.
pub(crate) fn has_cargo_subcommand(root: &Path, subcommand: &str) -> bool {
    let output = cargo_command(root, &[subcommand, "--version"]).output();
    matches!(output, Ok(output) if output.status.success())
}
