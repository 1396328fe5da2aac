//! `cargo xtask test`: installs what the tests need, then runs the checks from the cheapest to the most expensive, and
//! stops at the first that fails.
//!
//! Clippy and the tests cannot share compiled code: clippy needs only the interfaces of the dependencies, the tests
//! need the dependencies built. Clippy runs first because it finds most mistakes in a fraction of the time.

use std::num::NonZero;
use std::path::Path;
use std::process::Command;

use crate::shared_servers::SharedServers;
use crate::step::{StepRunner, has_cargo_subcommand};
use crate::{console_tests, tidy, tools};

/// Runs all steps of `cargo xtask test`.
pub(crate) fn run_all_checks(root: &Path) -> anyhow::Result<()> {
    let mut steps = StepRunner::new(root);
    steps.run_function_step(
        "tools",
        tools::install_missing_tools,
        "Install the programs that are named above, and run this again.",
    )?;
    steps.run_function_step(
        "tidy",
        tidy::check_repository,
        "Each line above names the file and the rule; `cargo xtask tidy` repeats it.",
    )?;
    if ensure_toolchain_component(&mut steps, root, "format", "fmt", "rustfmt") {
        steps.run_cargo_step("format", &["fmt", "--all", "--check"], "Run `cargo fmt --all` to fix it.")?;
    }
    if ensure_toolchain_component(&mut steps, root, "lints", "clippy", "clippy") {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.run_cargo_step("lints", &arguments, "The messages above say what to change.")?;
    }
    run_tests(&mut steps, root)?;
    steps.print_summary();
    eprintln!("\nAll checks passed.");
    Ok(())
}

/// Builds and runs every test: with nextest if it is installed, because it runs each test in its own process, and
/// otherwise with `cargo test`. The shared servers run until this function returns.
fn run_tests(steps: &mut StepRunner, root: &Path) -> anyhow::Result<()> {
    let threads = test_thread_count();
    let (build_arguments, test_arguments) = if has_cargo_subcommand(root, "nextest") {
        let run = ["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &threads];
        (["nextest", "run", "--workspace", "--no-run"], run.to_vec())
    } else {
        let run = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
        (["test", "--workspace", "--all-targets", "--no-run"], run.to_vec())
    };
    steps.run_cargo_step("build", &build_arguments, "The compiler's messages are above.")?;
    let servers = steps.run_function_step(
        "servers",
        |_| SharedServers::start(),
        "The output of the servers is above.",
    )?;
    steps.add_environment_variables(&servers.server_url_variables);
    let advice = "The failing tests are listed above; run one alone with `cargo test -p CRATE NAME`.";
    steps.run_cargo_step("tests", &test_arguments, advice)?;
    let advice = "`node console/tests/run.mjs target/debug/pointsman SPEC` repeats one spec.";
    steps.run_function_step("console", console_tests::run_console_tests, advice)?;
    steps.run_cargo_step(
        "doc tests",
        &["test", "--workspace", "--doc"],
        "An example in the documentation fails.",
    )
}

/// Returns the number of tests to run at a time: twice the number of cores, because half of the tests wait for a
/// server, a lease or a clock.
fn test_thread_count() -> String {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    (2 * cores).to_string()
}

/// Adds a component of the Rust toolchain if it is missing, and returns whether it is installed. If it is not, records
/// `step` as skipped, so that a machine without rustup can still run the tests.
fn ensure_toolchain_component(
    steps: &mut StepRunner,
    root: &Path,
    step: &'static str,
    subcommand: &str,
    component: &str,
) -> bool {
    if has_cargo_subcommand(root, subcommand) {
        return true;
    }
    let added = Command::new("rustup").args(["component", "add", component]).current_dir(root).status();
    let is_installed =
        matches!(added, Ok(status) if status.success()) && has_cargo_subcommand(root, subcommand);
    if !is_installed {
        steps.record_skipped_step(step, format!("{component} is not installed and could not be added"));
    }
    is_installed
}
