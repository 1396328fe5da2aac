//! Databases on a PostgreSQL server: made for a measurement, and dropped after it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use pointsman_testing::{PostgresAdmin, PostgresServer, PostgresSettings};
use tokio_postgres::{Client, NoTls};
use url::Url;

/// The server of a run.
pub(crate) struct Server {
    admin: PostgresAdmin,
    /// The database from which others are made.
    home: String,
    /// It was started for the run, and ends with it.
    _private: Option<PostgresServer>,
}

impl Server {
    /// The server at this URL, or one that is started here with the durability that PostgreSQL has by default.
    pub(crate) fn find(url: Option<&str>) -> anyhow::Result<Self> {
        let Some(url) = url else {
            let server =
                PostgresServer::start(PostgresSettings { durable: true, ..PostgresSettings::default() })?;
            return Ok(Self {
                admin: server.admin().clone(),
                home: "postgres".into(),
                _private: Some(server),
            });
        };
        let home =
            Url::parse(url).context("the URL of the server")?.path().trim_start_matches('/').to_owned();
        let home = if home.is_empty() { "postgres".into() } else { home };
        Ok(Self { admin: PostgresAdmin::new(url)?, home, _private: None })
    }

    pub(crate) fn databases(&self) -> Databases {
        Databases { admin: self.admin.clone(), home: self.home.clone(), made: Mutex::default() }
    }
}

/// The databases of one measurement.
pub(crate) struct Databases {
    admin: PostgresAdmin,
    home: String,
    /// What each is called on the server, where others may be.
    made: Mutex<BTreeMap<String, String>>,
}

impl Databases {
    /// The URL of a database, which is made if there is none of this name.
    pub(crate) fn url(&self, name: &str) -> anyhow::Result<String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(name) {
            return Ok(self.admin.url(known));
        }
        let unique = format!("pointsman_bench_{}_{name}", pointsman_engine::now().micros());
        self.admin.query(&self.home, &format!("CREATE DATABASE {unique}"))?;
        let url = self.admin.url(&unique);
        made.insert(name.to_owned(), unique);
        Ok(url)
    }

    /// A connection of its own to a database.
    pub(crate) async fn connect(&self, name: &str) -> anyhow::Result<Client> {
        let (client, connection) = tokio_postgres::connect(&self.url(name)?, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Has the server write out what it holds back, and look at what there is, as it would have done by and by.
    pub(crate) async fn settle(&self, name: &str) -> anyhow::Result<()> {
        let client = self.connect(name).await?;
        client.batch_execute("VACUUM ANALYZE").await?;
        // Not everybody may ask for it.
        let _ = client.batch_execute("CHECKPOINT").await;
        Ok(())
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for name in made.into_values() {
            // Should it fail, the server keeps an unused database, whose name says whose it was.
            let _ = self.admin.query(&self.home, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}
