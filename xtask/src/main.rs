//! Chores of the repository. `cargo xtask test` is the one that everybody runs, people and machines alike.
//!
//! ```text
//!  main         what can be asked for
//!  test         the steps of `cargo xtask test`, in order
//!  step         runs one step, shows it, and keeps its time for the summary
//!  servers      the servers that all tests share
//!  tidy         style that matters, checked like a test
//!  tools        programs that the tests need, installed if they are not there
//!  console      the tests of the console, in a browser
//!  durability   the long form of the test that kills the server
//!  model        the long form of the test that looks at all runs of the outbox
//! ```
//!
//! Next to nothing is depended on, so that this builds in a moment before anything else does.

mod console;
mod durability;
mod model;
mod servers;
mod step;
mod test;
mod tidy;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};

const HELP: &str = "\
Chores of the repository.

  cargo xtask test    formatting, tidiness, lints, then every test; what CI runs
  cargo xtask tidy    only the check of style that rustfmt and clippy do not make
  cargo xtask durability [--cycles N] [--seed N] [--release]
                      kills the server at random instants under load, 1000 times if nothing is said
  cargo xtask model   looks at all runs of the outbox on Redis, nine million states: a minute or two once it is built
  cargo xtask help    this text
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test::all(&root()?),
        ["tidy"] => tidy::all(&root()?),
        ["model"] => model::run(&root()?),
        ["durability", ref wishes @ ..] => durability::run(&root()?, wishes),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("`cargo xtask {}` is not a chore\n\n{HELP}", words.join(" ")),
    }
}

/// The root of the repository. Cargo tells where this package is, wherever it was called from.
fn root() -> anyhow::Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask …`")?;
    Ok(PathBuf::from(here).parent().context("this package is not inside the repository")?.to_path_buf())
}
