//! A PostgreSQL server of our own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::admin::Admin;
use crate::folder::Folder;
use crate::port;
use crate::process::Process;
use crate::programs::PostgresPrograms;
use crate::proxy::Proxy;
use crate::template;
use crate::user::Servant;

/// How often another port is tried when somebody else was quicker to take one.
const TRIES: usize = 5;

/// How a server is set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether what it acknowledges is on disk, as PostgreSQL does it if nothing is said. Tests of behaviour need
    /// not pay for that.
    pub durable: bool,
    pub max_connections: u16,
    /// Further settings: name and value.
    pub extra: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { durable: false, max_connections: 200, extra: vec![] }
    }
}

/// A server in a folder of its own, on a port of its own. It ends and its folder goes when this is dropped.
#[derive(Debug)]
pub struct Postgres {
    admin: Admin,
    address: SocketAddr,
    settings: Settings,
    programs: PostgresPrograms,
    servant: Servant,
    /// None while it is stopped or killed.
    process: Mutex<Option<Process>>,
    folder: Folder,
}

impl Postgres {
    /// Starts a server with a new cluster, and waits until it accepts connections.
    pub fn start(settings: Settings) -> anyhow::Result<Self> {
        Self::start_in(&std::env::temp_dir(), settings)
    }

    /// The same with all that it writes in a folder of its own within this one, such as a small disk's.
    pub fn start_in(place: &Path, settings: Settings) -> anyhow::Result<Self> {
        let (programs, servant) = (PostgresPrograms::find()?, Servant::find()?);
        let folder = Folder::new_in(place, &servant)?;
        template::cluster(&programs, &servant, &folder.path().join("data"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        let process = Mutex::new(None);
        let admin = Admin::at(address)?;
        let mut server = Self { admin, address, settings, programs, servant, process, folder };
        let mut tries = 1;
        while let Err(error) = server.start_again() {
            if tries == TRIES || !format!("{error:#}").contains("Address already in use") {
                return Err(error).context("cannot start PostgreSQL");
            }
            tries += 1;
            server.address.set_port(port::free()?);
            server.admin = Admin::at(server.address)?;
        }
        Ok(server)
    }

    /// Starts it again after [`stop`](Self::stop) or [`kill`](Self::kill): in the same folder, on the same port.
    pub fn start_again(&self) -> anyhow::Result<()> {
        let mut process = self.process();
        if process.is_some() {
            bail!("the server runs already");
        }
        // The farewell is an immediate shutdown: the server takes all of its processes with it.
        let mut started = Process::start(
            &self.programs.postgres,
            &self.words(),
            &self.servant,
            self.folder.path(),
            Signal::SIGQUIT,
        )?;
        started.wait_until_ready(|pid| self.is_ready(pid))?;
        *process = Some(started);
        Ok(())
    }

    /// Ends it in order: connections are closed, and all that was written is on disk.
    pub fn stop(&self) -> anyhow::Result<()> {
        let mut process = self.process().take().context("the server does not run")?;
        process.end(Signal::SIGINT)
    }

    /// Kills it and all of its processes at once, as if the machine had gone.
    pub fn kill(&self) -> anyhow::Result<()> {
        let mut process = self.process().take().context("the server does not run")?;
        process.kill_with_children()
    }

    /// The pid of its first process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Process::pid)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        self.admin.url(database)
    }

    /// The URL of a database as reached through a proxy before this server.
    pub fn url_through(&self, proxy: &Proxy, database: &str) -> anyhow::Result<String> {
        Ok(Admin::at(proxy.address())?.url(database))
    }

    /// Makes an empty database under a name of its own, and answers with its URL.
    pub fn create_database(&self) -> anyhow::Result<String> {
        self.admin.create_database()
    }

    /// Runs SQL in a database over a connection of its own. Answers with the rows, their values as text.
    pub fn query(&self, database: &str, sql: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        self.admin.query(database, sql)
    }

    /// The server as its superuser sees it.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What the server is started with.
    fn words(&self) -> Vec<String> {
        let mut settings = vec![
            ("listen_addresses".to_owned(), self.address.ip().to_string()),
            ("port".to_owned(), self.address.port().to_string()),
            ("unix_socket_directories".to_owned(), self.folder.path().display().to_string()),
            ("max_connections".to_owned(), self.settings.max_connections.to_string()),
            // In the folder, so that it goes with that even if the server is killed.
            ("dynamic_shared_memory_type".to_owned(), "mmap".to_owned()),
        ];
        if !self.settings.durable {
            for name in ["fsync", "synchronous_commit", "full_page_writes"] {
                settings.push((name.to_owned(), "off".to_owned()));
            }
        }
        settings.extend(self.settings.extra.iter().cloned());
        let data = ["-D".to_owned(), self.data().display().to_string()];
        let settings =
            settings.into_iter().flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
        data.into_iter().chain(settings).collect()
    }

    /// A line of the file in which a running server tells of itself. A killed one leaves it behind.
    fn note(&self, line: usize) -> Option<String> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        Some(file.lines().nth(line)?.trim().to_owned())
    }

    fn is_ready(&self, pid: u32) -> bool {
        self.note(0) == Some(pid.to_string()) && self.note(7).as_deref() == Some("ready")
    }

    /// Gives back the piece of memory that a server takes from the system by number, and keeps if it is killed.
    fn free_memory(&self) {
        let note = self.note(6).unwrap_or_default();
        if let Some(number) = note.split_whitespace().nth(1) {
            let _ = Command::new("ipcrm").args(["--shmem-id", number]).status();
        }
    }
}

impl Drop for Postgres {
    /// Ends it without writing anything more, because its folder goes too.
    fn drop(&mut self) {
        match self.process().take() {
            Some(mut process) => {
                let _ = process.end(Signal::SIGQUIT);
            }
            None => self.free_memory(),
        }
    }
}
