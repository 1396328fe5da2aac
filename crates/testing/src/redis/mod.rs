//! A private Redis server.

mod admin;
mod cluster;
mod resp;
mod sentinel;
mod settings;

pub use admin::{RedisAdmin, unique_key_prefix};
pub use cluster::RedisCluster;
pub use resp::{RedisConnection, RedisReply};
pub use sentinel::RedisSentinelGroup;
pub use settings::RedisSettings;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::fault_proxy::FaultProxy;
use crate::free_port;
use crate::proc_stat;
use crate::server_folder::{ServerFolder, copy_folder_for_user};
use crate::server_os_user::ServerOsUser;
use crate::server_process::{ServerProcess, send_signal, wait_until};
use crate::server_programs;

/// The number of ports that are tried if another process takes the chosen one first.
const MAX_PORT_TRIES: usize = 5;

/// The mode in which the Redis program runs.
#[derive(Debug, Clone, Copy)]
enum RedisRole {
    DataServer,
    Sentinel,
}

/// A Redis server with its own folder and port. Dropping it stops it and removes the folder.
#[derive(Debug)]
pub struct RedisServer {
    admin: RedisAdmin,
    role: RedisRole,
    os_user: ServerOsUser,
    /// None while it is stopped or killed.
    process: Mutex<Option<ServerProcess>>,
    folder: ServerFolder,
}

impl RedisServer {
    /// Starts an empty server, and waits until it replies.
    pub fn start(settings: RedisSettings) -> anyhow::Result<Self> {
        Self::start_in_folder(&std::env::temp_dir(), settings)
    }

    /// Starts a server as [`start`](Self::start) does, with all of its files inside `parent`, such as a small disk.
    pub fn start_in_folder(parent: &Path, settings: RedisSettings) -> anyhow::Result<Self> {
        Self::start_with_role(RedisRole::DataServer, parent, &settings).context("cannot start Redis")
    }

    fn start_sentinel(settings: &RedisSettings) -> anyhow::Result<Self> {
        Self::start_with_role(RedisRole::Sentinel, &std::env::temp_dir(), settings)
            .context("cannot start a sentinel")
    }

    fn start_with_role(role: RedisRole, parent: &Path, settings: &RedisSettings) -> anyhow::Result<Self> {
        let os_user = ServerOsUser::choose_os_user()?;
        let folder = ServerFolder::new_in(parent, &os_user)?;
        let admin = new_admin_on_free_port(settings)?;
        let mut server = Self { admin, role, os_user, process: Mutex::new(None), folder };
        symlink(server_programs::find_redis_server()?, server.program_path())?;
        fs::create_dir(server.data_folder())?;
        server.os_user.chown_path(&server.data_folder())?;
        let mut tries = 1;
        loop {
            server.write_config(settings)?;
            match server.start_again() {
                Ok(()) => return Ok(server),
                Err(error)
                    if tries == MAX_PORT_TRIES
                        || !format!("{error:#}").contains("Address already in use") =>
                {
                    return Err(error);
                }
                Err(_) => server.admin = new_admin_on_free_port(settings)?,
            }
            tries += 1;
        }
    }

    /// Starts the server again after [`stop`](Self::stop) or [`kill`](Self::kill): with the same data, on the same
    /// port. When this returns, the server has loaded its data.
    pub fn start_again(&self) -> anyhow::Result<()> {
        let mut process = self.lock_process();
        if process.is_some() {
            bail!("the server is already running");
        }
        let mut arguments = vec![self.config_path().display().to_string()];
        match self.role {
            RedisRole::DataServer => {}
            RedisRole::Sentinel => arguments.push("--sentinel".to_owned()),
        }
        let folder = self.folder.path();
        // The kernel sends SIGKILL to the server if this process dies.
        let mut started =
            ServerProcess::start(&self.program_path(), &arguments, &self.os_user, folder, Signal::SIGKILL)?;
        started.wait_until_ready(|pid| self.is_ready(pid).unwrap_or(false))?;
        *process = Some(started);
        Ok(())
    }

    /// Stops the server in an orderly way: it writes all data to disk.
    pub fn stop(&self) -> anyhow::Result<()> {
        let mut process = self.lock_process().take().context("the server is not running")?;
        send_signal(process.pid(), Signal::SIGCONT)?;
        process.stop_with_signal(Signal::SIGTERM)
    }

    /// Kills the server and its forked children at once, as a machine failure would.
    pub fn kill(&self) -> anyhow::Result<()> {
        let mut process = self.lock_process().take().context("the server is not running")?;
        process.kill_with_children()
    }

    /// Pauses the process (SIGSTOP): connections stay open, and no reply is sent until [`resume`](Self::resume).
    pub fn pause(&self) -> anyhow::Result<()> {
        let pid = self.pid().context("the server is not running")?;
        send_signal(pid, Signal::SIGSTOP)?;
        if !wait_until(|| proc_stat::is_stopped_or_ended(pid)) {
            bail!("the server did not stop after SIGSTOP");
        }
        Ok(())
    }

    /// Continues the process (SIGCONT) after [`pause`](Self::pause).
    pub fn resume(&self) -> anyhow::Result<()> {
        send_signal(self.pid().context("the server is not running")?, Signal::SIGCONT)
    }

    /// Returns the pid of the server; None while it is not running.
    pub fn pid(&self) -> Option<u32> {
        self.lock_process().as_ref().map(ServerProcess::pid)
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

    /// Returns the URL of the server through a proxy in front of it.
    pub fn url_through_proxy(&self, proxy: &FaultProxy) -> anyhow::Result<String> {
        Ok(self.admin.with_address(proxy.address())?.url())
    }

    /// Runs a command over a new connection.
    pub fn run_command<W: AsRef<[u8]>>(&self, arguments: &[W]) -> anyhow::Result<RedisReply> {
        self.admin.run_command(arguments)
    }

    /// Returns access to the server with all rights.
    pub fn admin(&self) -> &RedisAdmin {
        &self.admin
    }

    /// Returns the folder with the server's data.
    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Saves a copy of the data, and replaces an earlier one. The server must be stopped or killed.
    pub fn save_data_copy(&self) -> anyhow::Result<()> {
        self.replace_data_folder(&self.data_folder(), &self.data_copy_folder())
    }

    /// Restores the saved copy of the data, as restoring a backup does. The server must be stopped or killed.
    pub fn restore_data_copy(&self) -> anyhow::Result<()> {
        self.replace_data_folder(&self.data_copy_folder(), &self.data_folder())
    }

    fn replace_data_folder(&self, from: &Path, to: &Path) -> anyhow::Result<()> {
        let process = self.lock_process();
        if process.is_some() {
            bail!("the server is running; stop it before its data are copied");
        }
        if !from.exists() {
            bail!("no copy of the data was saved");
        }
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        copy_folder_for_user(from, to, &self.os_user)
    }

    fn data_copy_folder(&self) -> PathBuf {
        self.folder.path().join("copy")
    }

    fn lock_process(&self) -> MutexGuard<'_, Option<ServerProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of the program, whose name makes it act as a server.
    fn program_path(&self) -> PathBuf {
        self.folder.path().join("redis-server")
    }

    /// Returns the path of the configuration file. The server owns it, because CONFIG REWRITE and sentinels write to
    /// it.
    fn config_path(&self) -> PathBuf {
        self.folder.path().join("redis.conf")
    }

    fn write_config(&self, settings: &RedisSettings) -> anyhow::Result<()> {
        let text = match self.role {
            RedisRole::DataServer => settings.format_server_config(self.address()),
            RedisRole::Sentinel => settings.format_sentinel_config(self.address()),
        };
        fs::write(self.config_path(), text)?;
        self.os_user.chown_path(&self.config_path())
    }

    /// Whether the server on this address has loaded its data and is the process that was started here.
    fn is_ready(&self, pid: u32) -> anyhow::Result<bool> {
        let mut connection = self.admin.connect()?;
        connection.run_command(&["PING"])?;
        let info = connection.run_command(&["INFO", "server"])?.text().unwrap_or_default();
        Ok(info.lines().any(|line| line == format!("process_id:{pid}")))
    }
}

impl Drop for RedisServer {
    /// Kills the server, because its folder is removed too.
    fn drop(&mut self) {
        if let Some(mut process) = self.lock_process().take() {
            let _ = process.kill_with_children();
        }
    }
}

fn new_admin_on_free_port(settings: &RedisSettings) -> anyhow::Result<RedisAdmin> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port::find_free_port()?));
    RedisAdmin::for_address(address, settings.password.as_deref())
}
