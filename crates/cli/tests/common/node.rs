//! A real server in a folder of its own, on a port of its own, and commands that talk to it.
//!
//! Shared by several test programs, each of which uses a part of it.
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

/// How long anything may take before a test gives up. Far more than it ever takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a configuration, and what was learned from the server's first start.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    /// The address to listen on: any free port at first, the same one afterwards.
    listen: String,
    token: Option<String>,
    variables: Vec<(&'static str, &'static str)>,
    /// The user and group that its commands run as, if not those of the test.
    user: Option<u32>,
}

impl Place {
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pointsman.yml"), config).unwrap();
        Self { folder, listen: "127.0.0.1:0".into(), token: None, variables: vec![], user: None }
    }

    /// For a server on a database where another one was told the token.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// With this in the environment of all its commands.
    pub(crate) fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// With all its commands under a user without privileges: nobody, where the test itself is run by root.
    pub(crate) fn unprivileged(mut self) -> Self {
        if nix::unistd::geteuid().is_root() {
            const NOBODY: u32 = 65534;
            std::os::unix::fs::chown(self.folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            self.user = Some(NOBODY);
        }
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server and waits until it has said where it is.
    pub(crate) fn serve(&mut self) -> Node {
        let node = self.start(Stdio::inherit());
        self.meet(&node);
        node
    }

    /// The same, on a port that it has not had before, with its log kept in [`Place::log`].
    pub(crate) fn serve_elsewhere(&mut self) -> Node {
        let node = self.start_elsewhere();
        self.meet(&node);
        node
    }

    /// Starts a server and does not wait for it: it may be killed before it has begun to listen.
    pub(crate) fn start_elsewhere(&mut self) -> Node {
        self.listen = "127.0.0.1:0".into();
        let log = File::options().create(true).append(true).open(self.path("server.log")).unwrap();
        self.start(log.into())
    }

    /// The same as [`Place::serve`], started by another program that becomes or watches the server.
    pub(crate) fn serve_under(&mut self, program: &str, words: &[&str]) -> Node {
        let server = self.command(&["serve", "--listen", &self.listen]);
        let mut command = Command::new(program);
        command.args(words).arg(server.get_program()).args(server.get_args());
        command.current_dir(self.folder.path()).stdout(Stdio::piped());
        let started = command.spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
        let lines = Lines::of(&mut child);
        let node = Node { child, lines };
        self.meet(&node);
        node
    }

    fn start(&self, log: Stdio) -> Node {
        let words = ["serve", "--listen", &self.listen];
        let mut child = self.command(&words).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = Lines::of(&mut child);
        Node { child, lines }
    }

    /// Learns from a server that has just started where it is, and its token if it is the first.
    fn meet(&mut self, node: &Node) {
        let told = |what: &str, before: &'static str| {
            let found =
                node.lines.seek(what, |line| line.split(before).nth(1).map(|rest| rest.trim().to_owned()));
            found.unwrap_or_else(|missing| panic!("{missing}\nits log:\n{}", self.log()))
        };
        let address = told("the address", "http://").trim_end_matches('/').to_owned();
        let token = self.token.clone().unwrap_or_else(|| told("the token", "POINTSMAN_TOKEN="));
        (self.listen, self.token) = (address, Some(token));
    }

    /// Where the server listens.
    pub(crate) fn address(&self) -> &str {
        &self.listen
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// What servers started by [`Place::start_elsewhere`] have logged so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path("server.log")).unwrap_or_default()).into_owned()
    }

    /// A command that knows where the server is and who it is. Nothing of the tests' own environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pointsman"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap());
        command.envs(self.variables.iter().copied());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.env("POINTSMAN_URL", format!("http://{}", self.listen));
        if let Some(token) = &self.token {
            command.env("POINTSMAN_TOKEN", token);
        }
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).stdin(Stdio::null()).output().unwrap()
    }

    /// What a command that must work prints.
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.ok(&[&["-o", "json"], words].concat())).unwrap()
    }

    /// Starts `watch` and reads what it shows.
    pub(crate) fn watch(&self, words: &[&str]) -> Watcher {
        Watcher::start(self.command(&[&["watch"], words].concat()))
    }

    /// Starts another program, which finds the server as our own commands do.
    pub(crate) fn program(&self, program: &str, words: &[&str]) -> Watcher {
        let own = self.command(&[]);
        let mut command = Command::new(program);
        command.args(words).current_dir(self.folder.path()).env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Watcher::start(command)
    }
}

/// A running server. Killed when dropped.
pub(crate) struct Node {
    child: Child,
    lines: Lines,
}

impl Node {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still lives.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends the process between two instructions, as a power cut would, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits until the server has ended by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        let mut status = None;
        until("the server has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Asks the server to stop in good order, and waits for it.
    pub(crate) fn stop(self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.ended()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `watch`, or another program whose lines are read. Killed when dropped.
pub(crate) struct Watcher {
    child: Child,
    pub(crate) lines: Lines,
}

impl Watcher {
    fn start(mut command: Command) -> Self {
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child =
            started.unwrap_or_else(|error| panic!("{command:?} is needed for this test: {error}"));
        let lines = Lines::of(&mut child);
        Self { child, lines }
    }

    /// Ends the process at once and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the process to stop, and waits for it.
    pub(crate) fn stop(mut self) -> ExitStatus {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let mut status = None;
        until("the program has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process writes, line by line.
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    fn of(child: &mut Child) -> Self {
        let (send, receive) = channel();
        let out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                let Ok(line) = line else { return };
                // Nobody may be listening any more; the process must be able to write all the same.
                let _ = send.send(line);
            }
        });
        Self(receive)
    }

    /// Waits for a line in which `look` finds something.
    pub(crate) fn find<T>(&self, what: &str, look: impl Fn(&str) -> Option<T>) -> T {
        self.seek(what, look).unwrap_or_else(|missing| panic!("{missing}"))
    }

    fn seek<T>(&self, what: &str, look: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = vec![];
        loop {
            match self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => match look(&line) {
                    Some(found) => return Ok(found),
                    None => seen.push(line),
                },
                Err(error) => {
                    return Err(format!("{what} never came ({error}); what came:\n{}", seen.join("\n")));
                }
            }
        }
    }

    /// Waits for a line of JSON that `wanted` accepts.
    pub(crate) fn json(&self, what: &str, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        self.find(what, |line| serde_json::from_str(line).ok().filter(&wanted))
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not so after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn exists(path: &Path) {
    until(&format!("{} exists", path.display()), || path.exists());
}
