//! A private PostgreSQL server.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::data_directory_template;
use crate::fault_proxy::FaultProxy;
use crate::free_port;
use crate::postgres_admin::PostgresAdmin;
use crate::server_folder::ServerFolder;
use crate::server_os_user::ServerOsUser;
use crate::server_process::ServerProcess;
use crate::server_programs::PostgresPrograms;

/// The number of ports that are tried if another process takes the chosen one first.
const MAX_PORT_TRIES: usize = 5;

/// The settings of a PostgreSQL server.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    /// Whether acknowledged commits are on disk, as is PostgreSQL's default. Tests of behaviour do not need that, and
    /// run faster without it.
    pub durable: bool,
    pub max_connections: u16,
    /// Further settings: name and value.
    pub extra_settings: Vec<(String, String)>,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self { durable: false, max_connections: 200, extra_settings: vec![] }
    }
}

/// A PostgreSQL server with its own folder and port. Dropping it stops it and removes the folder.
#[derive(Debug)]
pub struct PostgresServer {
    admin: PostgresAdmin,
    address: SocketAddr,
    settings: PostgresSettings,
    programs: PostgresPrograms,
    os_user: ServerOsUser,
    /// None while it is stopped or killed.
    process: Mutex<Option<ServerProcess>>,
    folder: ServerFolder,
}

impl PostgresServer {
    /// Starts a server with a new data directory, and waits until it accepts connections.
    pub fn start(settings: PostgresSettings) -> anyhow::Result<Self> {
        Self::start_in_folder(&std::env::temp_dir(), settings)
    }

    /// Starts a server as [`start`](Self::start) does, with all of its files inside `parent`, such as a small disk.
    pub fn start_in_folder(parent: &Path, settings: PostgresSettings) -> anyhow::Result<Self> {
        let (programs, os_user) = (PostgresPrograms::find()?, ServerOsUser::choose_os_user()?);
        let folder = ServerFolder::new_in(parent, &os_user)?;
        data_directory_template::create_data_directory(&programs, &os_user, &folder.path().join("data"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port::find_free_port()?));
        let process = Mutex::new(None);
        let admin = PostgresAdmin::for_address(address)?;
        let mut server = Self { admin, address, settings, programs, os_user, process, folder };
        let mut tries = 1;
        while let Err(error) = server.start_again() {
            if tries == MAX_PORT_TRIES || !format!("{error:#}").contains("Address already in use") {
                return Err(error).context("cannot start PostgreSQL");
            }
            tries += 1;
            server.address.set_port(free_port::find_free_port()?);
            server.admin = PostgresAdmin::for_address(server.address)?;
        }
        Ok(server)
    }

    /// Starts the server again after [`stop`](Self::stop) or [`kill`](Self::kill): in the same folder, on the same
    /// port.
    pub fn start_again(&self) -> anyhow::Result<()> {
        let mut process = self.lock_process();
        if process.is_some() {
            bail!("the server is already running");
        }
        // The kernel sends SIGQUIT to the server if this process dies. SIGQUIT ends all processes of the server at once;
        // SIGKILL would leave its children.
        let mut started = ServerProcess::start(
            &self.programs.postgres,
            &self.server_arguments(),
            &self.os_user,
            self.folder.path(),
            Signal::SIGQUIT,
        )?;
        started.wait_until_ready(|pid| self.is_ready(pid))?;
        *process = Some(started);
        Ok(())
    }

    /// Stops the server in an orderly way: it closes connections and writes all data to disk.
    pub fn stop(&self) -> anyhow::Result<()> {
        let mut process = self.lock_process().take().context("the server is not running")?;
        process.stop_with_signal(Signal::SIGINT)
    }

    /// Kills the server and all of its processes at once, as a machine failure would.
    pub fn kill(&self) -> anyhow::Result<()> {
        let mut process = self.lock_process().take().context("the server is not running")?;
        process.kill_with_children()
    }

    /// Returns the pid of the server's main process; None while it is not running.
    pub fn pid(&self) -> Option<u32> {
        self.lock_process().as_ref().map(ServerProcess::pid)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a database on this server.
    pub fn url(&self, database: &str) -> String {
        self.admin.url(database)
    }

    /// Returns the URL of a database through a proxy in front of this server.
    pub fn url_through_proxy(&self, proxy: &FaultProxy, database: &str) -> anyhow::Result<String> {
        Ok(PostgresAdmin::for_address(proxy.address())?.url(database))
    }

    /// Creates an empty database with a unique name and returns its URL.
    pub fn create_database(&self) -> anyhow::Result<String> {
        self.admin.create_database()
    }

    /// Runs SQL in a database over a new connection. Returns the rows, with their values as text.
    pub fn query(&self, database: &str, sql: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        self.admin.query(database, sql)
    }

    /// Returns superuser access to the server.
    pub fn admin(&self) -> &PostgresAdmin {
        &self.admin
    }

    fn lock_process(&self) -> MutexGuard<'_, Option<ServerProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Builds the command-line arguments of the server.
    fn server_arguments(&self) -> Vec<String> {
        let mut settings = vec![
            ("listen_addresses".to_owned(), self.address.ip().to_string()),
            ("port".to_owned(), self.address.port().to_string()),
            ("unix_socket_directories".to_owned(), self.folder.path().display().to_string()),
            ("max_connections".to_owned(), self.settings.max_connections.to_string()),
            // Memory-mapped files in the folder are removed with it even if the server is killed.
            ("dynamic_shared_memory_type".to_owned(), "mmap".to_owned()),
        ];
        if !self.settings.durable {
            for name in ["fsync", "synchronous_commit", "full_page_writes"] {
                settings.push((name.to_owned(), "off".to_owned()));
            }
        }
        settings.extend(self.settings.extra_settings.iter().cloned());
        let data = ["-D".to_owned(), self.data_folder().display().to_string()];
        let settings =
            settings.into_iter().flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
        data.into_iter().chain(settings).collect()
    }

    /// Reads a line of `postmaster.pid`, which describes a running server. A killed server leaves the file behind.
    fn read_pid_file_line(&self, line: usize) -> Option<String> {
        let file = fs::read_to_string(self.data_folder().join("postmaster.pid")).ok()?;
        Some(file.lines().nth(line)?.trim().to_owned())
    }

    fn is_ready(&self, pid: u32) -> bool {
        self.read_pid_file_line(0) == Some(pid.to_string())
            && self.read_pid_file_line(7).as_deref() == Some("ready")
    }

    /// Removes the System V shared memory segment that a killed server leaves behind.
    fn remove_shared_memory(&self) {
        let segment_line = self.read_pid_file_line(6).unwrap_or_default();
        if let Some(number) = segment_line.split_whitespace().nth(1) {
            let _ = Command::new("ipcrm").args(["--shmem-id", number]).status();
        }
    }
}

impl Drop for PostgresServer {
    /// Stops the server without writing anything more, because its folder is removed too.
    fn drop(&mut self) {
        match self.lock_process().take() {
            Some(mut process) => {
                let _ = process.stop_with_signal(Signal::SIGQUIT);
            }
            None => self.remove_shared_memory(),
        }
    }
}
