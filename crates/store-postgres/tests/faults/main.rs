//! Servers, wires and disks that fail under load: what was acknowledged is there once, what was refused at most once, and
//! the store goes on by itself as soon as it can.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clock;
#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod disk;
mod middle;
mod server;
mod stopped;
mod wire;

use std::time::Duration;

use common::load::PATIENCE;
use pointsman_testing::{Postgres, Settings};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls};

/// A durable server, and the URL of a database on it.
fn durable() -> (Postgres, String) {
    let server = Postgres::start(Settings { durable: true, ..Settings::default() }).unwrap();
    let url = server.create_database().unwrap();
    (server, url)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The single value of an answer.
async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Waits until a question is answered so.
async fn until(client: &Client, sql: &str, wanted: i64) {
    let come = async {
        while number(client, sql).await != wanted {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, come).await.unwrap_or_else(|_| panic!("{sql} is not {wanted}"));
}
