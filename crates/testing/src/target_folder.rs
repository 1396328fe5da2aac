//! Cargo's target folder, where files are kept from one run to the next.

use std::path::PathBuf;

/// Finds cargo's target folder, if this program was built into one: cargo marks it as a cache.
fn find_target_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists()).map(Into::into)
}

/// Returns the folder of the PostgreSQL data directories that are kept for copying.
pub(crate) fn postgres_templates_folder() -> Option<PathBuf> {
    Some(find_target_folder()?.join("testing"))
}

/// Returns the folder where `cargo xtask test` installs tools that only the tests use.
pub(crate) fn test_tools_folder() -> Option<PathBuf> {
    Some(find_target_folder()?.join("tools"))
}
