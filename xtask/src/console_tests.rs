//! Runs the browser tests of the console against the binary that was built with the other tests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::tools;

/// Runs all specs of `console/tests` in a browser. Screenshots are written to `console` in the target folder.
pub(crate) fn run_console_tests(root: &Path) -> anyhow::Result<()> {
    let target = tools::find_target_folder()?;
    let mut command = Command::new("node");
    command.arg(root.join("console/tests/run.mjs"));
    command.arg(target.join("debug/pointsman")).env("CONSOLE_PICTURES", target.join("console"));
    let status = command.current_dir(root).status().context("cannot run node")?;
    if !status.success() {
        bail!("a test of the console failed; the output above names it");
    }
    Ok(())
}
