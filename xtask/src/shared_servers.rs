//! The servers that all tests of a run share. The program of `crates/testing` starts and stops them, because this
//! package has hardly any dependencies.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// Servers that run until this is dropped. If this process is killed, they stop at the end of their input.
pub(crate) struct SharedServers {
    process: Child,
    /// The environment variables with the URLs of the servers.
    pub(crate) server_url_variables: Vec<(String, String)>,
}

impl SharedServers {
    /// Starts the servers. Their program was built with the tests, in the folder of this one.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let path = std::env::current_exe()?.with_file_name("pointsman-testing");
        // A process group of its own keeps Ctrl-C away from the program, so that it can clean up.
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let process = command.spawn().with_context(|| format!("cannot run {}", path.display()))?;
        let mut servers = Self { process, server_url_variables: vec![] };
        servers.read_printed_url_variables()?;
        Ok(servers)
    }

    /// Reads the variables that the program prints, until the empty line at their end.
    fn read_printed_url_variables(&mut self) -> anyhow::Result<()> {
        let output = self.process.stdout.take().context("the program of the servers has no output")?;
        for line in BufReader::new(output).lines() {
            match line?.split_once('=') {
                Some((name, value)) => {
                    eprintln!("{name}={value}");
                    self.server_url_variables.push((name.to_owned(), value.to_owned()));
                }
                None => return Ok(()),
            }
        }
        bail!("the servers did not start; their output is above")
    }
}

impl Drop for SharedServers {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
