//! `cargo xtask test`: what the tests need, then from the cheapest check to the dearest, stopping at the first that
//! fails.
//!
//! Clippy and the tests cannot share compiled code: clippy only needs the dependencies' interfaces, the tests
//! need them built. Clippy goes first because it finds most mistakes in a fraction of the time.

use std::num::NonZero;
use std::path::Path;
use std::process::Command;

use crate::servers::Servers;
use crate::step::{Steps, has};
use crate::{console, tidy, tools};

pub(crate) fn all(root: &Path) -> anyhow::Result<()> {
    let mut steps = Steps::new(root);
    steps.own("tools", tools::all, "Install what is named above, and run this again.")?;
    steps.own(
        "tidy",
        tidy::all,
        "Each line above names the file and the rule; `cargo xtask tidy` repeats it.",
    )?;
    if component(&mut steps, root, "format", "fmt", "rustfmt") {
        steps.cargo("format", &["fmt", "--all", "--check"], "`cargo fmt --all` puts it right.")?;
    }
    if component(&mut steps, root, "lints", "clippy", "clippy") {
        let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.cargo("lints", &words, "The messages above say what to change.")?;
    }
    tests(&mut steps, root)?;
    steps.summary();
    eprintln!("\nAll is well.");
    Ok(())
}

/// Builds and runs every test: with nextest where it is installed, because it runs each test in a process of
/// its own, and otherwise with what every toolchain has. The servers that they share run meanwhile, and end with
/// this function.
fn tests(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    let threads = threads();
    let (build, run) = if has(root, "nextest") {
        let run = ["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &threads];
        (["nextest", "run", "--workspace", "--no-run"], run.to_vec())
    } else {
        let run = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
        (["test", "--workspace", "--all-targets", "--no-run"], run.to_vec())
    };
    steps.cargo("build", &build, "The compiler's messages stand above.")?;
    let servers = steps.own("servers", |_| Servers::start(), "What they said stands above.")?;
    steps.tell(&servers.variables);
    let advice = "The failing tests are listed above; run one alone with `cargo test -p CRATE NAME`.";
    steps.cargo("tests", &run, advice)?;
    let advice = "`node console/tests/run.mjs target/debug/pointsman SPEC` repeats one spec.";
    steps.own("console", console::test, advice)?;
    steps.cargo("doc tests", &["test", "--workspace", "--doc"], "An example in the documentation fails.")
}

/// Twice as many tests at a time as there are cores: half of them wait for a server, a lease or a clock.
fn threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    (2 * cores).to_string()
}

/// Whether a part of the toolchain is there, after trying to add it. A machine that has no rustup and no such
/// part can still run the tests, which is what it is for.
fn component(steps: &mut Steps, root: &Path, step: &'static str, subcommand: &str, name: &str) -> bool {
    if has(root, subcommand) {
        return true;
    }
    let added = Command::new("rustup").args(["component", "add", name]).current_dir(root).status();
    let there = matches!(added, Ok(status) if status.success()) && has(root, subcommand);
    if !there {
        steps.skip(step, format!("{name} is not installed and could not be added"));
    }
    there
}
