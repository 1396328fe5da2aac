//! Databases that tests reuse one after the other: clearing one takes 5 ms, creating one with its schema 150.

use std::sync::{LazyLock, Mutex};

use pointsman_store_postgres::{MIGRATIONS, Postgres};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

/// Resets a database to the state after the migrations.
const CLEAR_DATABASE_SQL: &str = include_str!("clear.sql");

/// Databases that this process has locked and no test uses.
static IDLE_DATABASES: Mutex<Vec<LockedDatabase>> = Mutex::new(Vec::new());

/// Drives the lock connections, which outlive tests.
static LOCK_RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

/// A database that this process has locked.
#[derive(Debug)]
struct LockedDatabase {
    url: String,
    /// Has the advisory lock on the database, which the server releases when this process ends.
    lock_connection: Client,
}

/// A cleared database, exclusive until this is dropped.
#[derive(Debug)]
pub(crate) struct PooledTestDatabase(Option<LockedDatabase>);

impl PooledTestDatabase {
    pub(crate) async fn acquire() -> Self {
        let idle_database = IDLE_DATABASES.lock().unwrap().pop();
        let database = match idle_database {
            Some(database) => database,
            None => LockedDatabase::lock_or_create().await,
        };
        database.lock_connection.batch_execute(CLEAR_DATABASE_SQL).await.unwrap();
        Self(Some(database))
    }

    pub(crate) fn url(&self) -> &str {
        self.0.as_ref().map_or("", |database| database.url.as_str())
    }
}

impl Drop for PooledTestDatabase {
    fn drop(&mut self) {
        IDLE_DATABASES.lock().unwrap().extend(self.0.take());
    }
}

impl LockedDatabase {
    /// Locks the first free database; creates another one if all are locked.
    async fn lock_or_create() -> Self {
        let server = pointsman_testing::shared_postgres().unwrap();
        let mut number = 0;
        loop {
            let name = format!("test_database_{number}");
            let url = server.url(&name);
            match try_connect(&url).await {
                // Another process may have created it.
                None => drop(server.query("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"))),
                Some(lock_connection) if try_lock_database(&lock_connection).await => {
                    // The database may be new, or have the schema of another build of these tests.
                    if Postgres::migrate(&url, MIGRATIONS).await.is_ok() {
                        return Self { url, lock_connection };
                    }
                    drop(lock_connection);
                    server
                        .query("postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                        .unwrap();
                }
                Some(_) => number += 1,
            }
        }
    }
}

/// Clears any database that has the schema.
pub(crate) async fn clear_database(url: &str) {
    let client = try_connect(url).await.expect("the database exists");
    client.batch_execute(CLEAR_DATABASE_SQL).await.unwrap();
}

/// Connects; none if there is no such database.
async fn try_connect(url: &str) -> Option<Client> {
    let url = url.to_string();
    let connected = LOCK_RUNTIME.spawn(async move {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        Ok::<_, tokio_postgres::Error>(client)
    });
    match connected.await.unwrap() {
        Ok(client) => Some(client),
        Err(error) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => None,
        Err(error) => panic!("cannot connect to the test database: {error}"),
    }
}

async fn try_lock_database(lock_connection: &Client) -> bool {
    lock_connection.query_one("SELECT pg_try_advisory_lock(1)", &[]).await.unwrap().get(0)
}
