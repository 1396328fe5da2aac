//! Finds the installed server programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Debian's folders for PostgreSQL, one for each version. The first that exists is used.
const POSTGRES_PROGRAM_FOLDERS: [&str; 4] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/18/bin",
];

/// Debian's folders for server programs, which are in the PATH of root only.
const SERVER_PROGRAM_FOLDERS: [&str; 1] = ["/usr/sbin"];

/// The programs of one PostgreSQL version.
#[derive(Debug, Clone)]
pub(crate) struct PostgresPrograms {
    pub(crate) postgres: PathBuf,
    pub(crate) initdb: PathBuf,
    /// The version, such as `15.18`.
    pub(crate) version: String,
}

impl PostgresPrograms {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let Some(folder) = find_folder_with_programs(&["postgres", "initdb"], &POSTGRES_PROGRAM_FOLDERS)
        else {
            bail!("PostgreSQL is not installed; run `apt-get install postgresql-15` as root");
        };
        let postgres = folder.join("postgres");
        let version = read_postgres_version(&postgres)?;
        Ok(Self { postgres, initdb: folder.join("initdb"), version })
    }
}

pub(crate) fn find_pgbouncer() -> anyhow::Result<PathBuf> {
    match find_folder_with_programs(&["pgbouncer"], &SERVER_PROGRAM_FOLDERS) {
        Some(folder) => Ok(folder.join("pgbouncer")),
        None => bail!("PgBouncer is not installed; run `apt-get install pgbouncer` as root"),
    }
}

/// Finds the Redis server. Debian's `redis-tools` contain it under another name; it acts as a server if it is started
/// as `redis-server`.
pub(crate) fn find_redis_server() -> anyhow::Result<PathBuf> {
    let names = ["redis-server", "redis-check-rdb"];
    let found = names
        .into_iter()
        .find_map(|name| Some(find_folder_with_programs(&[name], &SERVER_PROGRAM_FOLDERS)?.join(name)));
    found.context("Redis is not installed; run `apt-get install redis-tools` as root")
}

/// Finds the first folder, of PATH and then of `extra_folders`, that contains all of the programs.
fn find_folder_with_programs(programs: &[&str], extra_folders: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(extra_folders.iter().map(PathBuf::from));
    folders.into_iter().find(|folder| programs.iter().all(|program| folder.join(program).is_file()))
}

/// Reads the version: the third word of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn read_postgres_version(postgres: &Path) -> anyhow::Result<String> {
    let output = Command::new(postgres).arg("--version").output();
    let stdout = output.with_context(|| format!("cannot run {}", postgres.display()))?.stdout;
    let stdout = String::from_utf8_lossy(&stdout);
    let version = stdout.split_whitespace().nth(2).context("`postgres --version` printed no version")?;
    Ok(version.to_owned())
}
