//! Development tasks of the repository. Developers and CI both run `cargo xtask test`.
//!
//! ```text
//!  main             the subcommands
//!  all_checks       the steps of `cargo xtask test`, in order
//!  step             runs one step, prints it, and records its time for the summary
//!  shared_servers
//!                   the PostgreSQL and Redis servers that all tests share
//!  tidy             style rules, checked like a test
//!  dependencies     licences and versions of the dependencies
//!  tools            installs programs that the tests need
//!  packages         packages the crates that are published
//!  console_tests    the browser tests of the console
//!  benchmark        builds and runs the benchmark
//!  binary_size      builds the binary as it is released, and prints its size
//!  features         checks the combinations of Cargo features
//!  durability_test  the long form of the test that kills the server
//!  model_check      the long form of the test that explores all runs of the outbox
//! ```
//!
//! There are hardly any dependencies, so that this builds quickly before everything else.

mod all_checks;
mod benchmark;
mod binary_size;
mod console_tests;
mod dependencies;
mod durability_test;
mod features;
mod model_check;
mod packages;
mod shared_servers;
mod step;
mod tidy;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};

const HELP: &str = "\
Development tasks of the repository.

  cargo xtask test [--long]
                      checks formatting, style, dependencies, packages, lints and documentation, then runs every test,
                      as CI does; with --long also everything that takes hours: models, walks, kills,
                      features
  cargo xtask tidy    checks only the style rules that rustfmt and clippy do not cover
  cargo xtask packages
                      checks that the crates can be published, without compiling them
  cargo xtask durability [--cycles N] [--seed N] [--release]
                      kills the server at random instants under load, 1000 times by default
  cargo xtask model   explores all runs of the outbox on Redis, nine million states, in a minute or two after the build
  cargo xtask bench [OPTIONS]
                      measures throughput and latency on this machine; `cargo xtask bench --help` lists the options
  cargo xtask features
                      compiles the library and the binary with each combination of their features, in a few minutes
  cargo xtask size    builds the binary as it is released, and prints its size
  cargo xtask help    prints this text
";

fn main() -> ExitCode {
    match run_subcommand() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_subcommand() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => all_checks::run_all_checks(&find_repository_root()?, false),
        ["test", "--long"] => all_checks::run_all_checks(&find_repository_root()?, true),
        ["tidy"] => tidy::check_repository(&find_repository_root()?),
        ["packages"] => packages::check_packages(&find_repository_root()?),
        ["bench", ref options @ ..] => benchmark::run_benchmark(options),
        ["features"] => features::check_feature_combinations(&find_repository_root()?),
        ["size"] => binary_size::print_binary_size(&find_repository_root()?),
        ["model"] => model_check::run_redis_outbox_model_check(&find_repository_root()?),
        ["durability", ref options @ ..] => {
            durability_test::run_durability_test(&find_repository_root()?, options)
        }
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("`cargo xtask {}` is not a subcommand\n\n{HELP}", arguments.join(" ")),
    }
}

/// Finds the root of the repository: the parent of the folder of this package, which Cargo passes in a variable.
fn find_repository_root() -> anyhow::Result<PathBuf> {
    let package_folder = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask …`")?;
    Ok(PathBuf::from(package_folder)
        .parent()
        .context("this package is not inside the repository")?
        .to_path_buf())
}
