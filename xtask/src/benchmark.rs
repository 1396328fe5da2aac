//! `cargo xtask bench`: runs the program of the package `pointsman-bench`, built in release mode.

use std::os::unix::process::CommandExt;
use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo_command;

/// Builds and runs the benchmark with the options of the command line, in the current directory.
pub(crate) fn run_benchmark(options: &[&str]) -> anyhow::Result<()> {
    let current_dir = Path::new(".");
    if measures_server_memory(options) {
        let mut build = cargo_command(current_dir, &["build", "--release", "--package", "pointsman-cli"]);
        if !build.status().context("cannot run cargo")?.success() {
            bail!("the server whose memory is measured does not compile; the messages above say why");
        }
    }
    let mut run =
        cargo_command(current_dir, &["run", "--quiet", "--release", "--package", "pointsman-bench", "--"]);
    // The benchmark replaces this process, so that it receives signals and sets the exit code.
    Err(run.args(options).exec()).context("cannot run cargo")
}

/// Whether the binary of the server is needed: its memory is measured, unless other parts are selected.
fn measures_server_memory(options: &[&str]) -> bool {
    let names = |part: &str| options.iter().any(|option| option.trim_start_matches("--only=") == part);
    let selects_parts = options.iter().any(|option| option.starts_with("--only"));
    let asks_for_help = options.iter().any(|option| ["-h", "--help"].contains(option));
    !asks_for_help && (!selects_parts || names("memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_built_only_if_its_memory_is_measured() {
        for options in
            [&[][..], &["--seconds", "5"], &["--only", "flood", "--only", "memory"], &["--only=memory"]]
        {
            assert!(measures_server_memory(options), "{options:?}");
        }
        for options in [&["--only", "flood"][..], &["--only=flood"], &["--help"]] {
            assert!(!measures_server_memory(options), "{options:?}");
        }
    }
}
