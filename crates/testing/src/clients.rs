//! Python and Node with their PostgreSQL drivers, for tests of what other languages do with our tables.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::target;

/// A `python3` that has `psycopg`: from the tools of the repository, from PATH, or Debian's, for which its package
/// is.
pub fn python() -> anyhow::Result<Command> {
    let own = target::tools().map(|tools| tools.join("python/bin/python3"));
    let known = ["python3", "/usr/bin/python3"].map(PathBuf::from);
    let mut found = own.into_iter().chain(known).filter(|program| {
        let mut command = Command::new(program);
        succeeds(command.args(["-c", "import psycopg"]))
    });
    let program = found.next().context(
        "no python3 with psycopg; `cargo xtask test` or `apt-get install python3-psycopg` installs it",
    )?;
    Ok(Command::new(program))
}

/// A `node` that has `pg`: from the tools of the repository, or Debian's.
pub fn node() -> anyhow::Result<Command> {
    let own = target::tools().map(|tools| tools.join("node/node_modules"));
    let folders = own.into_iter().chain([PathBuf::from("/usr/share/nodejs")]);
    let path = std::env::join_paths(folders)?;
    let command = || {
        let mut command = Command::new("node");
        command.env("NODE_PATH", &path);
        command
    };
    let there = succeeds(command().args(["-e", "require('pg')"]));
    there
        .then(command)
        .context("no node with pg; `cargo xtask test` or `apt-get install node-pg` installs it")
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
