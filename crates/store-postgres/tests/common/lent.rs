//! Databases that one test after the other has for itself. To empty one takes 10 ms, to make one and its schema 150.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_postgres::Postgres;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connect;

/// Brings a database back to what the migrations made of it.
const EMPTY: &str = include_str!("empty.sql");

/// A database with an empty schema, ours until this is dropped.
pub(crate) struct Lent {
    pub(crate) url: String,
    /// Has the lock that makes it ours. Whatever becomes of this process, the server lets go of it.
    _holder: Client,
}

impl Lent {
    /// The first that nobody has; if all are taken, another one is made.
    pub(crate) async fn any() -> Self {
        let server = pointsman_testing::shared().unwrap();
        let holder = connect(&server.url("postgres")).await;
        let schema = fingerprint();
        let mut number = 0;
        while !lock(&holder, schema, number).await {
            number += 1;
        }
        let name = format!("lent_{:08x}_{number}", schema.cast_unsigned());
        let url = server.url(&name);
        match holder.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0")).await {
            Ok(()) => make(&url).await,
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_DATABASE) => empty(&url).await,
            Err(error) => panic!("a new database: {error}"),
        }
        Self { url, _holder: holder }
    }
}

async fn lock(holder: &Client, schema: i32, number: i32) -> bool {
    let locked = holder.query_one("SELECT pg_try_advisory_lock($1, $2)", &[&schema, &number]).await;
    locked.unwrap().get(0)
}

async fn make(url: &str) {
    let store = Postgres::open(url, Timestamp::MIN).await.unwrap();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    empty(url).await;
}

/// Empties a database, whatever was done to it, and whoever is still connected.
pub(crate) async fn empty(url: &str) {
    connect(url).await.batch_execute(EMPTY).await.unwrap();
}

/// Tells one schema from another: a server may have databases of earlier ones.
fn fingerprint() -> i32 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.iter().for_each(|file| hasher.write(&std::fs::read(file).unwrap()));
    hasher.finish() as i32
}
