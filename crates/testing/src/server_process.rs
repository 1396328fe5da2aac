//! The process of a PostgreSQL, Redis or PgBouncer server: a direct child of this process, in its own process group. It
//! ends with this process.

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

use crate::proc_stat;
use crate::server_os_user::ServerOsUser;

/// The time limit for a server to start or to stop. It only bounds a test that fails anyway.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The time between two checks of a condition that sends no notification.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The number of lines of a server's log that an error shows.
const LOG_LINES_IN_ERRORS: usize = 20;

/// The running child process of a PostgreSQL, Redis or PgBouncer server. Dropping this does not stop it.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    log_path: PathBuf,
}

impl ServerProcess {
    /// Starts a server program: as the server's user, in its folder, with its output in a log file.
    ///
    /// When this process ends, even by SIGKILL, the kernel sends `parent_death_signal` to the server: `setpriv`
    /// requests that (PR_SET_PDEATHSIG) and becomes the program, with the same pid.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        server_os_user: &ServerOsUser,
        folder: &Path,
        parent_death_signal: Signal,
    ) -> anyhow::Result<Self> {
        let log_path = folder.join("log");
        let log = File::options().create(true).append(true).open(&log_path)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", parent_death_signal.as_str().trim_start_matches("SIG"), "--"]);
        command.arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.process_group(0);
        clear_environment_and_set_folder(&mut command, folder);
        server_os_user.apply_to_command(&mut command);
        let child = spawn_from_permanent_thread(command)
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, log_path })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready. Fails if it ends before that.
    pub(crate) fn wait_until_ready(&mut self, mut is_ready: impl FnMut(u32) -> bool) -> anyhow::Result<()> {
        let pid = self.pid();
        let mut exit_status = None;
        let is_done = wait_until(|| {
            exit_status = self.child.try_wait().ok().flatten();
            exit_status.is_some() || is_ready(pid)
        });
        match exit_status {
            Some(status) => bail!(
                "the server ended while starting ({status}); the end of its log:\n{}",
                self.read_last_log_lines()
            ),
            None if !is_done => bail!(
                "the server is not ready after {START_STOP_TIMEOUT:?}; the end of its log:\n{}",
                self.read_last_log_lines()
            ),
            None => Ok(()),
        }
    }

    /// Sends a signal and waits until the process has ended.
    pub(crate) fn stop_with_signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        send_signal(self.pid(), signal)?;
        if wait_until(|| !matches!(self.child.try_wait(), Ok(None))) {
            return Ok(());
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!(
            "the server did not stop within {START_STOP_TIMEOUT:?} after {signal}; it was killed; the end of its log:\n{}",
            self.read_last_log_lines()
        )
    }

    /// Kills the process and its children at once.
    pub(crate) fn kill_with_children(&mut self) -> anyhow::Result<()> {
        let pid = self.pid();
        // Each child may be in its own process group. A stopped parent starts no other child during the listing.
        send_signal(pid, Signal::SIGSTOP)?;
        wait_until(|| proc_stat::is_stopped_or_ended(pid));
        let children = proc_stat::list_child_pids(pid)?;
        self.stop_with_signal(Signal::SIGKILL)?;
        for child in &children {
            // The child may have noticed the death of its parent, and ended.
            let _ = send_signal(*child, Signal::SIGKILL);
        }
        if !wait_until(|| children.iter().all(|child| !proc_stat::is_alive(*child))) {
            bail!("child processes of the server are still alive after SIGKILL: {children:?}");
        }
        Ok(())
    }

    fn read_last_log_lines(&self) -> String {
        let log = std::fs::read(&self.log_path).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_IN_ERRORS)..].join("\n")
    }
}

/// Clears the environment of a command except for PATH, and sets its working directory: the command may run as a
/// user who may not enter the working directory of this process.
pub(crate) fn clear_environment_and_set_folder(command: &mut Command, folder: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).current_dir(folder);
}

/// Sends a signal to a process.
pub(crate) fn send_signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    kill(Pid::from_raw(pid.try_into()?), signal).with_context(|| format!("cannot send {signal} to {pid}"))
}

/// Waits until a condition is true. Returns false if that takes too long.
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !condition() {
        if started.elapsed() > START_STOP_TIMEOUT {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

/// Spawns a command from a thread that lives as long as this process.
///
/// The kernel treats the end of the *thread* that spawned a child as its parent's death, and a test's thread ends
/// with the test.
fn spawn_from_permanent_thread(command: Command) -> anyhow::Result<Child> {
    type SpawnRequest = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<Sender<SpawnRequest>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (requests, inbox) = channel::<SpawnRequest>();
        thread::spawn(move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        });
        requests
    });
    let (reply, child) = channel();
    spawner.send((command, reply)).ok().context("the thread that spawns servers has ended")?;
    Ok(child.recv().context("the thread that spawns servers has ended")??)
}
