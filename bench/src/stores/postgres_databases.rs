//! Databases on a PostgreSQL server: created for a measurement, and dropped after it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use pointsman_testing::{PostgresAdmin, PostgresServer, PostgresSettings};
use tokio_postgres::{Client, NoTls};
use url::Url;

/// The PostgreSQL server of a run.
pub(crate) struct PostgresBenchServer {
    admin: PostgresAdmin,
    /// The database to connect to for creating and dropping others.
    admin_database: String,
    /// The server, if it was started for the run; it stops with the run.
    _started_server: Option<PostgresServer>,
}

impl PostgresBenchServer {
    /// Uses the server at this URL, or starts one with PostgreSQL's default durability.
    pub(crate) fn connect_or_start(url: Option<&str>) -> anyhow::Result<Self> {
        let Some(url) = url else {
            let server =
                PostgresServer::start(PostgresSettings { durable: true, ..PostgresSettings::default() })?;
            return Ok(Self {
                admin: server.admin().clone(),
                admin_database: "postgres".into(),
                _started_server: Some(server),
            });
        };
        let admin_database = Url::parse(url)
            .context("the URL of the PostgreSQL server is not valid")?
            .path()
            .trim_start_matches('/')
            .to_owned();
        let admin_database = if admin_database.is_empty() { "postgres".into() } else { admin_database };
        Ok(Self { admin: PostgresAdmin::new(url)?, admin_database, _started_server: None })
    }

    /// Returns a set of databases for one measurement; it is empty at first.
    pub(crate) fn new_database_set(&self) -> BenchDatabases {
        BenchDatabases {
            admin: self.admin.clone(),
            admin_database: self.admin_database.clone(),
            database_names_by_store_name: Mutex::default(),
        }
    }
}

/// The databases of one measurement.
pub(crate) struct BenchDatabases {
    admin: PostgresAdmin,
    admin_database: String,
    /// The unique name of each database on the server, by its name here.
    database_names_by_store_name: Mutex<BTreeMap<String, String>>,
}

impl BenchDatabases {
    /// Returns the URL of a database, and creates it if it does not exist.
    pub(crate) fn get_or_create_database(&self, name: &str) -> anyhow::Result<String> {
        let mut created = self.database_names_by_store_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(existing) = created.get(name) {
            return Ok(self.admin.url(existing));
        }
        let unique = format!("pointsman_bench_{}_{name}", pointsman_engine::machine_clock_now().micros());
        self.admin.query(&self.admin_database, &format!("CREATE DATABASE {unique}"))?;
        let url = self.admin.url(&unique);
        created.insert(name.to_owned(), unique);
        Ok(url)
    }

    /// Opens a new connection to a database.
    pub(crate) async fn connect(&self, name: &str) -> anyhow::Result<Client> {
        let (client, connection) =
            tokio_postgres::connect(&self.get_or_create_database(name)?, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Runs VACUUM ANALYZE and a checkpoint, which the server would otherwise do during the measurement.
    pub(crate) async fn vacuum_and_checkpoint(&self, name: &str) -> anyhow::Result<()> {
        let client = self.connect(name).await?;
        client.batch_execute("VACUUM ANALYZE").await?;
        // The user may lack the right to run a checkpoint.
        let _ = client.batch_execute("CHECKPOINT").await;
        Ok(())
    }
}

impl Drop for BenchDatabases {
    fn drop(&mut self) {
        let created = std::mem::take(
            &mut *self.database_names_by_store_name.lock().unwrap_or_else(PoisonError::into_inner),
        );
        for name in created.into_values() {
            // If it fails, an unused database stays on the server, recognizable by its name.
            let _ = self
                .admin
                .query(&self.admin_database, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}
