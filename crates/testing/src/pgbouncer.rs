//! PgBouncer before a server, in transaction mode: what a client may not rely on there shows at once.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use anyhow::Context;
use nix::sys::signal::Signal;

use crate::admin::Admin;
use crate::folder::Folder;
use crate::port;
use crate::postgres::Postgres;
use crate::process::Process;
use crate::programs;
use crate::user::Servant;

/// A PgBouncer in a folder of its own, on a port of its own. It ends when this is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    address: SocketAddr,
    database: String,
    process: Process,
    _folder: Folder,
}

impl PgBouncer {
    /// Starts one that leads to one database of a server.
    pub fn start(postgres: &Postgres, database: &str) -> anyhow::Result<Self> {
        Self::start_with(postgres, database, "extra_float_digits,options")
    }

    /// One that refuses clients that ask for settings which it does not know, as it does unless it is told otherwise.
    pub fn start_strict(postgres: &Postgres, database: &str) -> anyhow::Result<Self> {
        Self::start_with(postgres, database, "")
    }

    fn start_with(postgres: &Postgres, database: &str, ignored: &str) -> anyhow::Result<Self> {
        let (program, servant) = (programs::pgbouncer()?, Servant::find()?);
        let folder = Folder::new(&servant)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, configuration(address, postgres.address(), database, ignored))?;
        servant.give(&file)?;
        let words = [file.display().to_string()];
        let mut process = Process::start(&program, &words, &servant, folder.path(), Signal::SIGKILL)?;
        process
            .wait_until_ready(|_| TcpStream::connect(address).is_ok())
            .context("cannot start PgBouncer")?;
        Ok(Self { address, database: database.to_owned(), process, _folder: folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the database as reached through it.
    pub fn url(&self) -> anyhow::Result<String> {
        Ok(Admin::at(self.address)?.url(&self.database))
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.end(Signal::SIGKILL);
    }
}

/// Few connections for many clients, so that two transactions of a client do not always meet the same one.
fn configuration(here: SocketAddr, server: SocketAddr, database: &str, ignored: &str) -> String {
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
ignore_startup_parameters = {ignored}
",
        server.ip(),
        server.port(),
        here.ip(),
        here.port(),
    )
}
