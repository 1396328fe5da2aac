//! `cargo xtask test`: installs what the tests need, then runs the checks from the cheapest to the most expensive, and
//! stops at the first that fails.
//!
//! Clippy and the tests cannot share compiled code: clippy needs only the interfaces of the dependencies, the tests
//! need the dependencies built. Clippy runs first because it finds most mistakes in a fraction of the time.

use std::num::NonZero;
use std::path::Path;

use crate::shared_servers::SharedServers;
use crate::step::{StepRunner, has_cargo_subcommand};
use crate::{console_tests, dependencies, durability_test, features, model_check, packages, tidy, tools};

/// Number of random walks of each kind in `cargo xtask test --long`.
const LONG_WALK_COUNT: u32 = 50;

/// Builds the documentation of the libraries, private items included, with warnings as errors. The binary is left out,
/// because its name is that of the library `pointsman`.
const DOC_ARGUMENTS: &[&str] = &[
    "doc",
    "--workspace",
    "--lib",
    "--no-deps",
    "--document-private-items",
    "--config=build.rustdocflags=['-Dwarnings']",
];

/// Runs all steps of `cargo xtask test`; with `long`, also those that take hours.
pub(crate) fn run_all_checks(root: &Path, long: bool) -> anyhow::Result<()> {
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
    steps.run_function_step(
        "dependencies",
        dependencies::check_dependencies,
        "Each line above names the crate and what to do.",
    )?;
    steps.run_function_step("packages", packages::check_packages, "The message above names the crate.")?;
    steps.run_cargo_step("format", &["fmt", "--all", "--check"], "Run `cargo fmt --all` to fix it.")?;
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    steps.run_cargo_step("lints", &arguments, "The messages above say what to change.")?;
    steps.run_cargo_step("docs", DOC_ARGUMENTS, "The messages above say what to change.")?;
    run_tests(&mut steps, root)?;
    if long {
        run_long_checks(&mut steps)?;
    }
    steps.print_summary();
    eprintln!("\nAll checks passed.");
    Ok(())
}

/// Runs the checks that take too long for every change: large models, many random walks, a thousand kills of the server,
/// and all combinations of Cargo features.
fn run_long_checks(steps: &mut StepRunner) -> anyhow::Result<()> {
    steps.run_function_step(
        "model",
        model_check::run_redis_outbox_model_check,
        "The output above names the property that is violated.",
    )?;
    steps.add_environment_variables(&[("POINTSMAN_WALKS".into(), LONG_WALK_COUNT.to_string())]);
    let arguments = ["test", "--workspace", "--no-fail-fast", "random_walk"];
    steps.run_cargo_step("walks", &arguments, "The output above names the seed that repeats the walk.")?;
    steps.run_function_step(
        "durability",
        |root| durability_test::run_durability_test(root, &["--release"]),
        "The output above names the guarantee and the seed.",
    )?;
    // Last, because it leaves a binary without most features in target/debug.
    steps.run_function_step(
        "features",
        features::check_feature_combinations,
        "The output above names the package and its features.",
    )
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
