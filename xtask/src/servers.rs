//! The servers that all tests of a run share. A program of `crates/testing` starts and ends them, because this one
//! depends on next to nothing.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// Servers that run until this is dropped. If we are killed instead, the end of their input tells them.
pub(crate) struct Servers {
    program: Child,
    /// Where they are, as variables of the environment.
    pub(crate) variables: Vec<(String, String)>,
}

impl Servers {
    /// Starts them. Their program was built with the tests, and stands beside us.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let path = std::env::current_exe()?.with_file_name("pointsman-testing");
        // In a group of its own, so that Ctrl-C does not keep it from clearing up.
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let program = command.spawn().with_context(|| format!("cannot run {}", path.display()))?;
        let mut servers = Self { program, variables: vec![] };
        servers.read()?;
        Ok(servers)
    }

    /// Reads where the servers are, until the empty line that says that these are all.
    fn read(&mut self) -> anyhow::Result<()> {
        let out = self.program.stdout.take().context("the servers tell nothing")?;
        for line in BufReader::new(out).lines() {
            match line?.split_once('=') {
                Some((name, value)) => {
                    eprintln!("{name}={value}");
                    self.variables.push((name.to_owned(), value.to_owned()));
                }
                None => return Ok(()),
            }
        }
        bail!("the servers did not start; what they said stands above")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        let _ = self.program.wait();
    }
}
