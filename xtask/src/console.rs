//! The tests of the console: the binary that was built with the other tests, in a browser.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::tools;

pub(crate) fn test(root: &Path) -> anyhow::Result<()> {
    let target = tools::target()?;
    let mut command = Command::new("node");
    command.arg(root.join("console/tests/run.mjs"));
    command.arg(target.join("debug/pointsman")).env("CONSOLE_PICTURES", target.join("console"));
    let status = command.current_dir(root).status().context("node cannot be run")?;
    if !status.success() {
        bail!("the console fails a test");
    }
    Ok(())
}
