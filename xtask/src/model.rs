//! `cargo xtask model`: all runs of the outbox on Redis, in worlds that are too large for every test run.

use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo;

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let words = ["test", "--release", "--package", "pointsman-store-redis", "--test", "model"];
    let mut command = cargo(root, &words);
    command.args(["--", "--include-ignored", "--nocapture"]);
    if !command.status().context("cannot run cargo")?.success() {
        bail!("a property does not hold; the output above names it, and the steps that lead there");
    }
    Ok(())
}
