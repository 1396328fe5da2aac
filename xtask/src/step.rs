//! Steps: each is announced, shown while it runs, timed, and listed at the end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;

/// How a step went.
enum End {
    Passed,
    /// Not made, and why.
    Skipped(String),
    Failed,
}

/// The steps made so far.
pub(crate) struct Steps {
    root: PathBuf,
    started: Instant,
    made: Vec<(&'static str, End, Duration)>,
    /// What cargo and the tests find in their environment.
    variables: Vec<(String, String)>,
}

impl Steps {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), started: Instant::now(), made: vec![], variables: vec![] }
    }

    /// Gives variables of the environment to all later steps.
    pub(crate) fn tell(&mut self, variables: &[(String, String)]) {
        self.variables.extend_from_slice(variables);
    }

    /// Runs cargo with these words. Its output goes straight to the terminal.
    pub(crate) fn cargo(&mut self, name: &'static str, words: &[&str], advice: &str) -> anyhow::Result<()> {
        announce(name, &format!("cargo {}", words.join(" ")));
        let begun = Instant::now();
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let ended = cargo(&self.root, words).envs(variables).status();
        let passed = matches!(&ended, Ok(status) if status.success());
        self.end(name, begun, passed, advice)
    }

    /// Runs a step that is a function of ours.
    pub(crate) fn own<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&Path) -> anyhow::Result<T>,
        advice: &str,
    ) -> anyhow::Result<T> {
        announce(name, "");
        let begun = Instant::now();
        let outcome = work(&self.root);
        if let Err(faults) = &outcome {
            eprintln!("{faults:#}");
        }
        self.end(name, begun, outcome.is_ok(), advice)?;
        outcome
    }

    /// Notes a step that this machine cannot make.
    pub(crate) fn skip(&mut self, name: &'static str, why: String) {
        announce(name, &format!("skipped: {why}"));
        self.made.push((name, End::Skipped(why), Duration::ZERO));
    }

    fn end(&mut self, name: &'static str, begun: Instant, passed: bool, advice: &str) -> anyhow::Result<()> {
        let end = if passed { End::Passed } else { End::Failed };
        self.made.push((name, end, begun.elapsed()));
        if passed {
            return Ok(());
        }
        self.summary();
        bail!("the step `{name}` failed. {advice}")
    }

    /// Tells what was made, how it went and how long it took.
    pub(crate) fn summary(&self) {
        eprintln!("\n── summary");
        for (name, end, took) in &self.made {
            let time = format!("{:.1} s", took.as_secs_f64());
            match end {
                End::Passed => eprintln!("  passed   {name:<12} {time:>9}"),
                End::Failed => eprintln!("  FAILED   {name:<12} {time:>9}"),
                End::Skipped(why) => eprintln!("  skipped  {name:<12} {why}"),
            }
        }
        eprintln!("  in all   {:<12} {:>9}", "", format!("{:.1} s", self.started.elapsed().as_secs_f64()));
    }
}

fn announce(name: &str, detail: &str) {
    eprintln!("\n── {name}  {detail}");
}

/// The cargo that runs us, in the repository.
pub(crate) fn cargo(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(root);
    command
}

/// Whether a cargo subcommand is there.
pub(crate) fn has(root: &Path, subcommand: &str) -> bool {
    let asked = cargo(root, &[subcommand, "--version"]).output();
    matches!(asked, Ok(answer) if answer.status.success())
}
