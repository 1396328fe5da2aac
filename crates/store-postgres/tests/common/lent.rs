//! Databases that one test after the other has for itself: to empty one takes 5 ms, to make one with its schema 150.

use std::sync::{LazyLock, Mutex};

use pointsman_store_postgres::Postgres;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

/// Brings a database back to what the migrations made of it.
const EMPTY: &str = include_str!("empty.sql");

/// Those that this process has and no test uses.
static FREE: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// Carries the connections of their holders, which outlive tests.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

/// A database that is this process's.
#[derive(Debug)]
struct Held {
    url: String,
    /// Has the lock that makes it ours. Whatever becomes of this process, the server lets go of it.
    holder: Client,
}

/// A database with an empty schema, ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Lent(Option<Held>);

impl Lent {
    pub(crate) async fn any() -> Self {
        let free = FREE.lock().unwrap().pop();
        let held = match free {
            Some(held) => held,
            None => Held::any().await,
        };
        held.holder.batch_execute(EMPTY).await.unwrap();
        Self(Some(held))
    }

    pub(crate) fn url(&self) -> &str {
        self.0.as_ref().map_or("", |held| held.url.as_str())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        FREE.lock().unwrap().extend(self.0.take());
    }
}

impl Held {
    /// The first that nobody has; if all are taken, another one is made.
    async fn any() -> Self {
        let server = pointsman_testing::shared().unwrap();
        let mut number = 0;
        loop {
            let name = format!("lent_{number}");
            let url = server.url(&name);
            match reach(&url).await {
                // Somebody else may be quicker.
                None => drop(server.query("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"))),
                Some(holder) if lock(&holder).await => {
                    // It may be fresh, or have been made by another build of these tests, whose schema was another.
                    if Postgres::migrate_to(&url, usize::MAX).await.is_ok() {
                        return Self { url, holder };
                    }
                    drop(holder);
                    server
                        .query("postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                        .unwrap();
                }
                Some(_) => number += 1,
            }
        }
    }
}

/// Empties any database that has our schema.
pub(crate) async fn empty(url: &str) {
    let client = reach(url).await.expect("it is there");
    client.batch_execute(EMPTY).await.unwrap();
}

/// Nothing if there is no such database.
async fn reach(url: &str) -> Option<Client> {
    let url = url.to_string();
    let connected = RUNTIME.spawn(async move {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        Ok::<_, tokio_postgres::Error>(client)
    });
    match connected.await.unwrap() {
        Ok(client) => Some(client),
        Err(error) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => None,
        Err(error) => panic!("a database for the test: {error}"),
    }
}

async fn lock(holder: &Client) -> bool {
    holder.query_one("SELECT pg_try_advisory_lock(1)", &[]).await.unwrap().get(0)
}
