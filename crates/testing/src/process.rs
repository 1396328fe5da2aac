//! A server's process: our direct child, in a process group of its own, which never outlives us.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::tree;
use crate::user::Servant;

/// How long a server may take to start or to end. It only bounds a test that fails anyway.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at something that tells nobody when it changes.
const PAUSE: Duration = Duration::from_millis(5);

/// How much of a server's log is shown when it does not start.
const LINES: usize = 20;

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program with what it needs to run for a server: as its user, in its folder, with its output in a
    /// file.
    ///
    /// However this process ends, even by SIGKILL, the system then sends `farewell` to the server: `setpriv` asks
    /// for that (PR_SET_PDEATHSIG) and becomes the program, with the same pid.
    pub(crate) fn start(
        program: &Path,
        words: &[String],
        servant: &Servant,
        folder: &Path,
        farewell: Signal,
    ) -> anyhow::Result<Self> {
        let log = folder.join("log");
        let out = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", farewell.as_str().trim_start_matches("SIG"), "--"]);
        command.arg(program).args(words);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        command.process_group(0);
        plain(&mut command, folder);
        servant.run(&mut command);
        let child = launch(command).with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready, or has ended without ever being so.
    pub(crate) fn wait_until_ready(&mut self, mut ready: impl FnMut(u32) -> bool) -> anyhow::Result<()> {
        let pid = self.pid();
        let mut ended = None;
        let done = wait_for(|| {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some() || ready(pid)
        });
        match ended {
            Some(status) => bail!("the server ended at its start ({status}):\n{}", self.last_lines()),
            None if !done => bail!("the server is not ready after {PATIENCE:?}:\n{}", self.last_lines()),
            None => Ok(()),
        }
    }

    /// Sends a signal and waits until the process has ended.
    pub(crate) fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        send(self.pid(), signal)?;
        if wait_for(|| !matches!(self.child.try_wait(), Ok(None))) {
            return Ok(());
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!("the server did not end by {signal} in {PATIENCE:?}:\n{}", self.last_lines())
    }

    /// Kills the process and those that it has made, at once.
    pub(crate) fn kill_with_children(&mut self) -> anyhow::Result<()> {
        let pid = self.pid();
        // Each of them may be in a group of its own. Halted first, it starts no other while they are listed.
        send(pid, Signal::SIGSTOP)?;
        wait_for(|| tree::is_halted(pid));
        let children = tree::children(pid)?;
        self.end(Signal::SIGKILL)?;
        for child in &children {
            // It may have seen by itself that it is alone, and ended.
            let _ = send(*child, Signal::SIGKILL);
        }
        if !wait_for(|| children.iter().all(|child| !tree::is_alive(*child))) {
            bail!("processes of the server do not end: {children:?}");
        }
        Ok(())
    }

    fn last_lines(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// Lets nothing of our own surroundings into a command: it may run as somebody who may not even enter the folder
/// that we are in.
pub(crate) fn plain(command: &mut Command, folder: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).current_dir(folder);
}

pub(crate) fn send(pid: u32, signal: Signal) -> anyhow::Result<()> {
    kill(Pid::from_raw(pid.try_into()?), signal).with_context(|| format!("cannot send {signal} to {pid}"))
}

/// Whether a condition came true in time.
pub(crate) fn wait_for(mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}

/// Starts a command from a thread that lives as long as we do.
///
/// What the system takes for a parent's death is the end of the *thread* that made the child, and a test's thread
/// ends with the test.
fn launch(command: Command) -> anyhow::Result<Child> {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static LAUNCHER: OnceLock<Sender<Order>> = OnceLock::new();
    let launcher = LAUNCHER.get_or_init(|| {
        let (orders, inbox) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, child) = channel();
    launcher.send((command, answer)).ok().context("the thread that starts servers is gone")?;
    Ok(child.recv().context("the thread that starts servers is gone")??)
}
