//! `cargo xtask model`: explores all runs of the outbox on Redis, in models that are too large for every test run.

use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo_command;

/// Runs the model tests of the Redis store, including the ignored ones, which are the large models.
pub(crate) fn run_redis_outbox_model_check(root: &Path) -> anyhow::Result<()> {
    let arguments = ["test", "--release", "--package", "pointsman-store-redis", "--test", "model"];
    let mut command = cargo_command(root, &arguments);
    command.args(["--", "--include-ignored", "--nocapture"]);
    if !command.status().context("cannot run cargo")?.success() {
        bail!("a property is violated; the output above names it, and the steps that lead to the violation");
    }
    Ok(())
}
