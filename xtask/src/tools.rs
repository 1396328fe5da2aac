//! Installs the programs that the tests use: from Debian's packages, or else under `target/tools`, where
//! `crates/testing` finds them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::step::has_cargo_subcommand;

/// A program or library that the tests use.
struct Tool {
    name: &'static str,
    purpose: &'static str,
    /// Debian packages that contain the tool, tried one after the other.
    debian_packages: &'static [&'static str],
    /// Returns whether the tool is installed. The argument is the folder `target/tools`, which may contain it.
    is_installed: fn(&Path) -> bool,
    /// Installs the tool into the folder `target/tools`, if none of the packages can be installed.
    install_fallback: Option<fn(&Path)>,
}

const TOOLS: [Tool; 11] = [
    Tool {
        name: "strace",
        purpose: "to check that a response is sent after the data is on disk",
        debian_packages: &["strace"],
        is_installed: |_| program_runs("strace", &["--version"]),
        install_fallback: None,
    },
    Tool {
        name: "python3",
        purpose: "to run the example of a worker",
        debian_packages: &["python3"],
        is_installed: |_| program_runs("python3", &["--version"]),
        install_fallback: None,
    },
    Tool {
        name: "PostgreSQL",
        purpose: "for the tests of its store",
        debian_packages: &["postgresql-15", "postgresql"],
        is_installed: |_| has_postgres(),
        install_fallback: None,
    },
    Tool {
        name: "PgBouncer",
        purpose: "to test connections through it",
        debian_packages: &["pgbouncer"],
        is_installed: |_| {
            program_runs("pgbouncer", &["--version"]) || program_runs("/usr/sbin/pgbouncer", &["--version"])
        },
        install_fallback: None,
    },
    Tool {
        name: "Redis",
        purpose: "for the tests of its store",
        debian_packages: &["redis-tools", "redis-server"],
        is_installed: |_| program_runs("redis-cli", &["--version"]) && has_redis_server(),
        install_fallback: None,
    },
    Tool {
        name: "faketime",
        purpose: "to run nodes whose clocks disagree",
        debian_packages: &["faketime"],
        is_installed: |_| program_runs("faketime", &["--version"]),
        install_fallback: None,
    },
    Tool {
        name: "psycopg for python3",
        purpose: "to emit events from Python with SQL",
        debian_packages: &["python3-psycopg"],
        is_installed: has_psycopg,
        install_fallback: Some(install_psycopg_with_pip),
    },
    Tool {
        name: "node",
        purpose: "to emit events from Node with SQL",
        debian_packages: &["nodejs"],
        is_installed: |_| program_runs("node", &["--version"]),
        install_fallback: None,
    },
    Tool {
        name: "npm",
        purpose: "to install the packages of the console's tests",
        debian_packages: &["npm"],
        is_installed: |_| program_runs("npm", &["--version"]),
        install_fallback: None,
    },
    Tool {
        name: "Chromium",
        purpose: "to open the console in a browser",
        debian_packages: &["chromium"],
        is_installed: |_| program_runs("chromium", &["--version"]),
        install_fallback: None,
    },
    Tool {
        name: "pg for node",
        purpose: "to emit events from Node with SQL",
        debian_packages: &["node-pg"],
        is_installed: has_node_pg,
        install_fallback: Some(install_pg_with_npm),
    },
];

/// Installs each tool that is missing; fails if one cannot be installed.
pub(crate) fn install_missing_tools(root: &Path) -> anyhow::Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        ensure_toolchain_component(root, subcommand, component)?;
    }
    let tools_folder = find_tools_folder()?;
    for tool in &TOOLS {
        if (tool.is_installed)(&tools_folder) {
            continue;
        }
        eprintln!("installing {}, which is needed {}", tool.name, tool.purpose);
        let installed_from_package = tool.debian_packages.iter().any(|package| {
            install_debian_package(package);
            (tool.is_installed)(&tools_folder)
        });
        if !installed_from_package && let Some(install_fallback) = tool.install_fallback {
            install_fallback(&tools_folder);
        }
        if !(tool.is_installed)(&tools_folder) {
            let package = tool.debian_packages.first().copied().unwrap_or_default();
            bail!("cannot install {}; run `apt-get install {package}` as root", tool.name);
        }
    }
    install_console_test_packages(root)
}

/// Adds a component of the Rust toolchain if it is missing.
fn ensure_toolchain_component(root: &Path, subcommand: &str, component: &str) -> anyhow::Result<()> {
    if has_cargo_subcommand(root, subcommand) {
        return Ok(());
    }
    eprintln!("adding {component} to the Rust toolchain");
    let _ = Command::new("rustup").args(["component", "add", component]).current_dir(root).status();
    if !has_cargo_subcommand(root, subcommand) {
        bail!(
            "cannot add {component}; run `rustup component add {component}`, or install it from your system's packages"
        );
    }
    Ok(())
}

/// Installs the npm packages of the console's tests, unless a copy of the lock file shows that they are installed.
fn install_console_test_packages(root: &Path) -> anyhow::Result<()> {
    let tests = root.join("console/tests");
    let expected_lock = std::fs::read_to_string(tests.join("package-lock.json"))?;
    let installed_lock_path = tests.join("node_modules/.wanted");
    if std::fs::read_to_string(&installed_lock_path).is_ok_and(|lock| lock == expected_lock) {
        return Ok(());
    }
    eprintln!("installing the npm packages of console/tests");
    if !run_quietly(&["npm", "ci", "--no-audit", "--no-fund", "--prefix", &tests.display().to_string()]) {
        bail!("cannot install the npm packages; run `npm ci` in console/tests to see why");
    }
    Ok(std::fs::write(installed_lock_path, expected_lock)?)
}

/// Returns the folder `target/tools`.
fn find_tools_folder() -> anyhow::Result<PathBuf> {
    Ok(find_target_folder()?.join("tools"))
}

/// Finds cargo's target folder, which contains this program.
pub(crate) fn find_target_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    Ok(target.context("this program is not in a target folder")?.to_path_buf())
}

/// Returns whether a program can be run with these arguments and succeeds.
fn program_runs(program: &str, arguments: &[&str]) -> bool {
    runs_successfully(Command::new(program).args(arguments))
}

fn runs_successfully(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Returns whether PostgreSQL is installed. Debian keeps its programs out of PATH, one folder for each version.
fn has_postgres() -> bool {
    let debian_programs = (15..=18).map(|version| format!("/usr/lib/postgresql/{version}/bin/initdb"));
    debian_programs.chain(["initdb".to_owned()]).any(|initdb| program_runs(&initdb, &["--version"]))
}

/// Returns whether a Redis server is installed. Debian's package `redis-server` also starts a server, which the tests
/// do not need. `redis-tools` contains the same program as `redis-check-rdb`; it acts as a server if it is started
/// under the name `redis-server`.
fn has_redis_server() -> bool {
    ["redis-server", "redis-check-rdb"]
        .iter()
        .any(|program| runs_successfully(Command::new(program).arg0("redis-server").arg("--version")))
}

fn has_psycopg(tools_folder: &Path) -> bool {
    let own_python = tools_folder.join("python/bin/python3").display().to_string();
    [own_python.as_str(), "python3", "/usr/bin/python3"]
        .iter()
        .any(|python| program_runs(python, &["-c", "import psycopg"]))
}

fn install_psycopg_with_pip(tools_folder: &Path) {
    let environment = tools_folder.join("python").display().to_string();
    let pip = format!("{environment}/bin/pip");
    let _ = run_quietly(&["python3", "-m", "venv", &environment])
        && run_quietly(&[&pip, "install", "psycopg[binary]>=3,<4"]);
}

fn has_node_pg(tools_folder: &Path) -> bool {
    let path = format!("{}:/usr/share/nodejs", tools_folder.join("node/node_modules").display());
    runs_successfully(Command::new("node").args(["-e", "require('pg')"]).env("NODE_PATH", path))
}

fn install_pg_with_npm(tools_folder: &Path) {
    run_quietly(&[
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--prefix",
        &tools_folder.join("node").display().to_string(),
        "pg@8",
    ]);
}

/// Installs a package, as root or through sudo where that needs no password. The caller checks whether it worked.
fn install_debian_package(package: &str) {
    let install = ["apt-get", "install", "-y", "--no-install-recommends", package];
    for prefix in [&[][..], &["sudo", "-n"]] {
        let update = [prefix, &["apt-get", "update"]].concat();
        let install = [prefix, &install].concat();
        if run_quietly(&install) || (run_quietly(&update) && run_quietly(&install)) {
            return;
        }
    }
}

/// Runs a command without its standard output; returns whether it succeeded.
fn run_quietly(arguments: &[&str]) -> bool {
    let mut command = Command::new(arguments[0]);
    command.args(&arguments[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    // Standard error is shown, because it contains the errors; standard output contains only progress.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
