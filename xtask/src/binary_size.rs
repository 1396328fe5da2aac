//! `cargo xtask size`: builds the binary as it is released, and prints its size.

use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo_command;

/// Builds `pointsman` in release mode, and prints the path and the size of the binary.
pub(crate) fn print_binary_size(root: &Path) -> anyhow::Result<()> {
    if !cargo_command(root, &["build", "--release"]).status().context("cannot run cargo")?.success() {
        bail!("the binary does not compile; the messages above say why");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    let binary = target.join("release/pointsman");
    let bytes = binary.metadata().with_context(|| format!("cannot read {}", binary.display()))?.len();
    println!("{}: {:.1} MB", binary.display(), bytes as f64 / 1e6);
    Ok(())
}
