//! `cargo xtask durability`: runs the test that kills the server at random instants, with as many cycles as requested.
//!
//! `cargo xtask test` runs the same test in a short form; only the numbers differ, and they are passed as environment
//! variables.

use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo_command;

/// The number of times that the server is killed if `--cycles` is not given.
const DEFAULT_CYCLES: u64 = 1000;

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct DurabilityOptions {
    /// The number of times that the server is killed.
    cycles: u64,
    seed: Option<u64>,
    /// Whether the server is built in release mode.
    release: bool,
}

/// Runs the durability test with the options of the command line.
pub(crate) fn run_durability_test(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let options = parse_options(arguments)?;
    eprintln!("killing the server {} times", options.cycles);
    let mut command = cargo_command(root, &["test", "--package", "pointsman-cli", "--test", "durability"]);
    if options.release {
        command.arg("--release");
    }
    command.args(["nothing_acknowledged_is_lost", "--", "--nocapture"]);
    command.env("POINTSMAN_TEST_CYCLES", options.cycles.to_string());
    if let Some(seed) = options.seed {
        command.env("POINTSMAN_TEST_SEED", seed.to_string());
    }
    if !command.status().context("cannot run cargo")?.success() {
        bail!("a guarantee was violated; the output above names it, and the seed that repeats the run");
    }
    Ok(())
}

fn parse_options(arguments: &[&str]) -> anyhow::Result<DurabilityOptions> {
    let mut options = DurabilityOptions { cycles: DEFAULT_CYCLES, seed: None, release: false };
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        let mut parse_number = || -> anyhow::Result<u64> {
            let text = arguments.next().with_context(|| format!("`{option}` needs a number"))?;
            text.parse().with_context(|| format!("`{option} {text}`: not a whole number"))
        };
        match *option {
            "--cycles" => options.cycles = parse_number()?,
            "--seed" => options.seed = Some(parse_number()?),
            "--release" => options.release = true,
            other => bail!("unknown option `{other}`; the options are --cycles N, --seed N and --release"),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_options_are_parsed() {
        assert_eq!(
            parse_options(&[]).unwrap(),
            DurabilityOptions { cycles: DEFAULT_CYCLES, seed: None, release: false }
        );
        let arguments = ["--seed", "7", "--release", "--cycles", "50"];
        assert_eq!(
            parse_options(&arguments).unwrap(),
            DurabilityOptions { cycles: 50, seed: Some(7), release: true }
        );
        for bad in [&["--cycles"][..], &["--cycles", "many"], &["--seed", "-1"], &["fast"]] {
            assert!(parse_options(bad).is_err(), "{bad:?}");
        }
    }
}
