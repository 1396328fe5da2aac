//! Servers, networks and disks that fail under load: acknowledged events exist once, events of failed emits at most
//! once, and the store recovers without help.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken_transactions;
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod connection_limit;
mod disk;
mod network;
mod server;
mod stopped_node;

use std::time::Duration;

use common::test_load::TEST_TIMEOUT;
use pointsman_testing::{PostgresServer, PostgresSettings};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls};

/// Starts a durable server; returns the URL of a database on it.
fn start_durable_server() -> (PostgresServer, String) {
    let server =
        PostgresServer::start(PostgresSettings { durable: true, ..PostgresSettings::default() }).unwrap();
    let url = server.create_database().unwrap();
    (server, url)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns the single value of a query.
async fn query_number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Waits until a query returns this value.
async fn wait_until_query_returns(client: &Client, sql: &str, expected: i64) {
    let poll = async {
        while query_number(client, sql).await != expected {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, poll).await.unwrap_or_else(|_| panic!("{sql} is not {expected}"));
}
