//! Python and Node.js with their PostgreSQL drivers, for tests that use Pointsman's tables from other languages.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::target_folder;

/// Returns a `python3` that has `psycopg`: from the tools of the repository, from PATH, or Debian's, whose packages
/// work with `/usr/bin/python3` only.
pub fn find_python_with_psycopg() -> anyhow::Result<Command> {
    let tools_program = target_folder::test_tools_folder().map(|tools| tools.join("python/bin/python3"));
    let system_programs = ["python3", "/usr/bin/python3"].map(PathBuf::from);
    let mut found = tools_program.into_iter().chain(system_programs).filter(|program| {
        let mut command = Command::new(program);
        runs_successfully(command.args(["-c", "import psycopg"]))
    });
    let program = found.next().context(
        "python3 with psycopg is not installed; run `cargo xtask test` or `apt-get install python3-psycopg`",
    )?;
    Ok(Command::new(program))
}

/// Returns a `node` that has `pg`: from the tools of the repository, or Debian's.
pub fn find_nodejs_with_pg() -> anyhow::Result<Command> {
    let tools_packages = target_folder::test_tools_folder().map(|tools| tools.join("node/node_modules"));
    let package_folders = tools_packages.into_iter().chain([PathBuf::from("/usr/share/nodejs")]);
    let node_path = std::env::join_paths(package_folders)?;
    let command = || {
        let mut command = Command::new("node");
        command.env("NODE_PATH", &node_path);
        command
    };
    let is_installed = runs_successfully(command().args(["-e", "require('pg')"]));
    is_installed
        .then(command)
        .context("node with pg is not installed; run `cargo xtask test` or `apt-get install node-pg`")
}

fn runs_successfully(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
