//! `cargo xtask packages`: packages all crates that are published, as `cargo publish` would, without compiling them.

use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo_command;

/// Folders of packages that are not in `crates`.
const PACKAGE_FOLDERS_OUTSIDE_CRATES: &[&str] = &["console"];

/// Checks that the published crates can be packaged: their metadata is complete, they depend on each other by version,
/// and no file that they name is outside their folders.
pub(crate) fn check_packages(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo_command(root, &["package", "--no-verify", "--offline", "--allow-dirty"]);
    for name in list_published_packages(root)? {
        command.args(["--package", &name]);
    }
    let output = command.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("a crate cannot be packaged\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The names of the packages without `publish = false`.
fn list_published_packages(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut folders: Vec<_> = PACKAGE_FOLDERS_OUTSIDE_CRATES.iter().map(|folder| root.join(folder)).collect();
    for entry in std::fs::read_dir(root.join("crates")).context("cannot list `crates`")? {
        folders.push(entry?.path());
    }
    folders.sort();
    let mut names = vec![];
    for folder in folders {
        let file = folder.join("Cargo.toml");
        let manifest =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if !manifest.lines().any(|line| line == "publish = false") {
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
            names.push(name.with_context(|| format!("{} has no name", file.display()))?.to_owned());
        }
    }
    Ok(names)
}
