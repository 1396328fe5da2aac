//! Where the servers' programs are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Where Debian keeps PostgreSQL, a folder a version. The first found is taken.
const POSTGRES: [&str; 4] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/18/bin",
];

/// Where Debian keeps servers, which is in the PATH of root alone.
const SERVERS: [&str; 1] = ["/usr/sbin"];

/// The programs of one PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct PostgresPrograms {
    pub(crate) postgres: PathBuf,
    pub(crate) initdb: PathBuf,
    /// Such as `15.18`.
    pub(crate) version: String,
}

impl PostgresPrograms {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let Some(folder) = folder_with(&["postgres", "initdb"], &POSTGRES) else {
            bail!("PostgreSQL is not installed; `apt-get install postgresql-15` as root does it");
        };
        let postgres = folder.join("postgres");
        let version = version(&postgres)?;
        Ok(Self { postgres, initdb: folder.join("initdb"), version })
    }
}

pub(crate) fn pgbouncer() -> anyhow::Result<PathBuf> {
    match folder_with(&["pgbouncer"], &SERVERS) {
        Some(folder) => Ok(folder.join("pgbouncer")),
        None => bail!("PgBouncer is not installed; `apt-get install pgbouncer` as root does it"),
    }
}

/// Debian's `redis-tools` have the server too, which is one if it is called `redis-server`.
pub(crate) fn redis() -> anyhow::Result<PathBuf> {
    let names = ["redis-server", "redis-check-rdb"];
    let found = names.into_iter().find_map(|name| Some(folder_with(&[name], &SERVERS)?.join(name)));
    found.context("Redis is not installed; `apt-get install redis-tools` as root does it")
}

/// The first folder, of PATH and then of these, that has all of the programs.
fn folder_with(programs: &[&str], more: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(more.iter().map(PathBuf::from));
    folders.into_iter().find(|folder| programs.iter().all(|program| folder.join(program).is_file()))
}

/// The third word of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn version(postgres: &Path) -> anyhow::Result<String> {
    let asked = Command::new(postgres).arg("--version").output();
    let told = asked.with_context(|| format!("cannot run {}", postgres.display()))?.stdout;
    let told = String::from_utf8_lossy(&told);
    let version = told.split_whitespace().nth(2).context("PostgreSQL does not tell its version")?;
    Ok(version.to_owned())
}
