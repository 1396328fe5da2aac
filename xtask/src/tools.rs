//! Programs that the tests use and a bare machine lacks. They come from Debian's packages.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::bail;

/// What is needed, the package it comes in, and what for.
const TOOLS: [(&str, &str, &str); 2] = [
    ("strace", "strace", "to see that an answer comes after the data is on disk"),
    ("python3", "python3", "to run the example of a worker"),
];

pub(crate) fn all(_root: &Path) -> anyhow::Result<()> {
    for (program, package, what_for) in TOOLS {
        if !there(program) {
            eprintln!("{program} is not installed; it is needed {what_for}");
            install(package);
        }
        if !there(program) {
            bail!("{program} could not be installed; `apt-get install {package}` as root does it");
        }
    }
    Ok(())
}

fn there(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
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
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
