//! Programs that the tests use and a bare machine lacks. They come from Debian's packages; what those cannot give
//! goes under `target/tools`, where `crates/testing` looks for it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Something that the tests use.
struct Tool {
    name: &'static str,
    what_for: &'static str,
    /// The packages it comes in, each tried in turn.
    packages: &'static [&'static str],
    there: fn(&Path) -> bool,
    /// Another way to get it, if the packages cannot be had.
    otherwise: Option<fn(&Path)>,
}

const TOOLS: [Tool; 11] = [
    Tool {
        name: "strace",
        what_for: "to see that an answer comes after the data is on disk",
        packages: &["strace"],
        there: |_| answers("strace", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "python3",
        what_for: "to run the example of a worker",
        packages: &["python3"],
        there: |_| answers("python3", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "PostgreSQL",
        what_for: "for the tests of its store",
        packages: &["postgresql-15", "postgresql"],
        there: |_| has_postgres(),
        otherwise: None,
    },
    Tool {
        name: "PgBouncer",
        what_for: "to see what works through it",
        packages: &["pgbouncer"],
        there: |_| answers("pgbouncer", &["--version"]) || answers("/usr/sbin/pgbouncer", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "Redis",
        what_for: "for the tests of its store",
        packages: &["redis-tools", "redis-server"],
        there: |_| answers("redis-cli", &["--version"]) && has_redis_server(),
        otherwise: None,
    },
    Tool {
        name: "faketime",
        what_for: "for nodes whose clocks do not agree",
        packages: &["faketime"],
        there: |_| answers("faketime", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "psycopg for python3",
        what_for: "to emit events from Python with SQL",
        packages: &["python3-psycopg"],
        there: has_psycopg,
        otherwise: Some(pip_psycopg),
    },
    Tool {
        name: "node",
        what_for: "to emit events from Node with SQL",
        packages: &["nodejs"],
        there: |_| answers("node", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "npm",
        what_for: "to fetch what the tests of the console need",
        packages: &["npm"],
        there: |_| answers("npm", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "Chromium",
        what_for: "to open the console in a browser",
        packages: &["chromium"],
        there: |_| answers("chromium", &["--version"]),
        otherwise: None,
    },
    Tool {
        name: "pg for node",
        what_for: "to emit events from Node with SQL",
        packages: &["node-pg"],
        there: has_node_pg,
        otherwise: Some(npm_pg),
    },
];

pub(crate) fn all(root: &Path) -> anyhow::Result<()> {
    let folder = folder()?;
    for tool in &TOOLS {
        if (tool.there)(&folder) {
            continue;
        }
        eprintln!("{} is not installed; it is needed {}", tool.name, tool.what_for);
        let packages = tool.packages.iter().any(|package| {
            install(package);
            (tool.there)(&folder)
        });
        if !packages && let Some(otherwise) = tool.otherwise {
            otherwise(&folder);
        }
        if !(tool.there)(&folder) {
            let package = tool.packages.first().copied().unwrap_or_default();
            bail!("{} could not be installed; `apt-get install {package}` as root does it", tool.name);
        }
    }
    console_packages(root)
}

/// What the tests of the console import. The list of what is there tells whether it is what is wanted.
fn console_packages(root: &Path) -> anyhow::Result<()> {
    let tests = root.join("console/tests");
    let wanted = std::fs::read_to_string(tests.join("package-lock.json"))?;
    let note = tests.join("node_modules/.wanted");
    if std::fs::read_to_string(&note).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    eprintln!("the packages of console/tests are fetched");
    if !run(&["npm", "ci", "--no-audit", "--no-fund", "--prefix", &tests.display().to_string()]) {
        bail!("they could not be fetched; `npm ci` in console/tests says why");
    }
    Ok(std::fs::write(note, wanted)?)
}

/// `target/tools`.
fn folder() -> anyhow::Result<PathBuf> {
    Ok(target()?.join("tools"))
}

/// The target folder, wherever that is: we are in it.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    Ok(target.context("this program is not in a target folder")?.to_path_buf())
}

fn answers(program: &str, words: &[&str]) -> bool {
    succeeds(Command::new(program).args(words))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Debian keeps its programs out of PATH, a folder a version.
fn has_postgres() -> bool {
    let debian = (15..=18).map(|version| format!("/usr/lib/postgresql/{version}/bin/initdb"));
    debian.chain(["initdb".to_owned()]).any(|initdb| answers(&initdb, &["--version"]))
}

/// Debian's package `redis-server` starts one for the machine, which tests have no use for. The program is in
/// `redis-tools` too, under another name; what it is called by tells it what to be.
fn has_redis_server() -> bool {
    ["redis-server", "redis-check-rdb"]
        .iter()
        .any(|program| succeeds(Command::new(program).arg0("redis-server").arg("--version")))
}

fn has_psycopg(folder: &Path) -> bool {
    let own = folder.join("python/bin/python3").display().to_string();
    [own.as_str(), "python3", "/usr/bin/python3"]
        .iter()
        .any(|python| answers(python, &["-c", "import psycopg"]))
}

fn pip_psycopg(folder: &Path) {
    let room = folder.join("python").display().to_string();
    let pip = format!("{room}/bin/pip");
    let _ = run(&["python3", "-m", "venv", &room]) && run(&[&pip, "install", "psycopg[binary]>=3,<4"]);
}

fn has_node_pg(folder: &Path) -> bool {
    let path = format!("{}:/usr/share/nodejs", folder.join("node/node_modules").display());
    succeeds(Command::new("node").args(["-e", "require('pg')"]).env("NODE_PATH", path))
}

fn npm_pg(folder: &Path) {
    run(&[
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--prefix",
        &folder.join("node").display().to_string(),
        "pg@8",
    ]);
}

/// Installs a package, as root or through sudo where that asks for no password. Whether it worked is seen
/// afterwards.
fn install(package: &str) {
    let install = ["apt-get", "install", "-y", "--no-install-recommends", package];
    for before in [&[][..], &["sudo", "-n"]] {
        let update = [before, &["apt-get", "update"]].concat();
        let install = [before, &install].concat();
        if run(&install) || (run(&update) && run(&install)) {
            return;
        }
    }
}

fn run(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    // What went wrong is worth reading, how it went is not.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
