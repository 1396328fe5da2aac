//! A real server in its own directory, on its own port, and commands that talk to it.
//!
//! Shared by several test programs.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a test waits for a condition, an output line or a response before it fails.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A directory with a configuration, and the address and token of its server, which the test starts and stops.
pub(crate) struct ServerFixture {
    directory: tempfile::TempDir,
    /// The address to listen on: port 0 before the first start, afterwards the port that the server got.
    listen_address: String,
    token: Option<String>,
    environment: Vec<(&'static str, &'static str)>,
    /// The id of the user and group that its commands run as, `serve` included, if not those of the test.
    command_user_id: Option<u32>,
}

impl ServerFixture {
    pub(crate) fn new(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("pointsman.yml"), config).unwrap();
        Self {
            directory,
            listen_address: "127.0.0.1:0".into(),
            token: None,
            environment: vec![],
            command_user_id: None,
        }
    }

    /// Sets a token that is already known: configured, or printed by another server on the same database.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Adds a variable to the environment of all its commands.
    pub(crate) fn with_env_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Runs all its commands, `serve` included, as an unprivileged user: as nobody if the test runs as root. Does not
    /// apply to [`ServerFixture::serve_through`].
    pub(crate) fn with_unprivileged_user(mut self) -> Self {
        if nix::unistd::geteuid().is_root() {
            const NOBODY_ID: u32 = 65534;
            std::os::unix::fs::chown(self.directory.path(), Some(NOBODY_ID), Some(NOBODY_ID)).unwrap();
            self.command_user_id = Some(NOBODY_ID);
        }
        self
    }

    /// The path of a file in the directory of the server.
    pub(crate) fn file_path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a server and waits until it has printed its address.
    pub(crate) fn serve(&mut self) -> PointsmanServerProcess {
        let node = self.start_process(Stdio::inherit());
        self.read_banner(&node);
        node
    }

    /// Starts a server on a new port, with its log in [`ServerFixture::read_server_log`].
    pub(crate) fn serve_on_new_port(&mut self) -> PointsmanServerProcess {
        let node = self.start_on_new_port_without_waiting();
        self.read_banner(&node);
        node
    }

    /// Starts a server on a new port without waiting for it: it may be killed before it listens.
    pub(crate) fn start_on_new_port_without_waiting(&mut self) -> PointsmanServerProcess {
        self.listen_address = "127.0.0.1:0".into();
        let log = File::options().create(true).append(true).open(self.file_path("server.log")).unwrap();
        self.start_process(log.into())
    }

    /// Starts a server through another program, which becomes or traces the server.
    pub(crate) fn serve_through(&mut self, program: &str, arguments: &[&str]) -> PointsmanServerProcess {
        let server = self.command(&["serve", "--listen", &self.listen_address]);
        let mut command = Command::new(program);
        command.args(arguments).arg(server.get_program()).args(server.get_args());
        command.current_dir(self.directory.path()).stdout(Stdio::piped());
        let started = command.spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
        let lines = OutputLines::start_reading(&mut child);
        let node = PointsmanServerProcess { child, lines };
        self.read_banner(&node);
        node
    }

    fn start_process(&self, log: Stdio) -> PointsmanServerProcess {
        let arguments = ["serve", "--listen", &self.listen_address];
        let mut child = self.command(&arguments).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = OutputLines::start_reading(&mut child);
        PointsmanServerProcess { child, lines }
    }

    /// Reads the address from the banner of a started server, and the token if it is the first start.
    fn read_banner(&mut self, node: &PointsmanServerProcess) {
        let find = |what: &str, prefix: &'static str| {
            let found = node.lines.try_wait_for_match(what, |line| {
                line.split(prefix).nth(1).map(|rest| rest.trim().to_owned())
            });
            found.unwrap_or_else(|missing| panic!("{missing}\nits log:\n{}", self.read_server_log()))
        };
        let address = find("the address", "http://").trim_end_matches('/').to_owned();
        let token = self.token.clone().unwrap_or_else(|| find("the token", "POINTSMAN_TOKEN="));
        (self.listen_address, self.token) = (address, Some(token));
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> &str {
        &self.listen_address
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// Reads the log of all servers that were started on a new port, or whose starting program writes `server.log`.
    pub(crate) fn read_server_log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.file_path("server.log")).unwrap_or_default()).into_owned()
    }

    /// Builds a command of `pointsman` with the URL and token of the server, without the environment of the test.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pointsman"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap());
        command.envs(self.environment.iter().copied());
        if let Some(user) = self.command_user_id {
            command.uid(user).gid(user);
        }
        command.env("POINTSMAN_URL", format!("http://{}", self.listen_address));
        if let Some(token) = &self.token {
            command.env("POINTSMAN_TOKEN", token);
        }
        command
    }

    /// Runs a command of `pointsman` without standard input, and returns its output.
    pub(crate) fn run_command(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn run_ok(&self, arguments: &[&str]) -> String {
        let output = self.run_command(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a command with `-o json` that must succeed, and returns its output.
    pub(crate) fn run_json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.run_ok(&[&["-o", "json"], arguments].concat())).unwrap()
    }

    /// Starts `watch`, whose lines can be read.
    pub(crate) fn start_watch(&self, arguments: &[&str]) -> RunningTestCommand {
        RunningTestCommand::start(self.command(&[&["watch"], arguments].concat()))
    }

    /// Starts another program with the URL and token of the server in its environment.
    pub(crate) fn start_program(&self, program: &str, arguments: &[&str]) -> RunningTestCommand {
        let own_command = self.command(&[]);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory.path()).env_clear();
        command.envs(own_command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        RunningTestCommand::start(command)
    }
}

/// A running server. Killed when dropped.
pub(crate) struct PointsmanServerProcess {
    child: Child,
    lines: OutputLines,
}

impl PointsmanServerProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits until the server has ended.
    pub(crate) fn wait_for_exit(mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the server has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Stops the server gracefully and waits for its end.
    pub(crate) fn stop(self) -> ExitStatus {
        self.send_signal(Signal::SIGTERM);
        self.wait_for_exit()
    }
}

impl Drop for PointsmanServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running command whose lines are read. Killed when dropped.
pub(crate) struct RunningTestCommand {
    child: Child,
    pub(crate) lines: OutputLines,
}

impl RunningTestCommand {
    fn start(mut command: Command) -> Self {
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child =
            started.unwrap_or_else(|error| panic!("{command:?} is needed for this test: {error}"));
        let lines = OutputLines::start_reading(&mut child);
        Self { child, lines }
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the process with SIGTERM and waits for its end.
    pub(crate) fn stop(mut self) -> ExitStatus {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let mut status = None;
        wait_until("the program has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for RunningTestCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that a process writes to standard output.
pub(crate) struct OutputLines(Receiver<String>);

impl OutputLines {
    fn start_reading(child: &mut Child) -> Self {
        let (send, receive) = channel();
        let out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                let Ok(line) = line else { return };
                // The receiver may be gone; keep reading, so that the process can write.
                let _ = send.send(line);
            }
        });
        Self(receive)
    }

    /// Waits for a line for which `search` returns a value.
    pub(crate) fn wait_for_match<T>(&self, what: &str, search: impl Fn(&str) -> Option<T>) -> T {
        self.try_wait_for_match(what, search).unwrap_or_else(|missing| panic!("{missing}"))
    }

    fn try_wait_for_match<T>(&self, what: &str, search: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let mut other_lines = vec![];
        loop {
            match self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => match search(&line) {
                    Some(found) => return Ok(found),
                    None => other_lines.push(line),
                },
                Err(error) => {
                    return Err(format!(
                        "{what} did not arrive ({error}); other lines:\n{}",
                        other_lines.join("\n")
                    ));
                }
            }
        }
    }

    /// Waits for a line of JSON that `matches` accepts.
    pub(crate) fn wait_for_json(
        &self,
        what: &str,
        matches: impl Fn(&serde_json::Value) -> bool,
    ) -> serde_json::Value {
        self.wait_for_match(what, |line| serde_json::from_str(line).ok().filter(&matches))
    }
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {WAIT_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn wait_for_file(path: &Path) {
    wait_until(&format!("{} exists", path.display()), || path.exists());
}
