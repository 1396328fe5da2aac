//! Where things are kept from one run to the next.

use std::path::PathBuf;

/// Cargo's target folder, if this program was built into one; it is the one that cargo marks as a cache.
fn target() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists()).map(Into::into)
}

/// Where clusters are kept for copying.
pub(crate) fn templates() -> Option<PathBuf> {
    Some(target()?.join("testing"))
}

/// Where `cargo xtask test` puts what it installs for the tests alone.
pub(crate) fn tools() -> Option<PathBuf> {
    Some(target()?.join("tools"))
}
