//! PgBouncer in front of a PostgreSQL server, in transaction mode: a client that relies on session state soon fails
//! there.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use anyhow::Context;
use nix::sys::signal::Signal;

use crate::free_port;
use crate::postgres::PostgresServer;
use crate::postgres_admin::PostgresAdmin;
use crate::server_folder::ServerFolder;
use crate::server_os_user::ServerOsUser;
use crate::server_process::ServerProcess;
use crate::server_programs;

/// A PgBouncer with its own folder and port. Dropping it stops it.
#[derive(Debug)]
pub struct PgBouncer {
    address: SocketAddr,
    database: String,
    process: ServerProcess,
    _folder: ServerFolder,
}

impl PgBouncer {
    /// Starts a PgBouncer for one database of a server.
    pub fn start(postgres: &PostgresServer, database: &str) -> anyhow::Result<Self> {
        Self::start_with_ignored_parameters(postgres, database, "extra_float_digits,options")
    }

    /// Starts a PgBouncer that refuses clients with unknown startup parameters, as PgBouncer does by default.
    pub fn start_refusing_unknown_parameters(
        postgres: &PostgresServer,
        database: &str,
    ) -> anyhow::Result<Self> {
        Self::start_with_ignored_parameters(postgres, database, "")
    }

    fn start_with_ignored_parameters(
        postgres: &PostgresServer,
        database: &str,
        ignored_parameters: &str,
    ) -> anyhow::Result<Self> {
        let (program, os_user) = (server_programs::find_pgbouncer()?, ServerOsUser::choose_os_user()?);
        let folder = ServerFolder::new(&os_user)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port::find_free_port()?));
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, format_config(address, postgres.address(), database, ignored_parameters))?;
        os_user.chown_path(&file)?;
        let arguments = [file.display().to_string()];
        // The kernel sends SIGKILL to PgBouncer if this process dies.
        let mut process =
            ServerProcess::start(&program, &arguments, &os_user, folder.path(), Signal::SIGKILL)?;
        process
            .wait_until_ready(|_| TcpStream::connect(address).is_ok())
            .context("cannot start PgBouncer")?;
        Ok(Self { address, database: database.to_owned(), process, _folder: folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the database through this PgBouncer.
    pub fn url(&self) -> anyhow::Result<String> {
        Ok(PostgresAdmin::for_address(self.address)?.url(&self.database))
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.stop_with_signal(Signal::SIGKILL);
    }
}

/// Formats `pgbouncer.ini`. Many clients share few connections, so that two transactions of a client do not always use
/// the same one.
fn format_config(
    listen_address: SocketAddr,
    server: SocketAddr,
    database: &str,
    ignored_parameters: &str,
) -> String {
    format!(
        "\
[databases]
{database} = host={} port={} dbname={database} user=postgres

[pgbouncer]
listen_addr = {}
listen_port = {}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
ignore_startup_parameters = {ignored_parameters}
",
        server.ip(),
        server.port(),
        listen_address.ip(),
        listen_address.port(),
    )
}
