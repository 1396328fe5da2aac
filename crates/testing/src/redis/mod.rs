//! A Redis of our own.

mod admin;
mod cluster;
mod resp;
mod sentinel;
mod settings;

pub use admin::{RedisAdmin, fresh_prefix};
pub use cluster::RedisCluster;
pub use resp::{RedisConnection, Reply};
pub use sentinel::RedisSentinel;
pub use settings::RedisSettings;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::folder::{Folder, copy};
use crate::port;
use crate::process::{Process, send, wait_for};
use crate::programs;
use crate::proxy::Proxy;
use crate::tree;
use crate::user::Servant;

/// How often another port is tried when somebody else was quicker to take one.
const TRIES: usize = 5;

/// What the program runs as.
#[derive(Debug, Clone, Copy)]
enum Role {
    Data,
    Sentinel,
}

/// A server in a folder of its own, on a port of its own. It ends and its folder goes when this is dropped.
#[derive(Debug)]
pub struct Redis {
    admin: RedisAdmin,
    role: Role,
    servant: Servant,
    /// None while it is stopped or killed.
    process: Mutex<Option<Process>>,
    folder: Folder,
}

impl Redis {
    /// Starts an empty server, and waits until it answers.
    pub fn start(settings: RedisSettings) -> anyhow::Result<Self> {
        Self::start_in(&std::env::temp_dir(), settings)
    }

    /// The same with all that it writes in a folder of its own within this one, such as a small disk's.
    pub fn start_in(place: &Path, settings: RedisSettings) -> anyhow::Result<Self> {
        Self::start_as(Role::Data, place, &settings).context("cannot start Redis")
    }

    fn start_sentinel(settings: &RedisSettings) -> anyhow::Result<Self> {
        Self::start_as(Role::Sentinel, &std::env::temp_dir(), settings).context("cannot start a sentinel")
    }

    fn start_as(role: Role, place: &Path, settings: &RedisSettings) -> anyhow::Result<Self> {
        let servant = Servant::find()?;
        let folder = Folder::new_in(place, &servant)?;
        let admin = new_place(settings)?;
        let mut server = Self { admin, role, servant, process: Mutex::new(None), folder };
        symlink(programs::redis()?, server.program())?;
        fs::create_dir(server.data())?;
        server.servant.give(&server.data())?;
        let mut tries = 1;
        loop {
            server.write_file(settings)?;
            match server.start_again() {
                Ok(()) => return Ok(server),
                Err(error) if tries == TRIES || !format!("{error:#}").contains("Address already in use") => {
                    return Err(error);
                }
                Err(_) => server.admin = new_place(settings)?,
            }
            tries += 1;
        }
    }

    /// Starts it again after [`stop`](Self::stop) or [`kill`](Self::kill): with the same data, on the same port.
    /// It has read its data when this returns.
    pub fn start_again(&self) -> anyhow::Result<()> {
        let mut process = self.process();
        if process.is_some() {
            bail!("the server runs already");
        }
        let mut words = vec![self.file().display().to_string()];
        match self.role {
            Role::Data => {}
            Role::Sentinel => words.push("--sentinel".to_owned()),
        }
        let folder = self.folder.path();
        let mut started = Process::start(&self.program(), &words, &self.servant, folder, Signal::SIGKILL)?;
        started.wait_until_ready(|pid| self.is_ready(pid).unwrap_or(false))?;
        *process = Some(started);
        Ok(())
    }

    /// Ends it in order: all that was written is on disk.
    pub fn stop(&self) -> anyhow::Result<()> {
        let mut process = self.process().take().context("the server does not run")?;
        send(process.pid(), Signal::SIGCONT)?;
        process.end(Signal::SIGTERM)
    }

    /// Kills it and what it has forked at once, as if the machine had gone.
    pub fn kill(&self) -> anyhow::Result<()> {
        let mut process = self.process().take().context("the server does not run")?;
        process.kill_with_children()
    }

    /// Halts it: connections stay, and nothing is answered until [`resume`](Self::resume).
    pub fn pause(&self) -> anyhow::Result<()> {
        let pid = self.pid().context("the server does not run")?;
        send(pid, Signal::SIGSTOP)?;
        if !wait_for(|| tree::is_halted(pid)) {
            bail!("the server does not come to a halt");
        }
        Ok(())
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) -> anyhow::Result<()> {
        send(self.pid().context("the server does not run")?, Signal::SIGCONT)
    }

    /// Its pid, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Process::pid)
    }

    pub fn address(&self) -> SocketAddr {
        self.admin.address()
    }

    pub fn port(&self) -> u16 {
        self.address().port()
    }

    pub fn url(&self) -> String {
        self.admin.url()
    }

    /// Its URL as reached through a proxy before it.
    pub fn url_through(&self, proxy: &Proxy) -> anyhow::Result<String> {
        Ok(self.admin.through(proxy.address())?.url())
    }

    /// Runs a command over a connection of its own.
    pub fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> anyhow::Result<Reply> {
        self.admin.command(words)
    }

    /// The server as one sees it who may do everything there.
    pub fn admin(&self) -> &RedisAdmin {
        &self.admin
    }

    /// The folder with its data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Keeps a copy of its data, in place of an earlier one. It must be stopped or killed.
    pub fn keep_copy(&self) -> anyhow::Result<()> {
        self.replace(&self.data(), &self.copied())
    }

    /// Puts back the data of which a copy was kept, as a backup does. It must be stopped or killed.
    pub fn restore_copy(&self) -> anyhow::Result<()> {
        self.replace(&self.copied(), &self.data())
    }

    fn replace(&self, from: &Path, to: &Path) -> anyhow::Result<()> {
        let process = self.process();
        if process.is_some() {
            bail!("the server runs, and its data cannot be copied");
        }
        if !from.exists() {
            bail!("no copy was kept");
        }
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        copy(from, to, &self.servant)
    }

    fn copied(&self) -> PathBuf {
        self.folder.path().join("copy")
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program, by the name that makes it a server.
    fn program(&self) -> PathBuf {
        self.folder.path().join("redis-server")
    }

    /// The file that says how it is set. It belongs to the server, which writes there what it is told later.
    fn file(&self) -> PathBuf {
        self.folder.path().join("redis.conf")
    }

    fn write_file(&self, settings: &RedisSettings) -> anyhow::Result<()> {
        let text = match self.role {
            Role::Data => settings.file(self.address()),
            Role::Sentinel => settings.sentinel_file(self.address()),
        };
        fs::write(self.file(), text)?;
        self.servant.give(&self.file())
    }

    /// Whether the one that answers has read its data, and is this one.
    fn is_ready(&self, pid: u32) -> anyhow::Result<bool> {
        let mut connection = self.admin.connect()?;
        connection.command(&["PING"])?;
        let told = connection.command(&["INFO", "server"])?.text().unwrap_or_default();
        Ok(told.lines().any(|line| line == format!("process_id:{pid}")))
    }
}

impl Drop for Redis {
    /// Ends it without writing anything more, because its folder goes too.
    fn drop(&mut self) {
        if let Some(mut process) = self.process().take() {
            let _ = process.kill_with_children();
        }
    }
}

fn new_place(settings: &RedisSettings) -> anyhow::Result<RedisAdmin> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
    RedisAdmin::at(address, settings.password.as_deref())
}
